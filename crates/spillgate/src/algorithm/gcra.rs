use std::time::Duration;

use super::Word;
use super::nominal::{longer, roundest, rounding_of};
use crate::{Error, Quota, Timestamp};

/// The arithmetic that token bucket and leaky bucket share: the generic cell rate
/// algorithm over the time at which the bucket is full again.
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
    /// How much [longer](rounding_of) `T` is than the quota says.
    rounding: u64,
    /// False for a quota that never refills: time is then always zero, `T` is 1 and the word
    /// counts what is spent.
    refills: bool,
}

/// No word is later, so that words stay clear of `u64::MAX`.
const LATEST: u64 = 1 << 63;

/// Any debt of up to this many nanoseconds can be represented, at any time.
const DEEPEST: u64 = 1 << 62;

impl Gcra {
    pub(super) fn new(quota: &Quota) -> Result<Self, Error> {
        let interval = quota.interval().map_or(1, |interval| interval.as_nanos() as u64);
        refuse_a_slow_rate(quota, interval)?;
        let (span, rounding) = (quota.burst() * interval, rounding_of(quota, interval));
        Ok(Self { interval, span, rounding, refills: quota.period().is_some() })
    }

    pub(super) const fn to_raw(self) -> [u64; 2] {
        [self.interval, self.span]
    }

    #[inline(always)]
    pub(super) const fn from_raw([interval, span]: [u64; 2], rounding: u64, refills: bool) -> Self {
        Self { interval, span, rounding, refills }
    }

    pub(super) const fn rounding(self) -> u64 {
        self.rounding
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

    pub(super) fn nominal_window(self) -> Option<Duration> {
        let nanos = self.span - longer(self.limit(), self.rounding);
        self.refills.then(|| Duration::from_nanos(nanos))
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
        // A peek passes even for a caller in debt beyond its burst.
        (cost == 0).then_some(word)
    }

    /// Spends `amount`, but leaves no more than `most` spent in total.
    pub(super) fn debit_up_to(self, word: Word, now: Timestamp, amount: u64, most: u64) -> Word {
        let price = amount.saturating_mul(self.interval);
        let now = self.time(now);
        let deepest = now.saturating_add(most.saturating_mul(self.interval)).min(LATEST);
        // A word that is deeper already stays so.
        Word(word.0.max(now).saturating_add(price).min(deepest.max(word.0)))
    }

    pub(super) fn refund(self, word: Word, now: Timestamp, amount: u64) -> Word {
        self.refund_call(word, now, amount, Word(u64::MAX))
    }

    /// Refunds `amount` of a call that left the word `spent`, except what has been refilled
    /// since: refill is complete at the time that `spent` is.
    pub(super) fn refund_call(self, word: Word, now: Timestamp, amount: u64, spent: Word) -> Word {
        let price = amount.saturating_mul(self.interval).min(self.spent(spent, now));
        // Not below `now`: idle is as full as a bucket gets, also if time steps back.
        Word(word.0.saturating_sub(price).max(self.time(now).min(word.0)))
    }

    /// How many tokens are spent, rounded up.
    pub(super) const fn owed(self, word: Word, now: Timestamp) -> u64 {
        self.spent(word, now).div_ceil(self.interval)
    }

    /// The most tokens that can be owed.
    pub(super) const fn deepest(self) -> u64 {
        DEEPEST / self.interval
    }

    /// How many tokens refill in some time.
    pub(super) fn refill_in(self, time: Duration) -> u64 {
        let tokens = if self.refills { time.as_nanos() / u128::from(self.interval) } else { 0 };
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }

    /// From how much spent on, nothing remains.
    pub(super) const fn exhausted_from(self) -> u64 {
        // In this order: a bucket that counts permits may have no span.
        self.span + 1 - self.interval
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

    pub(super) fn nominal_reset_after(self, word: Word, now: Timestamp) -> Option<Duration> {
        let debt = self.spent(word, now);
        if !self.refills || debt == 0 {
            return self.reset_after(word, now);
        }
        let owed = debt.div_ceil(self.interval);
        // Up to a burst may have been spent with them, and be refilled.
        let spent = owed.saturating_add(self.limit());
        let [latest, earliest] = [owed, spent].map(|tokens| longer(tokens, self.rounding));
        Some(roundest(debt.saturating_sub(earliest), debt - latest))
    }

    /// The time until a call that left `word` reaches the head of the queue.
    pub(super) fn wait(self, word: Word, now: Timestamp, cost: u64) -> Duration {
        let price = cost.saturating_mul(self.interval);
        Duration::from_nanos(self.spent(word, now).saturating_sub(price))
    }

    pub(super) fn carry_over(self, word: Word, now: Timestamp, old: Self) -> Word {
        if self == old {
            return word;
        }
        let spent = old.spent(word, now);
        let (within, beyond) = (spent.min(old.span), spent.saturating_sub(old.span));
        let [within, beyond, span, interval, old_interval] =
            [within, beyond, self.span, self.interval, old.interval].map(u128::from);
        // Tokens, as multiples of both intervals: of the burst no more than there is now, of
        // what is owed beyond it everything.
        let debt = (within * interval).min(span * old_interval) + beyond * interval;
        let debt = debt.div_ceil(old_interval);
        let now = self.time(now);
        let carried = (u128::from(now) + debt).min(u128::from(LATEST)) as u64;
        // A concurrent call was priced under the old quota: it must not find the word that it
        // started from. An idle word changes as well, and stays idle.
        let is_misread = carried == word.0 && self.interval != old.interval;
        Word(match (is_misread, debt) {
            (false, _) => carried,
            (true, 0) => carried.saturating_sub(1),
            (true, _) => carried + 1,
        })
    }

    /// The word under `self`: unchanged, as long as it is a time for both.
    pub(super) fn keep(self, word: Word, now: Timestamp, old: Self) -> Word {
        if self.refills == old.refills { word } else { self.carry_over(word, now, old) }
    }

    pub(super) fn rebase(self, word: Word, then: Timestamp, now: Timestamp) -> Word {
        Word((self.time(now) + self.spent(word, then).min(LATEST)).min(LATEST))
    }

    #[inline(always)]
    const fn time(self, now: Timestamp) -> u64 {
        if self.refills { now.as_nanos() } else { 0 }
    }
}

/// Rejects a rate that whole nanoseconds between two tokens would slow down by more than
/// 0.1 %: only rates above a million per second can be.
fn refuse_a_slow_rate(quota: &Quota, interval: u64) -> Result<(), Error> {
    let Some(period) = quota.period() else { return Ok(()) };
    let kept = u128::from(interval) * u128::from(quota.amount());
    let slower = kept - period.as_nanos();
    if slower * 1000 <= kept {
        return Ok(());
    }
    let percent = slower as f64 * 100.0 / kept as f64;
    Err(Error::algorithm(format!(
        "\"{quota}\" is one every {} to {interval} ns; a bucket keeps whole nanoseconds and would \
         be {percent:.1} % slower: use \"1 per {interval} ns burst {}\", count in larger units, \
         or use a fixed-window",
        interval - 1,
        quota.burst(),
    )))
}
