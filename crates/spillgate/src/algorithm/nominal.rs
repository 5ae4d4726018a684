//! Times as the quota states them, and not as a word keeps them.
//!
//! Words hold whole nanoseconds, or steps of several, so algorithms count with rounded-up
//! intervals: a bucket of `3/s` refills in three intervals of 333,333,334 ns. Rounded up to
//! seconds, that would be two. So the algorithm keeps what was rounded, and reported times
//! exclude it.
//!
//! Once part of the time has passed, this is not exact. An empty bucket is full again in three
//! intervals, each of them rounded; after two of them, the word shows only one. So there is an
//! earliest and a latest possible time, a few nanoseconds apart, and the roundest time between
//! them is reported.

use std::time::Duration;

use crate::Quota;

/// How much longer the interval of a bucket is than its quota states, in 2⁻⁶⁴ nanoseconds:
/// rounded up, and with [`TAG_BITS`] zeros at the end.
///
/// For a burst it is exact while the burst times the amount is below 2⁶¹, and beyond that one
/// nanosecond short at most.
pub(super) fn rounding_of(quota: &Quota, interval: u64) -> u64 {
    let Some(period) = quota.period() else { return 0 };
    let amount = u128::from(quota.amount());
    // Less than the amount.
    let longer = u128::from(interval) * amount - period.as_nanos();
    let parts = (longer << PART_BITS).div_ceil(amount.max(1));
    (parts.min((1 << PART_BITS) - 1) as u64) << TAG_BITS
}

/// How many bits of a number are left for the algorithm's tag.
pub(super) const TAG_BITS: u32 = 3;
const PART_BITS: u32 = u64::BITS - TAG_BITS;

/// How much longer some intervals are than their quota states, in whole nanoseconds.
pub(super) const fn longer(intervals: u64, rounding: u64) -> u64 {
    ((intervals as u128 * rounding as u128) >> u64::BITS) as u64
}

/// The roundest time between two, in nanoseconds: the last whole second, else the last whole
/// millisecond, else the later of the two.
pub(super) fn roundest(earliest: u64, latest: u64) -> Duration {
    const UNITS: [u64; 2] = [1_000_000_000, 1_000_000];
    let earliest = earliest.max(1);
    let mut whole = UNITS.iter().map(|unit| latest - latest % unit);
    Duration::from_nanos(whole.find(|time| *time >= earliest).unwrap_or(latest))
}
