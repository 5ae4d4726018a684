use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use spillgate::KeyedState;

use crate::keys::FlatText;
use crate::peer::Peer;
use crate::terms::Terms;

/// What no limiter can do without: hash the key, read a clock, and change one
/// word somewhere in memory. It limits nothing and tells no two keys with the
/// same word apart.
pub struct Floor {
    hasher: KeyedState,
    clock: quanta::Clock,
    words: Vec<AtomicU64>,
    answer: bool,
}

impl Peer for Floor {
    const NAME: &'static str = "floor";
    type Keys = FlatText;

    fn build(terms: Terms, capacity: usize) -> Self {
        Self {
            hasher: KeyedState::default(),
            clock: quanta::Clock::new(),
            words: (0..capacity).map(|_| AtomicU64::new(0)).collect(),
            answer: terms.burst == Terms::GENEROUS.burst,
        }
    }

    #[inline]
    fn check(&self, key: &str) -> bool {
        let hash = u128::from(self.hasher.hash_one(key));
        let index = (hash * self.words.len() as u128) >> 64;
        let word = &self.words[index as usize];
        let now = self.clock.raw();
        let old = word.load(Ordering::Relaxed);
        let exchanged = word.compare_exchange(old, now, Ordering::Relaxed, Ordering::Relaxed);
        // Never the case; the answer must be known no sooner than the word.
        let impossible = exchanged.unwrap_or_else(|actual| actual) == u64::MAX;
        impossible != self.answer
    }
}
