use std::sync::Arc;

use spillgate::account::Rule;
use spillgate::algorithm::{Algorithm, AnyAlgorithm, Word};
use spillgate::{Error, Quota, Start, Timestamp};

use crate::backend::{Entry, Op};
use crate::{Name, State, Terms};

/// The quota that applies to a caller, and how to count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EffectiveQuota {
    /// Stored with the word: how to read it.
    pub(crate) terms: Terms,
    /// The quota of the terms, or of the call.
    pub(crate) quota: Quota,
    /// Counts that quota in words of the terms.
    pub(crate) algorithm: AnyAlgorithm,
}

impl EffectiveQuota {
    pub(crate) fn of(terms: Terms) -> Result<Self, Error> {
        Ok(Self { terms, quota: terms.quota, algorithm: terms.algorithm()? })
    }

    /// The word of a caller that Redis does not know. `born` is when a limit that starts empty was
    /// first used.
    pub(crate) fn fresh(&self, born: Option<Timestamp>) -> Word {
        let starting = |born| self.terms.kind.with_quota(&self.quota, Start::Empty, born).ok();
        born.and_then(starting).unwrap_or(self.algorithm).fresh(Timestamp::ZERO)
    }

    /// True if a word denies for twice as long as a full refill takes: without debt, it is from the
    /// future.
    pub(crate) fn is_impossible(&self, word: Word, now: Timestamp) -> bool {
        let (back, all) = (self.algorithm.reset_after(word, now), self.algorithm.window());
        back.zip(all).is_some_and(|(back, all)| back > 2 * all)
    }

    /// An operation on a caller with this quota.
    pub(crate) fn entry(&self, name: Name, fresh: Word, op: Op) -> Entry {
        Entry { name, terms: self.terms, algorithm: self.algorithm, fresh, op }
    }

    /// A state with this word.
    pub(crate) fn state(&self, word: Word) -> State {
        State::new(self.terms, word)
    }

    /// The rule by which an account counts it.
    pub(crate) fn rule(&self) -> Arc<Rule> {
        Arc::new(Rule { quota: self.quota, algorithm: self.algorithm })
    }

    /// True if words mean the same and cost the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.terms == other.terms && self.algorithm == other.algorithm
    }
}
