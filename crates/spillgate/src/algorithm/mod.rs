//! How a quota is spent over time: pure functions over one 64-bit word.
//!
//! | algorithm | word | guarantee, for a quota of `amount` per `period` |
//! |---|---|---|
//! | [`TokenBucket`] | when the bucket is full again | at most `burst + t/T` in any time `t` |
//! | [`LeakyBucket`] | when the queue is empty again | the same; the shaper also spaces calls evenly |
//! | [`IntervalBucket`] | last refill, tokens spent | at most `burst + amount·(⌊t/period⌋ + 1)` in any time `t` |
//! | [`FixedWindow`] | window, count | `amount` in each window, so up to twice that across a boundary |
//! | [`SlidingWindow`] | window, previous and current count | up to nearly twice the amount in the worst case |
//!
//! Nothing here reads a clock, takes a lock or allocates, so the same functions
//! decide in memory, in a test and over a remote store.

mod any;
mod charged;
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
mod token_bucket;

use std::time::Duration;

pub use self::any::AnyAlgorithm;
pub use self::charged::Charged;
pub use self::fixed_window::FixedWindow;
pub use self::interval_bucket::IntervalBucket;
pub use self::kind::AlgorithmKind;
pub use self::layout::Layout;
pub use self::leaky_bucket::LeakyBucket;
pub use self::sliding_window::SlidingWindow;
pub use self::token_bucket::TokenBucket;
use crate::Timestamp;

/// All that is known of one client under one limit.
///
/// What the bits mean is the algorithm's business. `u64::MAX` is never a word:
/// a [`Table`](crate::Table) uses it to mark a slot that is changing hands.
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

/// A quota being spent over time.
///
/// Each method is a pure function of the word it is given. A word that is idle
/// (nothing [`spent`](Self::spent)) means the same as no word at all. All
/// arithmetic is on integers and rounds towards fewer admissions; none of it
/// overflows or panics, whatever the word, the time or the cost.
///
/// Time may go backwards: no call passes then that would not have passed had time
/// stood still.
///
/// The trait is sealed: tables and snapshots know the five algorithms by name.
pub trait Algorithm: Copy + sealed::Sealed {
    /// Spends `cost` if it passes at `now`, and returns the word to store. A
    /// cost of 0 always passes and changes nothing.
    #[must_use]
    fn spend(&self, word: Word, now: Timestamp, cost: u64) -> Option<Word>;

    /// Takes `amount` whether or not it passes, going into debt beyond the burst, but
    /// leaves no more than `most` spent in all, nor more than the [deepest](Self::deepest)
    /// debt. Who has more spent already keeps that.
    #[must_use]
    fn debit_up_to(&self, word: Word, now: Timestamp, amount: u64, most: u64) -> Word;

    /// Gives `amount` back, never beyond what a client never seen would have.
    #[must_use]
    fn refund(&self, word: Word, now: Timestamp, amount: u64) -> Word;

    /// Gives back up to `amount` of a call that left `charged` behind, but nothing of what
    /// has been refilled since: of a bucket what `charged` still owes, of a window only
    /// what counts in the window that was charged.
    #[must_use]
    fn give_back(&self, word: Word, now: Timestamp, amount: u64, charged: Word) -> Word;

    /// How much is spent, on a scale that orders the clients of one limit by
    /// their share of the burst. Zero means idle.
    #[must_use]
    fn spent(&self, word: Word, now: Timestamp) -> u64;

    /// How many tokens are spent, rounded up: more than the [limit](Self::limit) if the
    /// client is in debt.
    #[must_use]
    fn owed(&self, word: Word, now: Timestamp) -> u64;

    /// The most that can be [owed](Self::owed): what the word can tell.
    #[must_use]
    fn deepest(&self) -> u64;

    /// A moment, as early as can be told, since when an idle client has been idle.
    #[must_use]
    fn idle_since(&self, _word: Word, now: Timestamp) -> Timestamp {
        now
    }

    /// The word of a client of whom all that is known is that it was idle at
    /// `floor`.
    #[must_use]
    fn fresh(&self, floor: Timestamp) -> Word;

    /// The most that can be spent at once.
    #[must_use]
    fn limit(&self) -> u64;

    /// How much is refilled in some time, or can be spent in the windows that it has.
    #[must_use]
    fn refill_in(&self, time: Duration) -> u64;

    /// From how much [spent](Self::spent) on, nothing remains.
    #[must_use]
    fn exhausted_from(&self) -> u64;

    /// The time in which the whole limit is refilled, or begins anew; `None` if it
    /// never is.
    #[must_use]
    fn window(&self) -> Option<Duration>;

    /// The largest cost that would pass at `now`.
    #[must_use]
    fn remaining(&self, word: Word, now: Timestamp) -> u64;

    /// The time until `cost` would first pass, zero if it passes now; `None` if
    /// no waiting helps.
    #[must_use]
    fn retry_after(&self, word: Word, now: Timestamp, cost: u64) -> Option<Duration>;

    /// The time until nothing is spent any more; `None` if that never comes.
    #[must_use]
    fn reset_after(&self, word: Word, now: Timestamp) -> Option<Duration>;

    /// The [window](Self::window) as the quota says it: a word may keep it a little longer,
    /// since it holds whole nanoseconds, or steps of several.
    #[must_use]
    fn nominal_window(&self) -> Option<Duration> {
        self.window()
    }

    /// The time until nothing is spent any more as the quota says it: earlier than
    /// [really](Self::reset_after) by no more than what was rounded up. Of the moments that the
    /// quota allows for it is the roundest.
    #[must_use]
    fn nominal_reset_after(&self, word: Word, now: Timestamp) -> Option<Duration> {
        self.reset_after(word, now)
    }

    /// How long a call of `cost` that has just left `word` behind should wait
    /// before it goes ahead. Zero for everything but a shaper.
    #[must_use]
    fn wait(&self, _word: Word, _now: Timestamp, _cost: u64) -> Duration {
        Duration::ZERO
    }

    /// Translates a word of `old` into one of `self`, which may have another quota. The
    /// same quota leaves the word as it is. Otherwise what is spent stays spent, in tokens:
    /// of the old burst no more than the new one has, and all that is owed beyond it.
    ///
    /// Where `word` would count for less under `self` than under `old`, the result
    /// differs from it, so that a decision still under way on the old word fails its
    /// exchange.
    #[must_use]
    fn carry_over(&self, word: Word, now: Timestamp, old: &Self) -> Word;

    /// A word of `old` under `self`, a quota of another [tier](AlgorithmKind::with_quotas):
    /// buckets owe the same time, windows have the same count.
    #[must_use]
    fn keep(&self, word: Word, now: Timestamp, old: &Self) -> Word;

    /// A word that means at `now` what `word` meant at `then`: for a client that comes
    /// from another clock, out of a snapshot for example. Windows that follow the clock
    /// follow the new one.
    #[must_use]
    fn rebase(&self, word: Word, then: Timestamp, now: Timestamp) -> Word;
}

/// What a client that has never been seen may spend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Start {
    /// The whole burst, at once.
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
