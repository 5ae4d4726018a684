use std::time::Duration;

use super::{Algorithm, AnyAlgorithm, Layout, Word};
use crate::Timestamp;

/// Tokens and parts of them, in units of 2⁻⁶⁴. Rounds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tokens(u128);

impl Tokens {
    pub(crate) const NONE: Self = Self(0);

    pub(crate) const fn whole(tokens: u64) -> Self {
        Self((tokens as u128) << 64)
    }

    /// What refills in some nanoseconds.
    fn of_time(nanos: u64, interval: u64) -> Self {
        Self((u128::from(nanos) << 64).div_ceil(u128::from(interval)))
    }

    /// The nanoseconds in which they refill.
    fn time(self, interval: u64) -> u64 {
        let wide = u128::from(interval);
        let whole = (self.0 >> 64).saturating_mul(wide);
        let part = ((self.0 & u128::from(u64::MAX)) * wide) >> 64;
        let nanos = u64::try_from(whole.saturating_add(part)).unwrap_or(u64::MAX);
        // Time makes tokens that are rounded up: then it is enough.
        if Self::of_time(nanos, interval) < self { nanos.saturating_add(1) } else { nanos }
    }

    fn rounded_up(self) -> u64 {
        u64::try_from(self.0.div_ceil(1 << 64)).unwrap_or(u64::MAX)
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl AnyAlgorithm {
    /// What a word owes.
    pub(crate) fn tokens(&self, word: Word, now: Timestamp) -> Tokens {
        match self.layout() {
            Layout::Bucket { interval, .. } => Tokens::of_time(self.spent(word, now), interval),
            _ => Tokens::whole(self.owed(word, now)),
        }
    }

    /// A word that owes so much, of the same window if there are windows. No refund leaves less
    /// than a new caller has spent.
    pub(crate) fn with_tokens(&self, word: Word, now: Timestamp, tokens: Tokens) -> Word {
        let owed = self.owed(word, now);
        match self.layout() {
            Layout::Bucket { interval, refills, .. } => {
                let time = if refills { now.as_nanos() } else { 0 };
                let nanos = tokens.time(interval).min(LATEST - time);
                let full = if tokens == Tokens::NONE { time.min(word.0) } else { time + nanos };
                Word(full.max(self.fresh(Timestamp::ZERO).0.min(word.0)))
            }
            _ if tokens.rounded_up() >= owed => {
                self.debit_up_to(word, now, tokens.rounded_up() - owed, self.deepest())
            }
            _ => self.refund(word, now, owed - tokens.rounded_up()),
        }
    }

    /// What can be spent at once.
    pub(crate) fn burst(&self) -> Tokens {
        Tokens::whole(self.limit())
    }

    /// How long a token takes to refill: of what is never refilled, longest.
    pub(crate) fn token_time(&self) -> Duration {
        match self.layout() {
            Layout::Bucket { interval, refills: true, .. } => Duration::from_nanos(interval),
            Layout::IntervalBucket { quantum, period, amount, .. } => {
                Duration::from_nanos(quantum.saturating_mul(period))
                    / u32::try_from(amount).unwrap_or(u32::MAX)
            }
            _ => Duration::MAX,
        }
    }

    /// True if windows begin by the clock, for all callers at once.
    pub(crate) fn is_aligned(&self) -> bool {
        matches!(
            self.layout(),
            Layout::FixedWindow { length: 1, .. } | Layout::SlidingWindow { .. }
        )
    }

    /// True if what is spent is forgotten when a window ends, and not refilled bit by bit.
    pub(crate) const fn has_windows(&self) -> bool {
        matches!(self, Self::FixedWindow(_) | Self::SlidingWindow(_))
    }
}

/// No word of a bucket is later.
const LATEST: u64 = 1 << 63;
