//! What stays when the policy is replaced.

use std::time::Duration;

use spillgate_policy::store::Memory;
use spillgate_policy::{Adaptive, Answer, Gate, Limit, Policy};

use super::{ALICE, in_flight, limit, load, service, status};
use crate::common::{TestGate, at_once, gate, gate_of, get};

const OTHER: &str = "[[limit]]\nname = 'other'\nquota = '1000/s'\n";

fn replace(gate: &TestGate, policy: &str) -> Vec<String> {
    let changes = gate.replace(Policy::from_toml(policy).unwrap()).unwrap();
    changes.changed.iter().map(ToString::to_string).collect()
}

#[test]
fn the_limit_and_what_is_in_flight_stay() {
    let policy = service("controller = 'aimd', min = 2, max = 100, start = 20");
    let (gate, clock) = gate(&policy);
    load(&gate, &clock, Duration::from_millis(50), 200, 5);
    let open: Vec<_> = (0..7).map(|_| get(ALICE, "/").through(&gate)).collect();
    let before = status(&gate, "service");
    assert!(before.limit > 20.0);
    assert_eq!(replace(&gate, &(OTHER.to_owned() + &policy)), [""; 0]);
    let after = status(&gate, "service");
    assert_eq!((after.limit, after.in_flight), (before.limit, 7));
    assert_eq!((after.changes, after.reason), (before.changes, before.reason));
    drop(open);
    assert_eq!(in_flight(&gate), 0);
}

#[test]
fn new_bounds_and_controllers_take_over() {
    let (gate, _) = gate(&service("min = 1, max = 100, start = 50"));
    assert_eq!(
        replace(&gate, &service("controller = 'target', target = '40ms', min = 1, max = 30")),
        [
            "service: adaptive auto by latency, 1 to 100 concurrent from 50 → target 40ms by latency, \
          1 to 30 concurrent"
        ]
    );
    assert_eq!((limit(&gate), status(&gate, "service").max), (30.0, 30.0));
    assert_eq!(gate.adaptive_states()[0].controller, "target");
    replace(&gate, &service("controller = 'target', target = '40ms', min = 90, max = 99"));
    assert_eq!(limit(&gate), 90.0);
}

#[test]
fn every_key_is_a_change() {
    let errors = "controller = 'errors', min = 0.2, threshold = 0.9, aggression = 1";
    for (from, to) in [
        ("threshold = 0.9", "threshold = 0.8"),
        ("aggression = 1", "aggression = 2"),
        ("min = 0.2", "min = 0.3"),
        ("min = 0.2", "min = 0.2, start = 0.5"),
    ] {
        let (gate, _) = gate(&service(errors));
        let changes = replace(&gate, &service(&errors.replace(from, to)));
        assert_eq!(changes.len(), 1, "{to}: {changes:?}");
        assert!(changes[0].starts_with("service: adaptive errors "), "{changes:?}");
    }
}

#[test]
fn another_kind_of_limit_starts_afresh() {
    let (gate, _) = gate(&service("min = 1, max = 1"));
    let open = get(ALICE, "/").through(&gate);
    let next = Policy::from_toml(&service("controller = 'errors'")).unwrap();
    assert_eq!(gate.replace(next).unwrap().restarted, ["service"]);
    assert_eq!((in_flight(&gate), limit(&gate)), (0, 1.0));
    let quota = Policy::from_toml("[[limit]]\nname = 'service'\nquota = '5/s'\n").unwrap();
    let changes = gate.replace(quota).unwrap();
    assert_eq!(changes.restarted, ["service"]);
    let shown: Vec<_> = changes.changed.iter().map(ToString::to_string).collect();
    assert!(shown.contains(&"service: adaptive → 5/s".to_owned()), "{shown:?}");
    assert!(gate.adaptive_states().is_empty());
    drop(open);
}

#[test]
fn a_limit_that_is_removed_and_comes_back_remembers_what_is_in_flight() {
    let policy = service("min = 2, max = 2");
    let (gate, _) = gate(&policy);
    let first = get(ALICE, "/").through(&gate);
    let second = get(ALICE, "/").through(&gate);
    replace(&gate, OTHER);
    let third = get(ALICE, "/").through(&gate);
    assert!(third.is_allowed() && gate.adaptive_states().is_empty());
    drop(first);
    replace(&gate, OTHER);
    replace(&gate, &policy);
    assert_eq!(in_flight(&gate), 1);
    let fourth = get(ALICE, "/").through(&gate);
    assert_eq!(get(ALICE, "/").through(&gate).answer(), Answer::Shed);
    drop((second, third, fourth));
    assert_eq!(in_flight(&gate), 0);
}

#[test]
fn acquired_permits_stay_acquired() {
    let policy = service("min = 1, max = 1");
    let (gate, _) = gate(&policy);
    let id = at_once(gate.acquire("service", &[], 1, None)).unwrap().id().unwrap();
    replace(&gate, OTHER);
    replace(&gate, &policy);
    assert_eq!(get(ALICE, "/").through(&gate).answer(), Answer::Shed);
    assert!(at_once(gate.release(id)).unwrap());
    assert!(get(ALICE, "/").through(&gate).is_allowed());
}

#[test]
fn an_ending_after_a_reload_is_recorded() {
    let policy = service("controller = 'aimd', min = 1, max = 99, start = 50");
    let (gate, clock) = gate(&policy);
    let open: Vec<_> = (0..20).map(|_| get(ALICE, "/").through(&gate)).collect();
    clock.advance(Duration::from_millis(100));
    replace(&gate, &(policy + OTHER));
    open.into_iter().for_each(|outcome| super::end(&gate, outcome, 500));
    clock.advance(Duration::from_secs(1));
    drop(get(ALICE, "/").through(&gate));
    assert!(limit(&gate) < 50.0, "{}", limit(&gate));
}

/// A rate with these quotas, whose signal is at its target.
fn rate(min: &str, max: &str) -> Policy {
    let adaptive = Adaptive::load(0.8, min..=max).signal(|| Some(0.8));
    Policy::builder().limit(Limit::adaptive("service", adaptive)).build().unwrap()
}

#[test]
fn nobody_gains_by_a_reload() {
    let (gate, clock) = gate_of(rate("100/s", "100/s"));
    assert_eq!(get(ALICE, "/").flood(&gate).len(), 100);
    let ranges =
        [("100/s", "200/s"), ("10/s", "20/s"), ("100/s", "100/s"), ("1/h burst 5", "500/s")];
    for (min, max) in ranges {
        gate.replace(rate(min, max)).unwrap();
        assert_eq!(get(ALICE, "/").flood(&gate).len(), 0, "{min} to {max}");
    }
    for _ in 0..2 {
        clock.advance(Duration::from_secs(30));
        // 100/s, a fifth of the way from a burst of 5 to one of 500.
        assert_eq!(get(ALICE, "/").flood(&gate).len(), 104);
    }
    gate.replace(rate("10/s", "10/s")).unwrap();
    clock.advance(Duration::from_secs(1));
    assert_eq!(get(ALICE, "/").flood(&gate).len(), 10, "by the store's time");
}

#[test]
fn a_policy_that_is_refused_changes_nothing() {
    let (gate, _) = gate(&service("min = 1, max = 9, start = 5"));
    assert!(Policy::from_toml(&service("min = 9, max = 1")).is_err());
    assert_eq!((limit(&gate), status(&gate, "service").max), (5.0, 9.0));
}

#[test]
fn a_saved_state_is_restored_without_what_follows_load() {
    let policy =
        service("min = 1, max = 9, start = 3") + "[[limit]]\nname = 'api'\nquota = '1/h'\n";
    let (gate, clock) = gate(&policy);
    let open = get(ALICE, "/").through(&gate);
    let (saved, seed) = (gate.save(), gate.store().seed());
    assert!(saved.limits.iter().all(|limit| limit.name != "service"));
    drop(open);
    let store = Memory::new(clock.clone()).with_seed(seed);
    let restored = Gate::with_store(Policy::from_toml(&policy).unwrap(), store).unwrap();
    restored.restore(saved, spillgate::Clock::now(&clock)).unwrap();
    assert_eq!((in_flight(&restored), limit(&restored)), (0, 3.0), "load is of now");
    assert_eq!(get(ALICE, "/").through(&restored).denied_by(), Some("api"), "what is spent is not");
}

#[test]
fn what_was_spent_under_a_fixed_quota_waits_for_it_to_come_back() {
    let fixed = "[[limit]]\nname = 'service'\nquota = '1/h'\n";
    let (gate, _) = gate(fixed);
    assert!(get(ALICE, "/").through(&gate).is_allowed());
    replace(&gate, &service("min = 5, max = 5"));
    assert!(get(ALICE, "/").through(&gate).is_allowed());
    replace(&gate, fixed);
    assert_eq!(get(ALICE, "/").through(&gate).denied_by(), Some("service"));
}
