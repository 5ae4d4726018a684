//! A gate answers as recorded, and as the model.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

use std::sync::Arc;

use tokio::runtime::Builder;
use tollgate::{AlgorithmKind, ManualClock};
use tollgate_policy::store::Memory;
use tollgate_testing::conformance::{histories, recorded};
use tollgate_testing::{InGate, Limit};

fn in_memory(wanted: &Limit) -> InGate<Memory<ManualClock>> {
    let clock = ManualClock::new(wanted.born);
    let runtime = Arc::new(Builder::new_current_thread().build().unwrap());
    let store = Memory::new(clock.clone());
    InGate::new(wanted, store, runtime, move |now| clock.set(now)).unwrap()
}

#[test]
fn a_gate_answers_as_recorded() {
    for kind in AlgorithmKind::ALL {
        recorded(kind, in_memory);
    }
}

#[test]
fn a_gate_answers_as_the_model() {
    for kind in AlgorithmKind::ALL {
        histories(kind, 40, in_memory);
    }
}
