use std::time::Duration;

use super::{
    Algorithm, FixedWindow, IntervalBucket, LeakyBucket, SlidingWindow, TokenBucket, Word,
};
use crate::Timestamp;
use crate::seq_cell::Numbers;

/// Any of the five algorithms, chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnyAlgorithm {
    /// See [`TokenBucket`].
    TokenBucket(TokenBucket),
    /// See [`LeakyBucket`].
    LeakyBucket(LeakyBucket),
    /// See [`IntervalBucket`].
    IntervalBucket(IntervalBucket),
    /// See [`FixedWindow`].
    FixedWindow(FixedWindow),
    /// See [`SlidingWindow`].
    SlidingWindow(SlidingWindow),
}

/// Calls the chosen algorithm.
macro_rules! chosen {
    ($any:expr, $algorithm:ident => $call:expr) => {
        match $any {
            AnyAlgorithm::TokenBucket($algorithm) => $call,
            AnyAlgorithm::LeakyBucket($algorithm) => $call,
            AnyAlgorithm::IntervalBucket($algorithm) => $call,
            AnyAlgorithm::FixedWindow($algorithm) => $call,
            AnyAlgorithm::SlidingWindow($algorithm) => $call,
        }
    };
}

impl Algorithm for AnyAlgorithm {
    fn spend(&self, word: Word, now: Timestamp, cost: u64) -> Option<Word> {
        chosen!(self, algorithm => algorithm.spend(word, now, cost))
    }

    fn charge(&self, word: Word, now: Timestamp, amount: u64) -> Word {
        chosen!(self, algorithm => algorithm.charge(word, now, amount))
    }

    fn refund(&self, word: Word, now: Timestamp, amount: u64) -> Word {
        chosen!(self, algorithm => algorithm.refund(word, now, amount))
    }

    #[inline]
    fn spent(&self, word: Word, now: Timestamp) -> u64 {
        chosen!(self, algorithm => algorithm.spent(word, now))
    }

    fn idle_since(&self, word: Word, now: Timestamp) -> Timestamp {
        chosen!(self, algorithm => algorithm.idle_since(word, now))
    }

    #[inline]
    fn fresh(&self, floor: Timestamp) -> Word {
        chosen!(self, algorithm => algorithm.fresh(floor))
    }

    fn limit(&self) -> u64 {
        chosen!(self, algorithm => algorithm.limit())
    }

    fn window(&self) -> Option<Duration> {
        chosen!(self, algorithm => algorithm.window())
    }

    fn remaining(&self, word: Word, now: Timestamp) -> u64 {
        chosen!(self, algorithm => algorithm.remaining(word, now))
    }

    fn retry_after(&self, word: Word, now: Timestamp, cost: u64) -> Option<Duration> {
        chosen!(self, algorithm => algorithm.retry_after(word, now, cost))
    }

    fn reset_after(&self, word: Word, now: Timestamp) -> Option<Duration> {
        chosen!(self, algorithm => algorithm.reset_after(word, now))
    }

    fn wait(&self, word: Word, now: Timestamp, cost: u64) -> Duration {
        chosen!(self, algorithm => algorithm.wait(word, now, cost))
    }

    /// Words of different algorithms have nothing in common: between them, a
    /// client starts afresh.
    fn carry_over(&self, word: Word, now: Timestamp, old: &Self) -> Word {
        use AnyAlgorithm as Any;
        match (self, old) {
            (Any::TokenBucket(new), Any::TokenBucket(old)) => new.carry_over(word, now, old),
            (Any::LeakyBucket(new), Any::LeakyBucket(old)) => new.carry_over(word, now, old),
            (Any::IntervalBucket(new), Any::IntervalBucket(old)) => new.carry_over(word, now, old),
            (Any::FixedWindow(new), Any::FixedWindow(old)) => new.carry_over(word, now, old),
            (Any::SlidingWindow(new), Any::SlidingWindow(old)) => new.carry_over(word, now, old),
            _ => self.fresh(now),
        }
    }

    fn rebase(&self, word: Word, then: Timestamp, now: Timestamp) -> Word {
        chosen!(self, algorithm => algorithm.rebase(word, then, now))
    }
}

/// An algorithm as plain numbers, for a cell that is read without a lock: a tag
/// and the algorithm's own.
pub(crate) type Raw = [u64; 7];

const REFILLING_TOKEN_BUCKET: u64 = 0;

impl AnyAlgorithm {
    /// The one of two words that has more spent, the second if they are even.
    pub(crate) fn larger(&self, one: Word, other: Word, now: Timestamp) -> Word {
        if self.spent(one, now) > self.spent(other, now) { one } else { other }
    }

    pub(crate) fn to_raw(self) -> Raw {
        let mut raw = [0; 7];
        let mut write = |tag: u64, numbers: &[u64]| {
            for (cell, number) in raw.iter_mut().zip([tag].iter().chain(numbers)) {
                *cell = *number;
            }
        };
        match self {
            Self::TokenBucket(bucket) => {
                let tag = if bucket.refills() { REFILLING_TOKEN_BUCKET } else { 1 };
                write(tag, &bucket.to_raw());
            }
            Self::LeakyBucket(bucket) => write(2, &bucket.to_raw()),
            Self::IntervalBucket(bucket) => write(3, &bucket.to_raw()),
            Self::FixedWindow(window) => write(4, &window.to_raw()),
            Self::SlidingWindow(window) => write(5, &window.to_raw()),
        }
        raw
    }

    /// The algorithm of [raw](Self::to_raw) numbers.
    pub(crate) fn from_raw(raw: Numbers<'_, 7>) -> Self {
        let n = |index| raw.get(index);
        match n(0) {
            tag @ 0..=1 => {
                let refills = tag == REFILLING_TOKEN_BUCKET;
                Self::TokenBucket(TokenBucket::from_raw([n(1), n(2), n(3)], refills))
            }
            2 => Self::LeakyBucket(LeakyBucket::from_raw([n(1), n(2), n(3)])),
            3 => {
                let all = [n(1), n(2), n(3), n(4), n(5), n(6)];
                Self::IntervalBucket(IntervalBucket::from_raw(all))
            }
            4 => Self::FixedWindow(FixedWindow::from_raw([n(1), n(2), n(3), n(4)])),
            _ => Self::SlidingWindow(SlidingWindow::from_raw([n(1), n(2), n(3)])),
        }
    }

    /// The same, if it is a token bucket that refills: by far the most are.
    #[inline(always)]
    pub(crate) fn token_bucket_from_raw(raw: Numbers<'_, 7>) -> Option<TokenBucket> {
        let n = |index| raw.get(index);
        let refills = n(0) == REFILLING_TOKEN_BUCKET;
        refills.then(|| TokenBucket::from_raw([n(1), n(2), n(3)], true))
    }
}

macro_rules! into_any {
    ($($algorithm:ident)*) => {$(
        impl From<$algorithm> for AnyAlgorithm {
            #[inline(always)]
            fn from(algorithm: $algorithm) -> Self {
                Self::$algorithm(algorithm)
            }
        }
    )*};
}

into_any!(TokenBucket LeakyBucket IntervalBucket FixedWindow SlidingWindow);
