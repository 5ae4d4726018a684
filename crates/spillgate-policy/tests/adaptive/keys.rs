//! Every key of the configuration does something.

use spillgate_policy::Policy;

use super::{limit, service, status};
use crate::common::{TestGate, gate};

/// The states of all limits, as text.
fn state(gate: &TestGate) -> String {
    let state = &gate.adaptive_states()[0];
    let status = &state.status;
    let bounds = (status.min, status.max, status.limit);
    format!("{} {} {} {bounds:?}", state.kind, state.controller, state.signal)
}

#[test]
fn the_controller_follows_from_the_signal_and_the_signal_from_the_controller() {
    for (keys, expected) in [
        ("min = 1, max = 9", "concurrency auto latency (1.0, 9.0, 9.0)"),
        ("controller = 'auto', min = 1, max = 99", "concurrency auto latency (1.0, 99.0, 10.0)"),
        ("signal = 'latency', min = 1, max = 9", "concurrency auto latency (1.0, 9.0, 9.0)"),
        (
            "controller = 'target', target = '1s', min = 2, max = 9",
            "concurrency target latency (2.0, 9.0, 9.0)",
        ),
        (
            "signal = 'queue-wait', target = '1s', min = 2, max = 9, start = 3",
            "concurrency target queue-wait (2.0, 9.0, 3.0)",
        ),
        ("controller = 'aimd', min = 1, max = 9", "concurrency aimd errors (1.0, 9.0, 9.0)"),
        ("signal = 'errors'", "share errors errors (0.2, 1.0, 1.0)"),
        ("controller = 'errors', min = 0.4, start = 0.5", "share errors errors (0.4, 1.0, 0.5)"),
        (
            "controller = 'load', target = 0.5, min = 1, max = 9",
            "concurrency load cpu (1.0, 9.0, 9.0)",
        ),
        (
            "signal = 'machine-cpu', target = 0.5, min = '60/min', max = '90/s', start = '5/s'",
            "rate load machine-cpu (1.0, 90.0, 5.0)",
        ),
        (
            "signal = 'process-cpu', target = 0.5, min = '1/s', max = '90/s'",
            "rate load process-cpu (1.0, 90.0, 10.0)",
        ),
        (
            "signal = 'cgroup-cpu', target = 0.5, min = '1/s', max = '90/s'",
            "rate load cgroup-cpu (1.0, 90.0, 10.0)",
        ),
    ] {
        let (gate, _) = gate(&service(keys));
        assert_eq!(state(&gate), expected, "{keys}");
    }
}

/// Runs a share whose requests all fail for some seconds, and returns it.
fn failing(keys: &str, seconds: usize, fails: usize) -> f64 {
    let (gate, clock) = gate(&service(keys));
    for number in 0..seconds * 10 {
        clock.advance(std::time::Duration::from_millis(100));
        let outcome = crate::common::get(super::ALICE, "/").through(&gate);
        if outcome.is_allowed() {
            super::end(&gate, outcome, if number % 10 < fails { 500 } else { 200 });
        }
    }
    limit(&gate)
}

#[test]
fn threshold_and_aggression_say_how_much_is_refused() {
    let at = |keys: &str| failing(&format!("controller = 'errors', {keys}"), 60, 3);
    let default = at("threshold = 0.95");
    assert!(default < 1.0, "{default}");
    assert_eq!(at("threshold = 0.5"), 1.0, "70 % succeed, which is enough");
    assert!(at("threshold = 0.95, aggression = 3") < default);
    assert_eq!(failing("controller = 'errors', min = 0.4", 60, 10), 0.4);
}

#[test]
fn a_target_is_kept() {
    let at = |target: &str| {
        let keys =
            format!("controller = 'target', target = '{target}', min = 1, max = 500, start = 50");
        let (gate, clock) = gate(&service(&keys));
        super::load(&gate, &clock, std::time::Duration::from_millis(100), 200, 2);
        limit(&gate)
    };
    assert!(at("10ms") < 60.0 && at("10s") > 90.0, "{} {}", at("10ms"), at("10s"));
}

#[test]
fn the_least_room_of_a_rate_is_its_capacity_and_what_happens_then_its_when_full() {
    let allowed = |rest: &str| {
        let policy = service("signal = 'cpu', target = 0.8, min = '1/h', max = '1/h'") + rest;
        let (gate, _) = gate(&policy);
        let peer = |number: u32| format!("192.0.{}.{}", number / 250, number % 250);
        (0..5_000)
            .filter(|number| crate::common::get(&peer(*number), "/").through(&gate).is_allowed())
            .count()
    };
    assert_eq!(allowed(""), 5_000);
    assert_eq!(allowed("capacity = 100\n"), 5_000, "others are evicted");
    let denied = allowed("capacity = 100\nwhen-full = 'deny'\n");
    assert!(denied < 1_000, "{denied}");
}

#[test]
fn a_limit_is_met_by_what_it_matches() {
    let policy = service("min = 1, max = 1") + "match = { path = '/a', method = 'POST' }\n";
    let (gate, _) = gate(&policy);
    let others: Vec<_> =
        (0..3).map(|_| crate::common::get(super::ALICE, "/a").through(&gate)).collect();
    assert!(others.iter().all(|it| it.is_allowed() && it.limits().count() == 0));
    let met = crate::common::call("POST", super::ALICE, "/a").through(&gate);
    assert_eq!((met.limits().count(), status(&gate, "service").in_flight), (1, 1));
    drop((met, others));
}

#[test]
fn what_is_allowed_or_blocked_or_of_no_host_meets_no_limit() {
    let policy = format!(
        "allow = ['203.0.113.7']\nblock = ['203.0.113.8']\n{}match = {{ host = 'a.example.com' }}\n",
        service("min = 1, max = 1")
    );
    let (gate, _) = gate(&policy);
    let answers = [super::ALICE, super::BOB, "192.0.2.1"]
        .map(|peer| crate::common::get(peer, "/").through(&gate).answer());
    use spillgate_policy::Answer::{Allowed, Blocked, HostRequired};
    assert_eq!(answers, [Allowed, Blocked, HostRequired]);
}

#[test]
fn the_ttl_of_permits_is_that_of_a_concurrency_limit() {
    let policy = service("min = 1, max = 1")
        + "[[limit]]\nname = 'share'\nadaptive = { controller = 'errors' }\n\
           [[limit]]\nname = 'rate'\n\
           adaptive = { signal = 'cpu', target = 0.8, min = '1/s', max = '9/s' }\n";
    let policy = Policy::from_toml(&policy).unwrap();
    assert_eq!(policy.permit_ttl("service"), Some(std::time::Duration::from_secs(30)));
    assert_eq!(policy.permit_ttl("rate"), None);
    assert_eq!((policy.per("service"), policy.per("rate")), (Some("global"), Some("caller")));
}
