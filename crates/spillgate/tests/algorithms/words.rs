use std::collections::HashMap;

use spillgate::algorithm::{Algorithm, AnyAlgorithm, Word};
use spillgate::{Decision, Timestamp};
use spillgate_testing::{Limit, Observed, Subject};

/// The plainest store: a map of words.
pub(crate) struct Words {
    algorithm: AnyAlgorithm,
    words: HashMap<String, Word>,
}

impl Words {
    pub(crate) fn new(limit: &Limit) -> Self {
        Self { algorithm: limit.algorithm().unwrap(), words: HashMap::new() }
    }

    pub(crate) fn word(&self, key: &str) -> Word {
        self.words.get(key).copied().unwrap_or_else(|| self.algorithm.fresh(Timestamp::ZERO))
    }

    /// Keeps a word, unless there was none and nothing is spent.
    fn keep(&mut self, key: &str, now: Timestamp, word: Word) {
        assert_ne!(word.to_bits(), u64::MAX, "no word may look like a slot changing hands");
        if self.words.contains_key(key) || self.algorithm.spent(word, now) > 0 {
            self.words.insert(key.to_owned(), word);
        }
    }
}

impl Subject for Words {
    fn check(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        let (decision, after) = Decision::of(self.algorithm, self.word(key), now, cost);
        if let Some(after) = after {
            self.keep(key, now, after);
        }
        decision.into()
    }

    fn peek(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        Decision::peek(self.algorithm, self.word(key), now, cost).into()
    }

    fn debit(&mut self, key: &str, amount: u64, now: Timestamp) {
        self.keep(key, now, self.algorithm.debit_up_to(self.word(key), now, amount, u64::MAX));
    }

    fn refund(&mut self, key: &str, amount: u64, now: Timestamp) {
        // Who has never been seen has nothing to get back.
        if let Some(word) = self.words.get_mut(key) {
            *word = self.algorithm.refund(*word, now, amount);
        }
    }

    fn reset(&mut self, key: &str, now: Timestamp) {
        // Who has never been seen is so already.
        if let Some(word) = self.words.get_mut(key) {
            *word = self.algorithm.fresh(now);
        }
    }
}
