use std::time::Duration;

use super::gcra::Gcra;
use super::{Algorithm, Word};
use crate::{Error, Quota, Timestamp};

/// A queue of `burst` places that drains at a steady rate.
///
/// As a [`meter`](Self::meter) it allows a call at once if there is a place for it, exactly
/// as a [`TokenBucket`](super::TokenBucket) does. As a [`shaper`](Self::shaper) it also says
/// how long the call should [`wait`](Algorithm::wait), so that calls leave evenly spaced.
///
/// The capacity counts the call that is leaving: nginx's `limit_req` with
/// `burst=b` is a shaper with `burst b+1`.
///
/// The word is the time at which the queue is empty again. All places are
/// [`remaining`](Algorithm::remaining) then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeakyBucket {
    gcra: Gcra,
    shapes: bool,
}

impl LeakyBucket {
    /// A queue that is only counted: calls that find a place proceed at once.
    ///
    /// # Errors
    ///
    /// If the quota never refills: a queue has to drain. And as for
    /// [`TokenBucket::new`](super::TokenBucket::new).
    pub fn meter(quota: &Quota) -> Result<Self, Error> {
        Self::new(quota, false)
    }

    /// A queue in which calls wait: they proceed one interval apart.
    ///
    /// # Errors
    ///
    /// If the quota never refills: a queue has to drain. And as for
    /// [`TokenBucket::new`](super::TokenBucket::new).
    pub fn shaper(quota: &Quota) -> Result<Self, Error> {
        Self::new(quota, true)
    }

    fn new(quota: &Quota, shapes: bool) -> Result<Self, Error> {
        let gcra = Gcra::new(quota)?;
        if !gcra.refills() {
            return Err(Error::algorithm(format!(
                "a leaky bucket has to drain, and \"{quota}\" never does; \
                 give it a rate, as in \"10/s\", or use a token bucket"
            )));
        }
        Ok(Self { gcra, shapes })
    }

    pub(super) const fn to_raw(self) -> [u64; 3] {
        let [interval, span] = self.gcra.to_raw();
        [interval, span, self.shapes as u64]
    }

    pub(super) const fn from_raw([interval, span, shapes]: [u64; 3], rounding: u64) -> Self {
        Self { gcra: Gcra::from_raw([interval, span], rounding, true), shapes: shapes != 0 }
    }

    pub(super) const fn rounding(self) -> u64 {
        self.gcra.rounding()
    }
}

impl Algorithm for LeakyBucket {
    #[inline]
    fn spend(&self, word: Word, now: Timestamp, cost: u64) -> Option<Word> {
        self.gcra.spend(word, now, cost)
    }

    fn debit_up_to(&self, word: Word, now: Timestamp, amount: u64, most: u64) -> Word {
        self.gcra.debit_up_to(word, now, amount, most)
    }

    fn refund(&self, word: Word, now: Timestamp, amount: u64) -> Word {
        self.gcra.refund(word, now, amount)
    }

    fn refund_call(&self, word: Word, now: Timestamp, amount: u64, spent: Word) -> Word {
        self.gcra.refund_call(word, now, amount, spent)
    }

    fn spent(&self, word: Word, now: Timestamp) -> u64 {
        self.gcra.spent(word, now)
    }

    fn owed(&self, word: Word, now: Timestamp) -> u64 {
        self.gcra.owed(word, now)
    }

    fn idle_since(&self, word: Word, now: Timestamp) -> Timestamp {
        Gcra::idle_since(word, now)
    }

    fn fresh(&self, floor: Timestamp) -> Word {
        Word(floor.as_nanos())
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

    fn wait(&self, word: Word, now: Timestamp, cost: u64) -> Duration {
        if self.shapes { self.gcra.wait(word, now, cost) } else { Duration::ZERO }
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
