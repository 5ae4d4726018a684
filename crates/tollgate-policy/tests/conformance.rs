//! A gate answers as recorded, and as the model.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

use tokio::runtime::{Builder, Runtime};
use tollgate::{AlgorithmKind, ManualClock, Start, Timestamp};
use tollgate_policy::store::Memory;
use tollgate_policy::{Gate, Limit, Policy};
use tollgate_testing::conformance::{histories, recorded};
use tollgate_testing::{Limit as Wanted, Observed, Subject};

struct InGate {
    gate: Gate<Memory<ManualClock>>,
    clock: ManualClock,
    runtime: Runtime,
}

impl InGate {
    fn new(wanted: &Wanted) -> Self {
        let clock = ManualClock::new(wanted.born);
        // So few clients share a dozen slots that they reclaim each other's.
        let limit = Limit::new("l", wanted.quota.to_string())
            .algorithm(wanted.kind)
            .per(["user"])
            .capacity(7);
        let limit = if wanted.start == Start::Empty { limit.start_empty() } else { limit };
        let policy = Policy::builder().limit(limit).build().unwrap();
        let gate = Gate::with_store(policy, Memory::new(clock.clone())).unwrap();
        Self { gate, clock, runtime: Builder::new_current_thread().build().unwrap() }
    }

    fn settle(&self, key: &str, reserved: u64, actual: u64, now: Timestamp) {
        self.clock.set(now);
        self.runtime.block_on(self.gate.settle_limit("l", &[key], reserved, actual)).unwrap();
    }
}

impl Subject for InGate {
    fn check(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        self.clock.set(now);
        self.runtime.block_on(self.gate.check_limit("l", &[key], cost)).unwrap().into()
    }

    fn peek(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        self.clock.set(now);
        self.runtime.block_on(self.gate.peek_limit("l", &[key], cost)).unwrap().into()
    }

    fn charge(&mut self, key: &str, amount: u64, now: Timestamp) {
        self.settle(key, 0, amount, now);
    }

    fn refund(&mut self, key: &str, amount: u64, now: Timestamp) {
        self.settle(key, amount, 0, now);
    }

    fn reset(&mut self, key: &str, now: Timestamp) {
        self.clock.set(now);
        self.runtime.block_on(self.gate.reset_limit("l", &[key])).unwrap();
    }
}

#[test]
fn a_gate_answers_as_recorded() {
    for kind in AlgorithmKind::ALL {
        recorded(kind, InGate::new);
    }
}

#[test]
fn a_gate_answers_as_the_model() {
    for kind in AlgorithmKind::ALL {
        histories(kind, 40, InGate::new);
    }
}
