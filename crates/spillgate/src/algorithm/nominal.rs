//! Times as a quota says them, and not as a word keeps them.
//!
//! Words hold whole nanoseconds, or steps of several, so what an algorithm counts with is
//! rounded up: a bucket of `3/s` refills in three intervals of 333,333,334 ns. Whoever tells that
//! in seconds would tell two of them. What is rounded is kept beside the algorithm, and taken off
//! where a time is told.
//!
//! A time that has partly passed is not known as exactly. A bucket that is empty is full again
//! in three intervals, and each was rounded; once two of them are over, the word tells of one.
//! So there is an earliest and a latest moment that the quota allows for, a few nanoseconds
//! apart, and of those between them the roundest is told.

use std::time::Duration;

use crate::Quota;

/// How much longer the interval of a bucket is than its quota says, in 2⁻⁶⁴ nanoseconds:
/// rounded up, and with [`TAG_BITS`] zeros at the end.
///
/// So what it makes of a burst is exact as long as the burst times the amount is below 2⁶¹, and
/// beyond that a nanosecond short at most.
pub(super) fn rounding_of(quota: &Quota, interval: u64) -> u64 {
    let Some(period) = quota.period() else { return 0 };
    let amount = u128::from(quota.amount());
    // Less than the amount.
    let longer = u128::from(interval) * amount - period.as_nanos();
    let parts = (longer << PART_BITS).div_ceil(amount.max(1));
    (parts.min((1 << PART_BITS) - 1) as u64) << TAG_BITS
}

/// How many bits of a number are left for what kind of algorithm it is of.
pub(super) const TAG_BITS: u32 = 3;
const PART_BITS: u32 = u64::BITS - TAG_BITS;

/// What so many intervals are longer than their quota says, in whole nanoseconds.
pub(super) const fn longer(intervals: u64, rounding: u64) -> u64 {
    ((intervals as u128 * rounding as u128) >> u64::BITS) as u64
}

/// The roundest of all times between two, in nanoseconds: of whole seconds, else of whole
/// milliseconds the last, else the later of the two.
pub(super) fn roundest(earliest: u64, latest: u64) -> Duration {
    const UNITS: [u64; 2] = [1_000_000_000, 1_000_000];
    let earliest = earliest.max(1);
    let mut whole = UNITS.iter().map(|unit| latest - latest % unit);
    Duration::from_nanos(whole.find(|time| *time >= earliest).unwrap_or(latest))
}
