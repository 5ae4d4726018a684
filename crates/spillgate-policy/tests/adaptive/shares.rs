//! Limits that let a share of all requests through.

use std::time::Duration;

use spillgate_policy::{Answer, Outcome};

use super::{ALICE, end, in_flight, limit, service, status};
use crate::common::{TestGate, gate, get};

/// Sends requests of which a share fails, ten a second. Returns how many were let through.
fn run(gate: &TestGate, clock: &spillgate::ManualClock, fails: bool, seconds: usize) -> usize {
    let mut let_through = 0;
    for _ in 0..seconds * 10 {
        clock.advance(Duration::from_millis(100));
        let outcome = get(ALICE, "/").through(gate);
        if outcome.is_allowed() {
            let_through += 1;
            end(gate, outcome, if fails { 503 } else { 200 });
        }
    }
    let_through
}

#[test]
fn while_requests_fail_fewer_are_let_through_and_never_none() {
    let (gate, clock) = gate(&service("controller = 'errors', min = 0.3"));
    assert_eq!(limit(&gate), 1.0);
    assert_eq!(run(&gate, &clock, false, 30), 300, "nobody is refused while all is well");
    run(&gate, &clock, true, 120);
    assert_eq!((limit(&gate), status(&gate, "service").reason.name()), (0.3, "failures"));
    let let_through = run(&gate, &clock, true, 10);
    assert!((29..=31).contains(&let_through), "{let_through}");
    run(&gate, &clock, false, 120);
    assert_eq!(limit(&gate), 1.0, "it recovers");
}

#[test]
fn a_request_that_is_not_let_through_is_shed() {
    let (gate, _) = gate(&service("controller = 'errors', start = 0.5"));
    let all: Vec<_> = (0..10).map(|_| get(ALICE, "/").through(&gate)).collect();
    assert_eq!(all.iter().filter(|it| it.is_allowed()).count(), 5);
    let shed = all.iter().find(|it| !it.is_allowed()).unwrap();
    assert_eq!((shed.answer(), shed.shed_by()), (Answer::Shed, Some("service")));
    assert!(shed.limits().all(|limit| limit.is_share() && !limit.is_concurrency()));
    assert_eq!(in_flight(&gate), 5);
    assert_eq!(gate.usage().len(), 0, "nobody counts its callers");
}

#[test]
fn a_share_in_shadow_mode_refuses_nobody() {
    let (gate, _) = gate(&(service("controller = 'errors', start = 0.5") + "mode = 'shadow'\n"));
    let all: Vec<_> = (0..10).map(|_| get(ALICE, "/").through(&gate)).collect();
    assert!(all.iter().all(Outcome::is_allowed));
    let would = all.iter().filter(|it| it.limits().any(|limit| limit.decision().is_denied()));
    assert_eq!((would.count(), status(&gate, "service").refused), (5, 5));
}
