use std::time::Duration;

use super::packing::{Packing, carried, period_of, refill_in};
use super::{Algorithm, Word};
use crate::{Error, Quota, Timestamp};

/// A bucket of `burst` tokens that receives `amount` tokens once per `period`, all at once.
///
/// A caller's periods begin with the call that found its bucket full, so a full
/// bucket that is emptied refills one whole period later. A call between two refills
/// does not restart the period. Around a refill, nearly
/// `burst + amount` tokens can be taken at once (nearly twice the burst, if
/// the amount is larger); over any time `t` at most
/// `burst + amount·(⌊t/period⌋ + 1)`.
///
/// The word is the time of the last refill and what is spent. The time is kept
/// in steps of less than a thousandth of the period and rounded up, so the rate
/// is never above the stated one and below it by less than 0.1 %. For a period of one second,
/// the burst can be up to a million; every doubling of the period doubles that. Debt is limited
/// to the refill of 36 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalBucket {
    packing: Packing,
    /// The period, in quanta.
    period: u64,
    amount: u64,
    burst: u64,
    /// The word of a new caller.
    start: Word,
    /// How much longer the period is than the quota states, in nanoseconds.
    rounding: u64,
}

impl IntervalBucket {
    /// A bucket that starts full.
    ///
    /// # Errors
    ///
    /// If the quota has no period, or is more than the word can count.
    pub fn new(quota: &Quota) -> Result<Self, Error> {
        let nanos = period_of(quota, "an interval bucket")?;
        let packing = Packing::fine(quota, nanos)?;
        Ok(Self {
            packing,
            period: packing.quanta(nanos),
            amount: quota.amount(),
            burst: quota.burst(),
            start: Word(0),
            rounding: packing.rounding(nanos),
        })
    }

    /// A bucket that was empty at `born` and has been refilled since.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn starting_empty(quota: &Quota, born: Timestamp) -> Result<Self, Error> {
        let full = Self::new(quota)?;
        let start = full.packing.pack(full.packing.ceil(born), full.burst);
        Ok(Self { start, ..full })
    }

    /// The period as it is kept: rounded up to the word's resolution.
    #[must_use]
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period * self.packing.quantum)
    }

    /// The step to which the time of a refill is rounded up.
    #[must_use]
    pub fn resolution(&self) -> Duration {
        Duration::from_nanos(self.packing.quantum)
    }

    pub(super) const fn to_raw(self) -> [u64; 6] {
        let Packing { quantum, count_bits } = self.packing;
        [quantum, count_bits, self.period, self.amount, self.burst, self.start.0]
    }

    pub(super) const fn from_raw(raw: [u64; 6], rounding: u64) -> Self {
        let [quantum, count_bits, period, amount, burst, start] = raw;
        let packing = Packing { quantum, count_bits };
        Self { packing, period, amount, burst, start: Word(start), rounding }
    }

    /// The same with `start` as the word of a new caller.
    pub(super) const fn starting_from(self, start: Word) -> Self {
        Self { start, ..self }
    }

    pub(super) const fn rounding(self) -> u64 {
        self.rounding
    }

    /// The last refill and what is spent, after every refill due by `now`.
    fn refilled(&self, word: Word, now: Timestamp) -> (u64, u64) {
        if self.counts_debt_exactly() {
            return self.all_owed(word, now);
        }
        self.after_refills(self.packing.unpack(word), now)
    }

    /// The same, with all that is owed: less than one refill too much, unless debt is counted
    /// [exactly](Self::counts_debt_exactly).
    fn all_owed(&self, word: Word, now: Timestamp) -> (u64, u64) {
        let (last, spent) = self.packing.unpack(word);
        if !self.is_debt_in_refill(last, spent, now) {
            return self.after_refills((last, spent), now);
        }
        let ahead = last - self.packing.ceil(now);
        let periods = ahead.div_ceil(self.period).min(last / self.period);
        let owed = spent.saturating_add(periods.saturating_mul(self.amount));
        (last - periods * self.period, owed)
    }

    fn after_refills(&self, (last, spent): (u64, u64), now: Timestamp) -> (u64, u64) {
        let periods = self.packing.floor(now).saturating_sub(last) / self.period;
        let spent = spent.saturating_sub(periods.saturating_mul(self.amount));
        (last + periods * self.period, spent)
    }

    /// True if the debt may be deeper than the count, since the last refill is in the future:
    /// see [`pack`](Self::pack). Time that went back looks the same. One step is ignored: a
    /// word that [moves](Self::moved) may be that late.
    fn is_debt_in_refill(&self, last: u64, spent: u64, now: Timestamp) -> bool {
        spent > self.burst && last > self.packing.ceil(now).saturating_add(1)
    }

    /// True unless a refill is more than half of what the count can hold: then part of a refill
    /// counts as a whole one. Half, so that the rest of a debt is more than the burst of any
    /// tier.
    #[must_use]
    pub const fn counts_debt_exactly(&self) -> bool {
        self.amount <= self.packing.most() / 2
    }

    /// The word after `spent` becomes `spent + amount`.
    fn take(&self, last: u64, spent: u64, now: Timestamp, amount: u64) -> Word {
        // The call that finds the bucket full begins a period.
        let last = if spent == 0 { last.max(self.packing.ceil(now)) } else { last };
        self.pack(last, spent.saturating_add(amount))
    }

    /// The word of a refill and what is spent after it. A debt deeper than the count is stored as
    /// a future refill and the debt left after it, which admits the same calls.
    fn pack(&self, last: u64, spent: u64) -> Word {
        let most = self.packing.most();
        if spent <= most {
            return self.packing.pack(last, spent);
        }
        let periods = (spent - most).div_ceil(self.amount);
        let left = spent.saturating_sub(periods.saturating_mul(self.amount));
        let refill = last.saturating_add(periods.saturating_mul(self.period));
        let is_exact = self.counts_debt_exactly() && refill <= self.packing.last();
        self.packing.pack(refill, if is_exact { left } else { most })
    }

    /// True if periods are equally long, except for rounding.
    fn is_as_long_as(&self, other: &Self) -> bool {
        self.packing.rounds_alike(self.period(), other.packing, other.period())
    }

    /// A word of `old` as one of this, with a refill at a moment and what is spent after it.
    fn moved(&self, word: Word, old: &Self, refill: Timestamp, spent: u64) -> Word {
        let last = self.packing.ceil(refill);
        let packed = self.pack(last, spent);
        // The same bits would not mean the same: rather a later refill.
        let is_misread = packed == word && self.packing != old.packing;
        if is_misread { self.pack(last + 1, spent) } else { packed }
    }

    /// The time of a word's last refill, if periods are equally long; otherwise a period begins
    /// now.
    fn refill_of(&self, old: &Self, last: u64, now: Timestamp) -> Timestamp {
        if self.is_as_long_as(old) { old.packing.begin(last) } else { now }
    }

    /// How much longer the periods that refill `tokens` are than the quota states.
    const fn longer(&self, tokens: u64) -> u64 {
        tokens.div_ceil(self.amount).saturating_mul(self.rounding)
    }

    /// The time until `tokens` have been refilled.
    fn refill_after(&self, last: u64, now: Timestamp, tokens: u64) -> Duration {
        let periods = tokens.div_ceil(self.amount);
        self.packing.until(last.saturating_add(periods.saturating_mul(self.period)), now)
    }
}

impl Algorithm for IntervalBucket {
    fn spend(&self, word: Word, now: Timestamp, cost: u64) -> Option<Word> {
        if cost == 0 {
            return Some(word);
        }
        let (last, spent) = self.refilled(word, now);
        let passes = cost <= self.burst.saturating_sub(spent);
        passes.then(|| self.take(last, spent, now, cost))
    }

    fn debit_up_to(&self, word: Word, now: Timestamp, amount: u64, most: u64) -> Word {
        let (last, spent) = self.refilled(word, now);
        let counted = amount.min(most.saturating_sub(spent));
        if spent.saturating_add(counted) <= self.packing.most() {
            return self.take(last, spent, now, counted);
        }
        // More than the count can hold.
        let (last, owed) = self.all_owed(word, now);
        self.take(last, owed, now, amount.min(most.saturating_sub(owed)))
    }

    fn refund(&self, word: Word, now: Timestamp, amount: u64) -> Word {
        let (last, spent) = self.refilled(word, now);
        // Not beyond what a new caller would have, nor while the depth of a debt is unknown.
        let (_, least) = self.refilled(self.start, now);
        let is_unknown = self.is_debt_in_refill(last, spent, now);
        let least = if is_unknown { least.max(self.burst) } else { least };
        match spent.saturating_sub(amount).max(least) {
            left if left < spent => self.pack(last, left),
            _ => word,
        }
    }

    fn refund_call(&self, word: Word, now: Timestamp, amount: u64, spent: Word) -> Word {
        // Refills pay for what was spent before, and then for this call.
        self.refund(word, now, amount.min(self.spent(spent, now)))
    }

    fn spent(&self, word: Word, now: Timestamp) -> u64 {
        self.refilled(word, now).1
    }

    fn owed(&self, word: Word, now: Timestamp) -> u64 {
        self.all_owed(word, now).1
    }

    fn fresh(&self, floor: Timestamp) -> Word {
        let (last, spent) = self.refilled(self.start, floor);
        if spent > 0 {
            return self.start;
        }
        // No period begins before `floor`, even if time has gone back since.
        self.packing.pack(last.max(self.packing.ceil(floor)), 0)
    }

    fn limit(&self) -> u64 {
        self.burst
    }

    fn deepest(&self) -> u64 {
        // As many refills as come in 36 years, which times have room for until 2080.
        let refills = (1 << 60) / (self.period * self.packing.quantum);
        let owed = self.burst.saturating_add(self.amount.saturating_mul(refills));
        owed.max(self.packing.most())
    }

    fn refill_in(&self, time: Duration) -> u64 {
        refill_in(self.amount, self.period(), time)
    }

    fn exhausted_from(&self) -> u64 {
        self.burst
    }

    fn window(&self) -> Option<Duration> {
        let periods = self.burst.div_ceil(self.amount);
        Some(Duration::from_nanos(periods.saturating_mul(self.period * self.packing.quantum)))
    }

    fn remaining(&self, word: Word, now: Timestamp) -> u64 {
        self.burst.saturating_sub(self.refilled(word, now).1)
    }

    fn retry_after(&self, word: Word, now: Timestamp, cost: u64) -> Option<Duration> {
        let (last, spent) = self.refilled(word, now);
        let room = self.burst.checked_sub(cost)?;
        match spent.saturating_sub(room) {
            0 => Some(Duration::ZERO),
            _ if cost == 0 => Some(Duration::ZERO),
            excess => Some(self.refill_after(last, now, excess)),
        }
    }

    fn reset_after(&self, word: Word, now: Timestamp) -> Option<Duration> {
        let (last, spent) = self.refilled(word, now);
        Some(if spent == 0 { Duration::ZERO } else { self.refill_after(last, now, spent) })
    }

    fn nominal_window(&self) -> Option<Duration> {
        Some(self.window()?.saturating_sub(Duration::from_nanos(self.longer(self.burst))))
    }

    fn nominal_reset_after(&self, word: Word, now: Timestamp) -> Option<Duration> {
        let longer = self.longer(self.refilled(word, now).1);
        // Up to a burst may have been refilled before.
        let late = self.longer(self.burst);
        Some(self.packing.nominal(self.reset_after(word, now)?, longer, late))
    }

    fn carry_over(&self, word: Word, now: Timestamp, old: &Self) -> Word {
        if self == old {
            return word;
        }
        let (last, owed) = old.all_owed(word, now);
        let refill = self.refill_of(old, last, now);
        self.moved(word, old, refill, carried(owed, old.burst, self.burst))
    }

    fn keep(&self, word: Word, now: Timestamp, old: &Self) -> Word {
        if self == old {
            return word;
        }
        let (last, spent) = old.packing.unpack(word);
        if last > old.packing.ceil(now) {
            // A debt that is told by a refill is owed until then, whatever is refilled.
            return self.moved(word, old, old.packing.begin(last), spent);
        }
        let (last, spent) = old.refilled(word, now);
        self.moved(word, old, self.refill_of(old, last, now), spent)
    }

    fn rebase(&self, word: Word, then: Timestamp, now: Timestamp) -> Word {
        // As it is: refills that are due are those of the tier that asks next.
        let (last, spent) = self.packing.unpack(word);
        self.packing.pack(self.packing.shifted(last, then, now), spent)
    }
}
