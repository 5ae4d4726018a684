//! List entries and overrides that end by themselves.

mod edits;
mod lists;
mod model;
mod overrides;
pub(crate) mod remote;

use spillgate::{ManualClock, Timestamp};
use spillgate_policy::store::Memory;
use spillgate_policy::{Gate, Policy};

use crate::common::TestGate;

/// A gate whose clock begins at zero.
fn gate(policy: &str) -> (TestGate, ManualClock) {
    let clock = ManualClock::new(Timestamp::ZERO);
    let policy = Policy::from_toml(policy).unwrap();
    (Gate::with_store(policy, Memory::new(clock.clone())).unwrap(), clock)
}
