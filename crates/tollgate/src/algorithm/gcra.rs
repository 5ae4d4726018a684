use std::time::Duration;

use super::Word;
use crate::{Quota, Timestamp};

/// The arithmetic that token and leaky bucket share: the generic cell rate
/// algorithm over the time at which everything spent is restored.
///
/// With `T` the interval of one unit, `word - now` is the debt in nanoseconds,
/// and a cost passes if the debt it leaves is at most `burst·T`. All terms are at
/// most 2⁶² (see [`Timestamp::MAX`] and the limits of [`Quota`]), so sums of
/// three stay inside a `u64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gcra {
    /// `T`, in nanoseconds.
    interval: u64,
    /// `burst·T`.
    span: u64,
    /// False for a quota that is never refilled: then time stands still at zero,
    /// `T` is 1 and the word simply counts what is spent.
    refills: bool,
}

/// No debt is deeper, so that words stay clear of `u64::MAX`.
const DEEPEST: u64 = 1 << 63;

impl Gcra {
    pub(super) fn new(quota: &Quota) -> Self {
        let interval = quota.interval().map_or(1, |interval| interval.as_nanos() as u64);
        Self { interval, span: quota.burst() * interval, refills: quota.period().is_some() }
    }

    pub(super) const fn to_raw(self) -> [u64; 2] {
        [self.interval, self.span]
    }

    pub(super) const fn from_raw([interval, span]: [u64; 2], refills: bool) -> Self {
        Self { interval, span, refills }
    }

    pub(super) const fn refills(self) -> bool {
        self.refills
    }

    pub(super) const fn limit(self) -> u64 {
        self.span / self.interval
    }

    pub(super) fn window(self) -> Option<Duration> {
        self.refills.then(|| Duration::from_nanos(self.span))
    }

    /// The word of a bucket that is empty at `now`.
    pub(super) const fn exhausted(self, now: Timestamp) -> Word {
        Word(self.time(now) + self.span)
    }

    #[inline(always)]
    pub(super) fn spend(self, word: Word, now: Timestamp, cost: u64) -> Option<Word> {
        let now = self.time(now);
        let price = cost.checked_mul(self.interval)?;
        let room = self.span.checked_sub(price)?;
        let base = word.0.max(now);
        if base - now <= room {
            return Some(if cost == 0 { word } else { Word(base + price) });
        }
        // A peek passes even for a client in debt beyond its burst.
        (cost == 0).then_some(word)
    }

    pub(super) fn charge(self, word: Word, now: Timestamp, amount: u64) -> Word {
        let price = amount.saturating_mul(self.interval);
        let base = word.0.max(self.time(now));
        // A word that is deeper already, as only a foreign one can be, stays so.
        Word(base.saturating_add(price).min(DEEPEST.max(word.0)))
    }

    pub(super) fn refund(self, word: Word, now: Timestamp, amount: u64) -> Word {
        let price = amount.saturating_mul(self.interval);
        // Not below `now`: idle is as full as a bucket gets, also if time steps back.
        Word(word.0.saturating_sub(price).max(self.time(now).min(word.0)))
    }

    #[inline]
    pub(super) const fn spent(self, word: Word, now: Timestamp) -> u64 {
        word.0.saturating_sub(self.time(now))
    }

    /// The word is the very moment.
    pub(super) fn idle_since(word: Word, now: Timestamp) -> Timestamp {
        now.min(Timestamp::from_nanos(word.0))
    }

    pub(super) const fn remaining(self, word: Word, now: Timestamp) -> u64 {
        self.span.saturating_sub(self.spent(word, now)) / self.interval
    }

    pub(super) fn retry_after(self, word: Word, now: Timestamp, cost: u64) -> Option<Duration> {
        if cost == 0 {
            return Some(Duration::ZERO);
        }
        let room = self.span.checked_sub(cost.checked_mul(self.interval)?)?;
        let excess = self.spent(word, now).saturating_sub(room);
        (self.refills || excess == 0).then(|| Duration::from_nanos(excess))
    }

    pub(super) fn reset_after(self, word: Word, now: Timestamp) -> Option<Duration> {
        let debt = self.spent(word, now);
        (self.refills || debt == 0).then(|| Duration::from_nanos(debt))
    }

    /// How long before a call that left `word` behind reaches the head of the queue.
    pub(super) fn wait(self, word: Word, now: Timestamp, cost: u64) -> Duration {
        let price = cost.saturating_mul(self.interval);
        Duration::from_nanos(self.spent(word, now).saturating_sub(price))
    }

    pub(super) fn carry_over(self, word: Word, now: Timestamp, old: Self) -> Word {
        let debt = u128::from(old.spent(word, now)) * u128::from(self.interval);
        let debt = debt.div_ceil(u128::from(old.interval)).min(u128::from(self.span)) as u64;
        let now = self.time(now);
        let carried = now + debt;
        // An idle word must move as well: a decision that priced its call under
        // the old quota would otherwise still find the word it started from.
        let unmoved = debt == 0 && carried == word.0 && self.interval != old.interval;
        Word(if unmoved { carried.saturating_sub(1) } else { carried })
    }

    pub(super) fn rebase(self, word: Word, then: Timestamp, now: Timestamp) -> Word {
        Word(self.time(now) + self.spent(word, then).min(DEEPEST))
    }

    #[inline(always)]
    const fn time(self, now: Timestamp) -> u64 {
        if self.refills { now.as_nanos() } else { 0 }
    }
}
