//! What survives a restart.

use std::time::Duration;

use crate::common::{TestGate, get};
use spillgate::{Clock, ManualClock, Timestamp};
use spillgate_policy::store::{Edit, Memory};
use spillgate_policy::{Answer, Gate, Limit, ListKind, Policy, Terms, Tier};

#[tokio::test]
async fn what_was_spent_and_changed_at_run_time_survives_a_restart() {
    let policy = |with_override: bool| {
        let limit = Limit::new("l", "1/h burst 10");
        let limit = match with_override {
            true => limit.override_for("caller", "203.0.113.2", "1/h burst 100"),
            false => limit.override_for("caller", "203.0.113.6", "1/h burst 30"),
        };
        let tier = Tier::new().callers(["203.0.113.3"]).quota("l", "1/h burst 50");
        Policy::builder().limit(limit).tier("gold", tier).build().unwrap()
    };
    let clock = ManualClock::default();
    let gate = Gate::with_store(policy(true), Memory::new(clock.clone())).unwrap();
    for peer in ["203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4", "203.0.113.6"] {
        assert_eq!(get(peer, "/").passes(&gate, 4), 4);
    }
    let quota = "1/h burst 20".parse().unwrap();
    gate.set_override("l", &["203.0.113.4"], quota, Terms::permanent()).await.unwrap();
    gate.list(ListKind::Block, "198.51.100.0/24", Terms::permanent()).await.unwrap();
    gate.list(ListKind::Allow, "key:friend", Terms::permanent()).await.unwrap();

    let saved = gate.save();
    assert!(!format!("{saved:?}").contains("friend"), "{saved:?}");
    let seed = gate.store().seed();
    let then = clock.now();
    // The new process has another seed at hand, another clock, and another policy.
    let store = Memory::new(ManualClock::default()).with_seed(seed);
    let gate = Gate::with_store(policy(false), store).unwrap();
    gate.restore(saved, then).unwrap();
    let left = |peer: &'static str| {
        let gate = &gate;
        async move {
            gate.explain(&get(peer, "/").request())
                .await
                .unwrap()
                .limits
                .remove(0)
                .state
                .unwrap()
                .remaining
        }
    };
    assert_eq!(left("203.0.113.1").await, 6);
    assert_eq!(left("203.0.113.2").await, 6, "the policy has no override for it any more");
    assert_eq!(left("203.0.113.3").await, 46);
    assert_eq!(left("203.0.113.4").await, 16, "an override set at run time stays");
    assert_eq!(left("203.0.113.5").await, 10);
    assert_eq!(left("203.0.113.6").await, 26, "an override that is new takes the debt over");
    assert_eq!(get("198.51.100.7", "/").through(&gate).answer(), Answer::Blocked);
}

#[test]
fn what_was_spent_under_a_limit_that_is_missing_for_a_while_survives_restarts() {
    let limited = || Policy::builder().limit(Limit::new("l", "1/h burst 10")).build().unwrap();
    let without = || Policy::builder().build().unwrap();
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let start = |policy, old: &TestGate, clock: &ManualClock| {
        let store = Memory::new(clock.clone()).with_seed(old.store().seed());
        let gate = Gate::with_store(policy, store).unwrap();
        gate.restore(old.save(), old.store().clock().now()).unwrap();
        gate
    };
    // Each process has a clock of its own.
    let clocks =
        [7_000, 900, 123_456].map(|hours| ManualClock::new(Timestamp::from_secs(3600 * hours)));
    let gate = Gate::with_store(limited(), Memory::new(clocks[0].clone())).unwrap();
    assert_eq!(get("203.0.113.7", "/").passes(&gate, 7), 7);
    let gate = start(without(), &gate, &clocks[1]);
    assert_eq!(get("203.0.113.7", "/").passes(&gate, 99), 99);
    clocks[1].advance(minutes(50));
    for (more, passes) in [(10, 4), (11, 10)] {
        let gate = start(without(), &gate, &clocks[2]);
        clocks[2].advance(minutes(more));
        let gate = start(limited(), &gate, &clocks[2]);
        assert_eq!(get("203.0.113.7", "/").passes(&gate, 99), passes, "{more}");
    }
}

#[test]
fn an_edit_that_cannot_be_restored_is_an_error_and_what_was_spent_is_restored() {
    let policy = || Policy::builder().limit(Limit::new("l", "1/h burst 10")).build().unwrap();
    let clock = ManualClock::default();
    let gate = Gate::with_store(policy(), Memory::new(clock.clone())).unwrap();
    assert_eq!(get("203.0.113.1", "/").passes(&gate, 4), 4);
    let mut saved = gate.save();
    saved.edits.push(Edit::new(
        "[\"list\",\"block\",\"as:64496\"]".to_owned(),
        Some("{}".to_owned()),
        None,
    ));
    let store = Memory::new(clock.clone()).with_seed(gate.store().seed());
    let restored = Gate::with_store(policy(), store).unwrap();
    assert!(restored.restore(saved, clock.now()).is_err());
    assert_eq!(get("203.0.113.1", "/").passes(&restored, 20), 6);
}
