//! Adaptive limits.

mod acquired;
mod closures;
mod concurrency;
mod explain;
mod keys;
mod priority;
mod priority_problems;
mod problems;
mod queue_wait;
mod races;
mod rates;
mod reload;
mod shares;
mod stealing;

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use spillgate::ManualClock;
use spillgate::adaptive::AdaptiveStatus;
use spillgate_policy::Outcome;

use crate::common::{Call, TestGate, at_once, get};

const ALICE: &str = "203.0.113.7";
const BOB: &str = "203.0.113.8";

/// A policy of one limit with these keys.
fn service(adaptive: &str) -> String {
    format!("[[limit]]\nname = 'service'\nadaptive = {{ {adaptive} }}\n")
}

/// Where a limit is.
fn status(gate: &TestGate, limit: &str) -> AdaptiveStatus {
    let mut states = gate.adaptive_states().into_iter();
    states.find(|state| &*state.limit == limit).unwrap().status
}

/// The present limit.
fn limit(gate: &TestGate) -> f64 {
    status(gate, "service").limit
}

/// How many requests a limit has in flight.
fn in_flight(gate: &TestGate) -> u32 {
    status(gate, "service").in_flight
}

/// Ends a request with a status.
fn end(gate: &TestGate, mut outcome: Outcome<'_>, status: u16) {
    let status = StatusCode::from_u16(status).unwrap();
    assert!(at_once(gate.settle(&mut outcome, status, &HeaderMap::new())).error.is_none());
}

/// Sends requests that take some time and end with a status, for some seconds: as many at once as
/// there may be.
fn load(gate: &TestGate, clock: &ManualClock, latency: Duration, status: u16, seconds: u64) {
    load_by(gate, clock, &get(ALICE, "/"), latency, status, seconds);
}

fn load_by(
    gate: &TestGate,
    clock: &ManualClock,
    call: &Call,
    latency: Duration,
    status: u16,
    seconds: u64,
) {
    let rounds = Duration::from_secs(seconds).as_nanos() / latency.as_nanos();
    for _ in 0..rounds {
        let open = call.flood(gate);
        clock.advance(latency);
        open.into_iter().for_each(|outcome| end(gate, outcome, status));
    }
}

impl Call {
    /// Sends requests until one is refused, or there are many.
    fn flood(&self, gate: &TestGate) -> Vec<Outcome<'static>> {
        let outcomes = (0..200).map(|_| self.through(gate));
        outcomes.take_while(Outcome::is_allowed).collect()
    }
}
