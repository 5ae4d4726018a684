use std::time::Duration;

use super::gcra::Gcra;
use super::{Algorithm, Word};
use crate::{Error, Quota, Timestamp};

/// A bucket of `burst` tokens that refills continuously: the default.
///
/// A call takes its cost in tokens if there are enough. In any time `t` at most
/// `burst + t/T` tokens are taken, where `T` is the [interval] between two tokens, and never
/// one more.
///
/// The word is the time at which the bucket is full again.
/// [Debt](Algorithm::debit_up_to) is limited to 2⁶² nanoseconds of refill.
///
/// [interval]: Quota::interval
///
/// ```
/// use spillgate::algorithm::{Algorithm, TokenBucket};
/// use spillgate::{Quota, Timestamp};
///
/// let bucket = TokenBucket::new(&Quota::per_second(1).burst(5).build()?)?;
/// let now = Timestamp::from_secs(1_700_000_000);
/// let word = bucket.spend(bucket.fresh(Timestamp::ZERO), now, 3).unwrap();
/// assert_eq!(bucket.remaining(word, now), 2);
/// assert_eq!(bucket.spend(word, now, 3), None);
/// # Ok::<(), spillgate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    gcra: Gcra,
    /// The word of a new caller.
    start: Word,
}

impl TokenBucket {
    /// A bucket that starts full.
    ///
    /// # Errors
    ///
    /// If the rate is above 1,000,000 per second and whole nanoseconds between two tokens would
    /// make it slower by more than 0.1 %.
    pub fn new(quota: &Quota) -> Result<Self, Error> {
        Ok(Self { gcra: Gcra::new(quota)?, start: Word(0) })
    }

    /// A bucket that is never refilled, so that a word counts what is taken. It may have no tokens
    /// at all.
    pub(crate) const fn counting(tokens: u64) -> Self {
        Self { gcra: Gcra::from_raw([1, tokens], 0, false), start: Word(0) }
    }

    /// A bucket that was empty at `born` and has been filling since.
    ///
    /// # Errors
    ///
    /// If the quota never refills: the bucket would stay empty. And as for
    /// [`new`](Self::new).
    pub fn starting_empty(quota: &Quota, born: Timestamp) -> Result<Self, Error> {
        let gcra = Gcra::new(quota)?;
        if !gcra.refills() {
            return Err(Error::algorithm(format!(
                "a bucket of \"{quota}\" is never refilled, so it cannot start empty"
            )));
        }
        Ok(Self { gcra, start: gcra.exhausted(born) })
    }

    /// A refund leaves no more than a new caller would have.
    fn not_beyond_the_start(self, word: Word, refunded: Word) -> Word {
        Word(refunded.0.max(self.start.0.min(word.0)))
    }

    /// The times in which a token refills, and the whole burst.
    #[inline(always)]
    pub(crate) const fn times(self) -> (u64, u64) {
        let [interval, span] = self.gcra.to_raw();
        (interval, span)
    }

    pub(super) const fn refills(self) -> bool {
        self.gcra.refills()
    }

    pub(super) const fn to_raw(self) -> [u64; 3] {
        let [interval, span] = self.gcra.to_raw();
        [interval, span, self.start.0]
    }

    #[inline(always)]
    pub(crate) const fn from_raw(
        [interval, span, start]: [u64; 3],
        rounding: u64,
        refills: bool,
    ) -> Self {
        Self { gcra: Gcra::from_raw([interval, span], rounding, refills), start: Word(start) }
    }

    /// The same with `start` as the word of a new caller.
    pub(super) const fn starting_from(self, start: Word) -> Self {
        Self { start, ..self }
    }

    pub(super) const fn rounding(self) -> u64 {
        self.gcra.rounding()
    }
}

impl Algorithm for TokenBucket {
    #[inline(always)]
    fn spend(&self, word: Word, now: Timestamp, cost: u64) -> Option<Word> {
        self.gcra.spend(word, now, cost)
    }

    fn debit_up_to(&self, word: Word, now: Timestamp, amount: u64, most: u64) -> Word {
        self.gcra.debit_up_to(word, now, amount, most)
    }

    fn refund(&self, word: Word, now: Timestamp, amount: u64) -> Word {
        self.not_beyond_the_start(word, self.gcra.refund(word, now, amount))
    }

    fn refund_call(&self, word: Word, now: Timestamp, amount: u64, spent: Word) -> Word {
        self.not_beyond_the_start(word, self.gcra.refund_call(word, now, amount, spent))
    }

    #[inline]
    fn spent(&self, word: Word, now: Timestamp) -> u64 {
        self.gcra.spent(word, now)
    }

    fn owed(&self, word: Word, now: Timestamp) -> u64 {
        self.gcra.owed(word, now)
    }

    fn idle_since(&self, word: Word, now: Timestamp) -> Timestamp {
        Gcra::idle_since(word, now)
    }

    #[inline]
    fn fresh(&self, floor: Timestamp) -> Word {
        // Idle at `floor` is a word of `floor`; without refill, time does not count.
        let floor = if self.gcra.refills() { floor.as_nanos() } else { 0 };
        Word(self.start.0.max(floor))
    }

    fn limit(&self) -> u64 {
        self.gcra.limit()
    }

    fn deepest(&self) -> u64 {
        self.gcra.deepest()
    }

    fn refill_in(&self, time: Duration) -> u64 {
        self.gcra.refill_in(time)
    }

    fn exhausted_from(&self) -> u64 {
        self.gcra.exhausted_from()
    }

    fn window(&self) -> Option<Duration> {
        self.gcra.window()
    }

    fn remaining(&self, word: Word, now: Timestamp) -> u64 {
        self.gcra.remaining(word, now)
    }

    fn retry_after(&self, word: Word, now: Timestamp, cost: u64) -> Option<Duration> {
        self.gcra.retry_after(word, now, cost)
    }

    fn reset_after(&self, word: Word, now: Timestamp) -> Option<Duration> {
        self.gcra.reset_after(word, now)
    }

    fn nominal_window(&self) -> Option<Duration> {
        self.gcra.nominal_window()
    }

    fn nominal_reset_after(&self, word: Word, now: Timestamp) -> Option<Duration> {
        self.gcra.nominal_reset_after(word, now)
    }

    fn carry_over(&self, word: Word, now: Timestamp, old: &Self) -> Word {
        self.gcra.carry_over(word, now, old.gcra)
    }

    fn keep(&self, word: Word, now: Timestamp, old: &Self) -> Word {
        self.gcra.keep(word, now, old.gcra)
    }

    fn rebase(&self, word: Word, then: Timestamp, now: Timestamp) -> Word {
        self.gcra.rebase(word, then, now)
    }
}
