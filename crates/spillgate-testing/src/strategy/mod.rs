//! Generated quotas, limits, moments and histories.
//!
//! No value is generated from another: costs and pauses are relative to a limit that is chosen
//! independently. So the limit, the times and the costs of a failure shrink independently.

mod history;
mod limit;
mod quota;
mod relative;

use proptest::prelude::*;
use proptest::test_runner::Config;
use spillgate::Timestamp;

use crate::effort;

pub use self::history::{Shape, histories};
pub use self::limit::{limit_of, limits};
pub use self::quota::quotas;
pub use self::relative::{Pause, Size, pauses, sizes};

/// A configuration for `few` cases in a plain run, without regression files: a failure prints its
/// input, which belongs into a test of its own.
#[must_use]
pub fn cases(few: u32) -> Config {
    let cases = few.saturating_mul(effort());
    // Quotas are drawn until one is valid, so that many cases take many draws.
    let max_local_rejects = cases.saturating_mul(100);
    Config { cases, max_local_rejects, failure_persistence: None, ..Config::default() }
}

/// Numbers from 1 to below `2^bits`, with all orders of magnitude equally likely.
pub fn magnitudes(bits: u32) -> impl Strategy<Value = u64> {
    let rests = prop_oneof![1 => Just(0), 2 => any::<u64>()];
    (0..bits, rests).prop_map(|(bit, rest)| (1 << bit) | (rest & ((1 << bit) - 1)))
}

/// Moments: of our days, of any day, and the first and the last.
pub fn moments() -> impl Strategy<Value = Timestamp> {
    let last = Timestamp::MAX.as_nanos();
    prop_oneof![
        4 => 1_700_000_000_000_000_000..1_800_000_000_000_000_000_u64,
        2 => 0..=last,
        1 => 0..10_u64,
        1 => last - 10..=last,
    ]
    .prop_map(Timestamp::from_nanos)
}
