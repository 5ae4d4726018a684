use std::time::Duration;

use super::Word;
use super::nominal::roundest;
use crate::{Error, Quota, Timestamp};

/// How a time and a count share a word.
///
/// ```text
/// 63          count_bits          0
/// ├── time, in quanta ──┼── count ──┤
/// ```
///
/// The count has room for twice the limit, so that debt can be as deep as the
/// limit itself. The time has the rest, in steps of
/// `quantum` nanoseconds that reach to [`Timestamp::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packing {
    pub(super) quantum: u64,
    pub(super) count_bits: u64,
}

/// A quantum is at most this fraction of the period: rounding a time up to a
/// quantum then costs less than 0.1 % of the rate.
const STEPS_PER_PERIOD: u64 = 1024;

impl Packing {
    /// Times as numbers of whole periods, for aligned windows.
    pub(super) fn by_period(quota: &Quota, period: u64, counters: u64) -> Result<Self, Error> {
        let time_bits = bits(Timestamp::MAX.as_nanos() / period);
        let count_bits = (64 - time_bits) / counters;
        Self { quantum: period, count_bits }.holding(quota)
    }

    /// Times as fine as the room that the count leaves allows, for periods that
    /// begin with a caller's first call.
    pub(super) fn fine(quota: &Quota, period: u64) -> Result<Self, Error> {
        // The most bits whose quantum, 2^(bits - 2), is still fine enough.
        let widest = bits(period / STEPS_PER_PERIOD).saturating_add(1).max(2);
        let needed = bits(quota.burst().saturating_mul(2).saturating_add(2)).max(2);
        let count_bits = needed.min(widest);
        Self { quantum: 1 << (count_bits - 2), count_bits }.holding(quota)
    }

    /// Checks that the count can hold twice the burst.
    fn holding(self, quota: &Quota) -> Result<Self, Error> {
        let most = self.most() / 2;
        if quota.burst() <= most {
            return Ok(self);
        }
        let instead = match most {
            0 => String::new(),
            most => format!("at most {most}, "),
        };
        Err(Error::algorithm(format!(
            "\"{quota}\" is more than this algorithm can count in its period; \
             use {instead}a longer period, or a token bucket"
        )))
    }

    /// The largest count. One less than fits, so that no word is `u64::MAX`.
    pub(super) const fn most(self) -> u64 {
        (1 << self.count_bits) - 2
    }

    pub(super) const fn pack(self, time: u64, count: u64) -> Word {
        let time = if time > self.last() { self.last() } else { time };
        let count = if count > self.most() { self.most() } else { count };
        Word((time << self.count_bits) | count)
    }

    pub(super) const fn unpack(self, word: Word) -> (u64, u64) {
        let count = word.0 & ((1 << self.count_bits) - 1);
        // A foreign word may count one more than is ever packed.
        (word.0 >> self.count_bits, if count > self.most() { self.most() } else { count })
    }

    /// The last time that can be represented.
    pub(super) const fn last(self) -> u64 {
        u64::MAX >> self.count_bits
    }

    /// The quantum that `now` lies in.
    pub(super) const fn floor(self, now: Timestamp) -> u64 {
        now.as_nanos() / self.quantum
    }

    /// The first quantum that does not begin before `now`.
    pub(super) const fn ceil(self, now: Timestamp) -> u64 {
        now.as_nanos().div_ceil(self.quantum)
    }

    /// When the quantum `time` begins.
    pub(super) const fn begin(self, time: u64) -> Timestamp {
        Timestamp::from_nanos(time.saturating_mul(self.quantum))
    }

    /// The time from `now` until the quantum `time` begins, also beyond the last
    /// [`Timestamp`].
    pub(super) const fn until(self, time: u64, now: Timestamp) -> Duration {
        let begin = time.saturating_mul(self.quantum);
        Duration::from_nanos(begin.saturating_sub(now.as_nanos()))
    }

    /// `time` and `count` in place of `word`, which had another packing. Never the
    /// same bits, which would not mean the same: rather a later time.
    pub(super) fn repack(self, time: u64, count: u64, word: Word, old: Self) -> Word {
        let packed = self.pack(time, count);
        let misread = packed == word && self != old;
        if misread { self.pack(time + 1, count) } else { packed }
    }

    /// The quantum as far from `now` as `time` is from `then`, rounded up.
    pub(super) const fn shifted(self, time: u64, then: Timestamp, now: Timestamp) -> u64 {
        let begin = time.saturating_mul(self.quantum);
        let shifted = begin.saturating_add(now.as_nanos()).saturating_sub(then.as_nanos());
        shifted.div_ceil(self.quantum)
    }

    /// True if two lengths differ by no more than how they are rounded.
    pub(super) fn rounds_alike(self, length: Duration, other: Self, others: Duration) -> bool {
        let coarser = self.quantum.max(other.quantum);
        length.abs_diff(others) < Duration::from_nanos(coarser)
    }

    /// How much longer a period in quanta is.
    pub(super) const fn rounding(self, period: u64) -> u64 {
        self.quanta(period) * self.quantum - period
    }

    /// A time until something ends that is `longer` than it should be, and began up to a quantum
    /// and `late` nanoseconds later than it should have: as it would be if nothing were rounded.
    pub(super) fn nominal(self, time: Duration, longer: u64, late: u64) -> Duration {
        if time.is_zero() {
            return time;
        }
        let latest = (time.as_nanos() as u64).saturating_sub(longer).max(1);
        // Of many periods no more than of one, as a part of the time.
        let late = late.min(latest / STEPS_PER_PERIOD) + self.quantum - 1;
        roundest(latest.saturating_sub(late), latest)
    }

    /// `period` in quanta, rounded up.
    pub(super) const fn quanta(self, period: u64) -> u64 {
        period.div_ceil(self.quantum)
    }
}

/// How many bits `number` needs.
const fn bits(number: u64) -> u64 {
    (u64::BITS - number.leading_zeros()) as u64
}

/// The period of a quota that has to have one.
pub(super) fn period_of(quota: &Quota, what: &str) -> Result<u64, Error> {
    quota.period().map(|period| period.as_nanos() as u64).ok_or_else(|| {
        Error::algorithm(format!(
            "{what} needs a period, and \"{quota}\" has none; \
             give it one, as in \"100/min\", or use a token bucket"
        ))
    })
}

/// Refuses a burst, for algorithms that have none.
pub(super) fn without_burst(quota: &Quota, what: &str) -> Result<(), Error> {
    if quota.burst() == quota.amount() {
        return Ok(());
    }
    Err(Error::algorithm(format!(
        "{what} has no burst, and \"{quota}\" asks for {}; \
         leave it out, or use a token bucket",
        quota.burst(),
    )))
}

/// What is spent, when the limit changes: of the old limit no more than the new one has, and
/// all that is owed beyond it.
pub(super) fn carried(spent: u64, old: u64, new: u64) -> u64 {
    spent.min(old).min(new).saturating_add(spent.saturating_sub(old))
}

/// How much `amount` each `period` is in some time.
pub(super) fn refill_in(amount: u64, period: Duration, time: Duration) -> u64 {
    let periods = time.as_nanos() / period.as_nanos().max(1);
    u64::try_from(periods.saturating_mul(u128::from(amount))).unwrap_or(u64::MAX)
}
