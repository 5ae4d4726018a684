//! The algorithms: pure functions over one 64-bit word per caller.
//!
//! | algorithm | word | guarantee, for a quota of `amount` per `period` |
//! |---|---|---|
//! | [`TokenBucket`] | when the bucket is full again | at most `burst + t/T` in any time `t` |
//! | [`LeakyBucket`] | when the queue is empty again | the same; the shaper also spaces calls evenly |
//! | [`IntervalBucket`] | last refill, tokens spent | at most `burst + amount·(⌊t/period⌋ + 1)` in any time `t` |
//! | [`FixedWindow`] | window, count | `amount` in each window, so up to twice that across a boundary |
//! | [`SlidingWindow`] | window, previous and current count | up to nearly twice the amount in the worst case |
//!
//! Nothing here reads a clock, takes a lock or allocates. The same functions decide in memory,
//! in tests and for a remote store.

mod any;
mod debt;
mod fixed_window;
mod gcra;
mod interval_bucket;
mod kind;
mod layout;
mod leaky_bucket;
mod nominal;
mod packing;
mod sliding_window;
mod spend_record;
mod token_bucket;
mod tokens;

use std::time::Duration;

pub use self::any::AnyAlgorithm;
pub use self::fixed_window::FixedWindow;
pub use self::interval_bucket::IntervalBucket;
pub use self::kind::AlgorithmKind;
pub use self::layout::Layout;
pub use self::leaky_bucket::LeakyBucket;
pub use self::sliding_window::SlidingWindow;
pub use self::spend_record::SpendRecord;
pub use self::token_bucket::TokenBucket;
pub(crate) use self::tokens::Tokens;
use crate::Timestamp;

/// The state of one caller under one limit.
///
/// The algorithm defines the [bits](Layout). `u64::MAX` is not a valid word: a
/// [`Table`](crate::Table) uses it to mark a slot that is changing hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word(u64);

impl Word {
    /// A word from its bits, as [`to_bits`](Self::to_bits) gave them;
    /// `u64::MAX` becomes the word below it.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(if bits == u64::MAX { u64::MAX - 1 } else { bits })
    }

    /// The bits, for storing.
    #[inline]
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }
}

/// A quota and how it is spent over time.
///
/// Each method is a pure function. An idle word (nothing [`spent`](Self::spent)) is equivalent
/// to no word. All arithmetic is on integers and rounds towards fewer admissions; none
/// overflows or panics, whatever the word, the time or the cost.
///
/// Time may go backwards: that never allows a call that would be denied if time had stopped.
///
/// The trait is sealed: tables and snapshots enumerate the five algorithms.
pub trait Algorithm: Copy + sealed::Sealed {
    /// Spends `cost` if allowed at `now`, and returns the word to store. A cost of 0 is always
    /// allowed and changes nothing.
    #[must_use]
    fn spend(&self, word: Word, now: Timestamp, cost: u64) -> Option<Word>;

    /// Spends `amount` unconditionally, into debt beyond the burst, but leaves no more than
    /// `most` spent in total, nor more than the [deepest](Self::deepest) debt. If more is spent
    /// already, it stays.
    #[must_use]
    fn debit_up_to(&self, word: Word, now: Timestamp, amount: u64, most: u64) -> Word;

    /// Refunds `amount`, never beyond what a new caller would have.
    #[must_use]
    fn refund(&self, word: Word, now: Timestamp, amount: u64) -> Word;

    /// Refunds up to `amount` of a call that left the word `spent`, except what has been
    /// refilled since: for a bucket what `spent` still owes, for a window only what counts in
    /// the window of the call.
    #[must_use]
    fn refund_call(&self, word: Word, now: Timestamp, amount: u64, spent: Word) -> Word;

    /// How much is spent, on a scale that orders callers of one limit by their share of the
    /// burst. Zero means idle.
    #[must_use]
    fn spent(&self, word: Word, now: Timestamp) -> u64;

    /// How many tokens are spent, rounded up: more than the [limit](Self::limit) if the
    /// caller is in debt.
    #[must_use]
    fn owed(&self, word: Word, now: Timestamp) -> u64;

    /// The most that the word can represent as [owed](Self::owed).
    #[must_use]
    fn deepest(&self) -> u64;

    /// The earliest known time since which an idle caller has been idle.
    #[must_use]
    fn idle_since(&self, _word: Word, now: Timestamp) -> Timestamp {
        now
    }

    /// The word of a caller that was idle at `floor`.
    #[must_use]
    fn fresh(&self, floor: Timestamp) -> Word;

    /// The most that can be spent at once.
    #[must_use]
    fn limit(&self) -> u64;

    /// How much refills in some time, or can be spent in the windows of that time.
    #[must_use]
    fn refill_in(&self, time: Duration) -> u64;

    /// The smallest [spent](Self::spent) with which nothing remains.
    #[must_use]
    fn exhausted_from(&self) -> u64;

    /// The time in which the whole limit refills, or the length of a window; `None` if the quota
    /// never refills.
    #[must_use]
    fn window(&self) -> Option<Duration>;

    /// The largest cost that would be allowed at `now`.
    #[must_use]
    fn remaining(&self, word: Word, now: Timestamp) -> u64;

    /// The time until `cost` would be allowed, zero if it is now; `None` if waiting does not
    /// help.
    #[must_use]
    fn retry_after(&self, word: Word, now: Timestamp, cost: u64) -> Option<Duration>;

    /// The time until nothing is spent any more; `None` if the quota never refills.
    #[must_use]
    fn reset_after(&self, word: Word, now: Timestamp) -> Option<Duration>;

    /// The [window](Self::window) as the quota states it: the actual one may be a little longer,
    /// since words hold whole nanoseconds, or steps of several.
    #[must_use]
    fn nominal_window(&self) -> Option<Duration> {
        self.window()
    }

    /// [`reset_after`](Self::reset_after) as the quota states it: earlier by no more than what
    /// was rounded up, and the roundest of the possible times.
    #[must_use]
    fn nominal_reset_after(&self, word: Word, now: Timestamp) -> Option<Duration> {
        self.reset_after(word, now)
    }

    /// How long a call of `cost` that has just left `word` should wait before it proceeds. Zero
    /// except for a shaper.
    #[must_use]
    fn wait(&self, _word: Word, _now: Timestamp, _cost: u64) -> Duration {
        Duration::ZERO
    }

    /// Translates a word of `old` into one of `self`, which may have another quota. The
    /// same quota leaves the word unchanged. Otherwise what is spent stays spent, in tokens:
    /// of the old burst no more than the new one has, and all debt beyond it.
    ///
    /// Where `word` would count for less under `self` than under `old`, the result differs, so
    /// that the compare-exchange of a concurrent decision on the old word fails.
    #[must_use]
    fn carry_over(&self, word: Word, now: Timestamp, old: &Self) -> Word;

    /// A word of `old` under `self`, a share of its quota: buckets owe the same time, windows have
    /// the same count.
    #[must_use]
    fn keep(&self, word: Word, now: Timestamp, old: &Self) -> Word;

    /// A word that means at `now` what `word` meant at `then`: for words from another clock,
    /// for example in a snapshot. Aligned windows follow the new clock.
    #[must_use]
    fn rebase(&self, word: Word, then: Timestamp, now: Timestamp) -> Word;
}

/// What a new caller may spend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Start {
    /// The whole burst.
    #[default]
    Full,
    /// Nothing yet: the bucket fills from the moment the limiter is built.
    Empty,
}

mod sealed {
    #[expect(unnameable_types, reason = "what seals the trait")]
    pub trait Sealed {}
    impl Sealed for super::TokenBucket {}
    impl Sealed for super::LeakyBucket {}
    impl Sealed for super::IntervalBucket {}
    impl Sealed for super::FixedWindow {}
    impl Sealed for super::SlidingWindow {}
    impl Sealed for super::AnyAlgorithm {}
}
