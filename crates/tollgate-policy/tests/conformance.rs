//! A gate answers as recorded, and as the model, about callers and about descriptors.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

use tokio::runtime::{Builder, Runtime};
use tollgate::{AlgorithmKind, ManualClock, Start, Timestamp};
use tollgate_policy::store::Memory;
use tollgate_policy::{Descriptor, Gate, Limit, Policy};
use tollgate_testing::conformance::{histories, recorded};
use tollgate_testing::{Limit as Wanted, Observed, Subject};

struct InGate {
    gate: Gate<Memory<ManualClock>>,
    clock: ManualClock,
    runtime: Runtime,
}

impl InGate {
    fn new(wanted: &Wanted) -> Self {
        Self::with(wanted, |limit| limit.per(["user"]))
    }

    fn with(wanted: &Wanted, finish: impl FnOnce(Limit) -> Limit) -> Self {
        let clock = ManualClock::new(wanted.born);
        // So few clients share a dozen slots that they reclaim each other's.
        let limit =
            finish(Limit::new("l", wanted.quota.to_string()).algorithm(wanted.kind).capacity(7));
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

/// The same, asked about descriptors wherever a proxy could ask so.
struct ByDescriptors(InGate);

impl ByDescriptors {
    fn new(wanted: &Wanted) -> Self {
        Self(InGate::with(wanted, |limit| limit.domain("edge").descriptor("user", "*")))
    }

    fn ask(&self, user: &str, hits: u64, gives_back: bool, now: Timestamp) -> Observed {
        self.0.clock.set(now);
        let entries = [("user", user)];
        let descriptor = Descriptor { hits, gives_back, ..Descriptor::new(&entries) };
        let passage = self.0.gate.check_descriptors_now("edge", &[descriptor]).unwrap().unwrap();
        let state = passage.descriptors().next().unwrap();
        (*state.nearest().unwrap().decision()).into()
    }
}

impl Subject for ByDescriptors {
    fn check(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        self.ask(key, cost, false, now)
    }

    fn peek(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        self.0.peek(key, cost, now)
    }

    fn charge(&mut self, key: &str, amount: u64, now: Timestamp) {
        self.0.charge(key, amount, now);
    }

    fn refund(&mut self, key: &str, amount: u64, now: Timestamp) {
        self.ask(key, amount, true, now);
    }

    fn reset(&mut self, key: &str, now: Timestamp) {
        self.0.reset(key, now);
    }
}

#[test]
fn descriptors_are_answered_as_recorded_and_as_the_model() {
    // A proxy cannot be told to wait, as a shaper would have it.
    let kinds = AlgorithmKind::ALL.into_iter().filter(|kind| *kind != AlgorithmKind::LeakyShaper);
    for kind in kinds {
        recorded(kind, ByDescriptors::new);
        histories(kind, 40, ByDescriptors::new);
    }
}
