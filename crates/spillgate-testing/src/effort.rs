//! How much tests try, and from which seed.
//!
//! A plain run tries little, and the same each time. `SPILLGATE_EFFORT=20` tries twenty times as
//! much. `SPILLGATE_SEED=17` begins with seed 17: it tries other cases, or repeats a failure.

use std::ops::Range;

/// How many times as much as in a plain run is tried.
///
/// More than 1 also says that this machine does nothing else: bounds of time hold as documented.
#[must_use]
pub fn effort() -> u32 {
    u32::try_from(number("SPILLGATE_EFFORT", 1)).unwrap_or(u32::MAX)
}

/// `few` seeds in a plain run, the first of which is that of the run.
#[must_use]
pub fn seeds(few: u32) -> Range<u64> {
    let first = number("SPILLGATE_SEED", 0);
    first..first + u64::from(few) * u64::from(effort())
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("{variable}={text}: a number is expected"))
    })
}
