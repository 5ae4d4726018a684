//! Exact and unbounded numbers.

use std::time::Duration;

use num_rational::BigRational as Rational;
use spillgate::Timestamp;

/// Nanoseconds since the epoch, far beyond what a [`Timestamp`] can hold.
pub(crate) type Nanos = u128;

/// No refill takes longer: that of a burst takes at most 2⁶² nanoseconds, and debts are at most
/// two bursts deep.
const HORIZON: Nanos = 1 << 66;

pub(crate) fn nanos(moment: Timestamp) -> Nanos {
    moment.as_nanos().into()
}

pub(crate) fn whole(number: u64) -> Rational {
    Rational::from_integer(number.into())
}

pub(crate) fn fraction(numerator: i128, denominator: Nanos) -> Rational {
    Rational::new(numerator.into(), denominator.into())
}

/// The whole part of a number, or zero if it is negative.
pub(crate) fn floor(number: &Rational) -> u64 {
    u64::try_from(number.floor().to_integer()).unwrap_or(0)
}

/// The first multiple of `step` that is not before `moment`.
pub(crate) fn round_up(moment: Nanos, step: Nanos) -> Nanos {
    moment.div_ceil(step) * step
}

/// `later - earlier`, of either sign.
pub(crate) fn difference(later: Nanos, earlier: Nanos) -> i128 {
    later as i128 - earlier as i128
}

/// The time from `now` until `holds` first does; `None` if it never will.
///
/// `holds` must be monotonic, for the binary search.
pub(crate) fn time_until(now: Nanos, holds: impl Fn(Nanos) -> bool) -> Option<Duration> {
    if holds(now) {
        return Some(Duration::ZERO);
    }
    let (mut not_yet, mut already) = (now, now + HORIZON);
    if !holds(already) {
        return None;
    }
    while already - not_yet > 1 {
        let middle = not_yet.midpoint(already);
        if holds(middle) {
            already = middle;
        } else {
            not_yet = middle;
        }
    }
    Some(Duration::from_nanos(u64::try_from(already - now).unwrap_or(u64::MAX)))
}
