use std::time::Duration;

use super::nominal::TAG_BITS;
use super::{
    Algorithm, FixedWindow, IntervalBucket, Layout, LeakyBucket, SlidingWindow, TokenBucket, Word,
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

/// Calls an algorithm with another of the same kind, or does something else.
macro_rules! of_one_kind {
    ($any:expr, $other:expr, |$new:ident, $old:ident| $call:expr, $else:expr) => {
        match ($any, $other) {
            (AnyAlgorithm::TokenBucket($new), AnyAlgorithm::TokenBucket($old)) => $call,
            (AnyAlgorithm::LeakyBucket($new), AnyAlgorithm::LeakyBucket($old)) => $call,
            (AnyAlgorithm::IntervalBucket($new), AnyAlgorithm::IntervalBucket($old)) => $call,
            (AnyAlgorithm::FixedWindow($new), AnyAlgorithm::FixedWindow($old)) => $call,
            (AnyAlgorithm::SlidingWindow($new), AnyAlgorithm::SlidingWindow($old)) => $call,
            _ => $else,
        }
    };
}

impl AnyAlgorithm {
    /// What is [spent](Algorithm::spent) if the whole burst is.
    pub(crate) fn whole(&self) -> u64 {
        match self.layout() {
            Layout::Bucket { span, .. } => span,
            _ => self.limit(),
        }
    }
}

impl Algorithm for AnyAlgorithm {
    fn spend(&self, word: Word, now: Timestamp, cost: u64) -> Option<Word> {
        chosen!(self, algorithm => algorithm.spend(word, now, cost))
    }

    fn debit_up_to(&self, word: Word, now: Timestamp, amount: u64, most: u64) -> Word {
        chosen!(self, algorithm => algorithm.debit_up_to(word, now, amount, most))
    }

    fn refund(&self, word: Word, now: Timestamp, amount: u64) -> Word {
        chosen!(self, algorithm => algorithm.refund(word, now, amount))
    }

    fn refund_call(&self, word: Word, now: Timestamp, amount: u64, spent: Word) -> Word {
        chosen!(self, algorithm => algorithm.refund_call(word, now, amount, spent))
    }

    #[inline]
    fn spent(&self, word: Word, now: Timestamp) -> u64 {
        chosen!(self, algorithm => algorithm.spent(word, now))
    }

    fn owed(&self, word: Word, now: Timestamp) -> u64 {
        chosen!(self, algorithm => algorithm.owed(word, now))
    }

    fn deepest(&self) -> u64 {
        chosen!(self, algorithm => algorithm.deepest())
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

    fn refill_in(&self, time: Duration) -> u64 {
        chosen!(self, algorithm => algorithm.refill_in(time))
    }

    fn exhausted_from(&self) -> u64 {
        chosen!(self, algorithm => algorithm.exhausted_from())
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

    fn nominal_window(&self) -> Option<Duration> {
        chosen!(self, algorithm => algorithm.nominal_window())
    }

    fn nominal_reset_after(&self, word: Word, now: Timestamp) -> Option<Duration> {
        chosen!(self, algorithm => algorithm.nominal_reset_after(word, now))
    }

    fn wait(&self, word: Word, now: Timestamp, cost: u64) -> Duration {
        chosen!(self, algorithm => algorithm.wait(word, now, cost))
    }

    /// Words of different algorithms have nothing in common: between them, a
    /// caller starts afresh.
    fn carry_over(&self, word: Word, now: Timestamp, old: &Self) -> Word {
        of_one_kind!(self, old, |new, old| new.carry_over(word, now, old), self.fresh(now))
    }

    fn keep(&self, word: Word, now: Timestamp, old: &Self) -> Word {
        of_one_kind!(self, old, |new, old| new.keep(word, now, old), self.fresh(now))
    }

    fn rebase(&self, word: Word, then: Timestamp, now: Timestamp) -> Word {
        chosen!(self, algorithm => algorithm.rebase(word, then, now))
    }
}

/// An algorithm as plain numbers, for a cell that is read without a lock: a tag and the
/// algorithm's own numbers. The rounding shares the tag's number, so that the hot path reads
/// no extra number for it.
pub(crate) type Raw = [u64; 7];

const REFILLING_TOKEN_BUCKET: u64 = 0;
const TAG: u64 = (1 << TAG_BITS) - 1;

impl AnyAlgorithm {
    /// The stricter of two words: the one with more spent or, if equal, for longer. If that is
    /// equal too, the second.
    #[must_use]
    pub fn larger(&self, one: Word, other: Word, now: Timestamp) -> Word {
        let rank = |word| {
            // What is never refilled is spent for longest.
            let reset_after = self.reset_after(word, now).unwrap_or(Duration::MAX);
            (self.spent(word, now), reset_after)
        };
        if rank(one) > rank(other) { one } else { other }
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
                write(tag | bucket.rounding(), &bucket.to_raw());
            }
            Self::LeakyBucket(bucket) => write(2 | bucket.rounding(), &bucket.to_raw()),
            Self::IntervalBucket(bucket) => {
                write(3 | bucket.rounding() << TAG_BITS, &bucket.to_raw());
            }
            Self::FixedWindow(window) => {
                write(4 | window.rounding() << TAG_BITS, &window.to_raw());
            }
            Self::SlidingWindow(window) => write(5, &window.to_raw()),
        }
        raw
    }

    /// The algorithm of [raw](Self::to_raw) numbers.
    pub(crate) fn from_raw(raw: Numbers<'_, 7>) -> Self {
        let n = |index| raw.get(index);
        let first = n(0);
        let (parts, nanos) = (first & !TAG, first >> TAG_BITS);
        match first & TAG {
            tag @ 0..=1 => {
                let refills = tag == REFILLING_TOKEN_BUCKET;
                Self::TokenBucket(TokenBucket::from_raw([n(1), n(2), n(3)], parts, refills))
            }
            2 => Self::LeakyBucket(LeakyBucket::from_raw([n(1), n(2), n(3)], parts)),
            3 => {
                let all = [n(1), n(2), n(3), n(4), n(5), n(6)];
                Self::IntervalBucket(IntervalBucket::from_raw(all, nanos))
            }
            4 => Self::FixedWindow(FixedWindow::from_raw([n(1), n(2), n(3), n(4)], nanos)),
            _ => Self::SlidingWindow(SlidingWindow::from_raw([n(1), n(2), n(3)])),
        }
    }

    /// The same, if it is a token bucket that refills: by far the most are.
    #[inline(always)]
    pub(crate) fn token_bucket_from_raw(raw: Numbers<'_, 7>) -> Option<TokenBucket> {
        let n = |index| raw.get(index);
        let first = n(0);
        let refills = first & TAG == REFILLING_TOKEN_BUCKET;
        refills.then(|| TokenBucket::from_raw([n(1), n(2), n(3)], first, true))
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
