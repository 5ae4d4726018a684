//! Limits that go by how long requests waited before they came here.

use std::time::Duration;

use spillgate::ManualClock;
use spillgate::adaptive::Ending;

use super::{ALICE, end, service, status};
use crate::common::{Call, TestGate, at_once, gate, get};

const PROXY: &str = "10.0.0.1";

fn waiting() -> (TestGate, ManualClock) {
    let identity = "[identity]\ntrusted-proxies = ['10.0.0.0/8']\n";
    let limit = service("signal = 'queue-wait', target = '20ms', min = 1, max = 99, start = 50");
    gate(&(identity.to_owned() + &limit))
}

/// Sends requests that each take a second, and began so long before they came.
fn run(gate: &TestGate, clock: &ManualClock, peer: &str, waited: Duration) {
    for _ in 0..15 {
        let start = spillgate::Clock::now(clock).as_nanos() - waited.as_nanos() as u64;
        let call: Call = get(peer, "/").with("x-request-start", format!("t={}", start / 1_000));
        let outcome = call.through(gate);
        clock.advance(Duration::from_secs(1));
        end(gate, outcome, 200);
    }
}

#[test]
fn what_a_trusted_proxy_says_is_the_sample() {
    let (gate, clock) = waiting();
    run(&gate, &clock, PROXY, Duration::from_millis(100));
    let seen = status(&gate, "service");
    assert!((seen.signal.unwrap() - 0.1).abs() < 0.01, "{seen:?}");
}

#[test]
fn what_anyone_else_says_is_none() {
    let (gate, clock) = waiting();
    run(&gate, &clock, ALICE, Duration::from_millis(100));
    assert_eq!((status(&gate, "service").signal, super::limit(&gate)), (None, 50.0));
}

#[test]
fn a_request_without_a_time_is_no_sample() {
    let (gate, clock) = waiting();
    for _ in 0..30 {
        let outcome = get(PROXY, "/").through(&gate);
        clock.advance(Duration::from_secs(1));
        end(&gate, outcome, 200);
    }
    assert_eq!(status(&gate, "service").signal, None);
}

#[test]
fn how_long_a_permit_was_held_is_none() {
    let (gate, clock) = waiting();
    for _ in 0..30 {
        let acquired = at_once(gate.acquire("service", &[], 1, None)).unwrap();
        clock.advance(Duration::from_secs(1));
        assert!(at_once(gate.release_as(acquired.id().unwrap(), Ending::Ok)).unwrap());
    }
    assert_eq!((status(&gate, "service").signal, super::limit(&gate)), (None, 50.0));
}
