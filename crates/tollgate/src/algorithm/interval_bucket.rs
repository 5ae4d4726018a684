use std::time::Duration;

use super::packing::{Packing, period_of};
use super::{Algorithm, Word};
use crate::{Error, Quota, Timestamp};

/// A bucket of `burst` tokens into which `amount` tokens fall every `period`,
/// and none in between.
///
/// A client's periods begin with the call that found its bucket full, so a full
/// bucket that is emptied is refilled one whole period later. Where a call falls
/// between two refills, the time already waited is kept. Around a refill nearly
/// `burst + amount` tokens can be taken in an instant (nearly twice the burst, if
/// the amount is larger); over any time `t` at most
/// `burst + amount·(⌊t/period⌋ + 1)`.
///
/// The word is the time of the last refill and what is spent. The time is kept
/// in steps of less than a thousandth of the period and rounded up, so the rate
/// is never above the stated one and below it by less than 0.1 %. Bursts of up
/// to a million can be counted for a period of a second; every doubling of the
/// period doubles that. Debt goes as deep as the burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalBucket {
    packing: Packing,
    /// The period, in quanta.
    period: u64,
    amount: u64,
    burst: u64,
    /// The word of a client never seen.
    start: Word,
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

    pub(super) const fn from_raw(raw: [u64; 6]) -> Self {
        let [quantum, count_bits, period, amount, burst, start] = raw;
        let packing = Packing { quantum, count_bits };
        Self { packing, period, amount, burst, start: Word(start) }
    }

    /// The last refill and what is spent, after every refill due by `now`.
    fn refilled(&self, word: Word, now: Timestamp) -> (u64, u64) {
        let (last, spent) = self.packing.unpack(word);
        let periods = self.packing.floor(now).saturating_sub(last) / self.period;
        let spent = spent.saturating_sub(periods.saturating_mul(self.amount));
        (last + periods * self.period, spent)
    }

    /// The word after `spent` becomes `spent + amount`.
    fn take(&self, last: u64, spent: u64, now: Timestamp, amount: u64) -> Word {
        // The call that finds the bucket full begins a period.
        let last = if spent == 0 { last.max(self.packing.ceil(now)) } else { last };
        self.packing.pack(last, spent.saturating_add(amount))
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

    fn charge(&self, word: Word, now: Timestamp, amount: u64) -> Word {
        let (last, spent) = self.refilled(word, now);
        self.take(last, spent, now, amount)
    }

    fn refund(&self, word: Word, now: Timestamp, amount: u64) -> Word {
        let (last, spent) = self.refilled(word, now);
        // Not beyond what a client never seen would have.
        let (_, least) = self.refilled(self.start, now);
        match spent.saturating_sub(amount).max(least) {
            left if left < spent => self.packing.pack(last, left),
            _ => word,
        }
    }

    fn spent(&self, word: Word, now: Timestamp) -> u64 {
        self.refilled(word, now).1
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

    fn carry_over(&self, word: Word, now: Timestamp, old: &Self) -> Word {
        let (last, spent) = old.refilled(word, now);
        let spent = spent.min(self.burst);
        // The time already waited counts only towards a period of the same length.
        let began = if self.period() == old.period() { old.packing.begin(last) } else { now };
        self.packing.repack(self.packing.ceil(began), spent, word, old.packing)
    }

    fn rebase(&self, word: Word, then: Timestamp, now: Timestamp) -> Word {
        let (last, spent) = self.refilled(word, then);
        self.packing.pack(self.packing.shifted(last, then, now), spent)
    }
}
