//! A gate answers as recorded, and as the model.

use std::sync::Arc;

use spillgate::{AlgorithmKind, ManualClock, Timestamp};
use spillgate_policy::store::Memory;
use spillgate_policy::{Gate, Policy};
use spillgate_testing::conformance::{histories, recorded};
use spillgate_testing::moving::{MovingGate, Quotas, moving, policy_under_load, under_load};
use spillgate_testing::{InGate, Limit};
use tokio::runtime::Builder;

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

type InMemory = Memory<ManualClock>;

/// A gate in memory whose restarts go through a snapshot.
fn moving_in_memory(
    kind: AlgorithmKind,
    quotas: &Quotas,
    start: Timestamp,
) -> MovingGate<InMemory> {
    let clock = ManualClock::new(start);
    let runtime = Arc::new(Builder::new_current_thread().build().unwrap());
    let store = Memory::new(clock.clone());
    let restart = |old: &Gate<InMemory>, policy: Policy, now: Timestamp| {
        let store = Memory::new(old.store().clock().clone()).with_seed(old.store().seed());
        let gate = Gate::with_store(policy, store).unwrap();
        gate.restore(old.save(), now).unwrap();
        gate
    };
    let set_now = move |now| clock.set(now);
    MovingGate::new(kind, quotas, store, runtime, set_now, restart).unwrap()
}

#[test]
fn what_moves_in_a_gate_is_never_too_much_never_lost_and_never_a_lie() {
    for kind in AlgorithmKind::ALL {
        moving(kind, 500, moving_in_memory);
    }
}

#[test]
fn what_moves_in_a_gate_under_load_charges_every_call_once() {
    let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    for kind in AlgorithmKind::ALL {
        let store = Memory::new(ManualClock::default());
        let gate = Gate::with_store(policy_under_load(kind, 50), store).unwrap();
        // Of another capacity, so that everything moves to another table.
        let capacities = std::sync::atomic::AtomicU64::new(50);
        under_load(kind, &gate, &runtime, 4_000, |gate| {
            let capacity = capacities.fetch_xor(1, std::sync::atomic::Ordering::Relaxed);
            gate.replace(policy_under_load(kind, capacity)).unwrap();
        });
    }
}
