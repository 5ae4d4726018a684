//! Times in whole units. They round up: whoever waits that long has waited long enough.

use std::time::Duration;

pub(crate) fn whole_seconds(time: Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0))
}

pub(crate) fn whole_millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
