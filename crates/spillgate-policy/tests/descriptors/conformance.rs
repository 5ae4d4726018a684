//! Descriptors are answered as recorded, and as the model, under every algorithm.

use spillgate::{AlgorithmKind, ManualClock, Start, Timestamp};
use spillgate_policy::store::Memory;
use spillgate_policy::{Descriptor, Gate, Limit, Policy};
use spillgate_testing::conformance::{histories, recorded};
use spillgate_testing::{Limit as Wanted, Observed, Subject};
use tokio::runtime::{Builder, Runtime};

use crate::common::TestGate;

/// A gate that is asked about descriptors wherever a proxy could ask so, and else by the name of
/// the limit.
struct ByDescriptors {
    gate: TestGate,
    clock: ManualClock,
    runtime: Runtime,
}

impl ByDescriptors {
    fn new(wanted: &Wanted) -> Self {
        let clock = ManualClock::new(wanted.born);
        // So few clients share a dozen slots that they reclaim each other's.
        let limit = Limit::new("l", wanted.quota.to_string()).algorithm(wanted.kind).capacity(7);
        let limit = limit.domain("edge").descriptor("user", "*");
        let limit = if wanted.start == Start::Empty { limit.start_empty() } else { limit };
        let policy = Policy::builder().limit(limit).build().unwrap();
        let gate = Gate::with_store(policy, Memory::new(clock.clone())).unwrap();
        Self { gate, clock, runtime: Builder::new_current_thread().build().unwrap() }
    }

    fn ask(&self, user: &str, hits: u64, gives_back: bool, now: Timestamp) -> Observed {
        self.clock.set(now);
        let entries = [("user", user)];
        let descriptor = Descriptor { hits, gives_back, ..Descriptor::new(&entries) };
        let outcome = super::decide(&self.gate, &[descriptor]);
        let state = outcome.descriptors().next().unwrap();
        (*state.nearest().unwrap().decision()).into()
    }
}

impl Subject for ByDescriptors {
    fn check(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        self.ask(key, cost, false, now)
    }

    fn peek(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        self.clock.set(now);
        self.runtime.block_on(self.gate.peek_limit("l", &[key], cost)).unwrap().into()
    }

    fn debit(&mut self, key: &str, amount: u64, now: Timestamp) {
        self.clock.set(now);
        self.runtime.block_on(self.gate.settle_limit("l", &[key], 0, amount)).unwrap();
    }

    fn refund(&mut self, key: &str, amount: u64, now: Timestamp) {
        self.ask(key, amount, true, now);
    }

    fn reset(&mut self, key: &str, now: Timestamp) {
        self.clock.set(now);
        self.runtime.block_on(self.gate.reset_limit("l", &[key])).unwrap();
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
