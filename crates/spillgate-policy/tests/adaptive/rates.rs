//! Rates that follow load.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use spillgate::ManualClock;
use spillgate_policy::{Adaptive, Answer, Limit, Outcome, Policy};

use super::{ALICE, BOB, limit, status};
use crate::common::{TestGate, at_once, gate_of, get};

/// A signal that the test sets, in percent; 0 if it is missing.
#[derive(Clone, Default)]
struct Dial(Arc<AtomicU64>);

impl Dial {
    fn set(&self, percent: u64) {
        self.0.store(percent, Ordering::Relaxed);
    }

    fn read(&self) -> Option<f64> {
        let percent = self.0.load(Ordering::Relaxed);
        (percent > 0).then_some(percent as f64 / 100.0)
    }
}

/// A rate between 10/s and 200/s that keeps a dial near 80 %.
fn dialled(per: &[&str]) -> (TestGate, ManualClock, Dial) {
    let dial = Dial::default();
    dial.set(80);
    let signal = dial.clone();
    let adaptive = Adaptive::load(0.8, "10/s"..="200/s").signal(move || signal.read());
    let limit = Limit::adaptive("service", adaptive).per(per.iter().copied());
    let (gate, clock) = gate_of(Policy::builder().limit(limit).build().unwrap());
    (gate, clock, dial)
}

/// Asks now and then, so that steps are taken.
fn run(gate: &TestGate, clock: &ManualClock, seconds: u64) {
    for _ in 0..seconds * 4 {
        clock.advance(Duration::from_millis(250));
        drop(get("192.0.2.99", "/").through(gate));
    }
}

/// How many calls of a caller pass at once.
fn burst(gate: &TestGate, peer: &str) -> usize {
    get(peer, "/").flood(gate).len()
}

#[test]
fn a_rate_per_caller_follows_its_signal_and_denies() {
    let (gate, clock, dial) = dialled(&["caller"]);
    assert_eq!(limit(&gate), 100.0, "ten times the minimum");
    assert_eq!(burst(&gate, ALICE), 100);
    dial.set(100);
    run(&gate, &clock, 400);
    assert_eq!((limit(&gate), status(&gate, "service").reason.name()), (10.0, "above-target"));
    assert_eq!(burst(&gate, BOB), 10);
    let denied = get(BOB, "/").through(&gate);
    assert_eq!((denied.answer(), denied.denied_by()), (Answer::Denied, Some("service")));
    assert!(denied.retry_after().is_some_and(|after| after <= Duration::from_millis(100)));
    dial.set(40);
    run(&gate, &clock, 400);
    assert!(limit(&gate) > 50.0, "{}", limit(&gate));
}

#[test]
fn a_rate_of_the_whole_service_sheds() {
    let (gate, clock, dial) = dialled(&["global"]);
    dial.set(100);
    run(&gate, &clock, 400);
    clock.advance(Duration::from_secs(10));
    assert_eq!(burst(&gate, ALICE), 10);
    let shed = get(BOB, "/").through(&gate);
    assert_eq!((shed.answer(), shed.shed_by()), (Answer::Shed, Some("service")));
    assert!(shed.retry_after().is_some_and(|after| after <= Duration::from_millis(100)));
}

#[test]
fn a_signal_that_is_missing_holds_the_limit_and_says_so() {
    let (gate, clock, dial) = dialled(&["caller"]);
    dial.set(100);
    run(&gate, &clock, 5);
    let before = limit(&gate);
    assert!(before < 100.0 && before > 10.0, "{before}");
    dial.set(0);
    run(&gate, &clock, 400);
    let held = status(&gate, "service");
    assert_eq!((held.limit, held.reason.name(), held.signal), (before, "no-signal", None));
    dial.set(100);
    run(&gate, &clock, 400);
    assert_eq!(limit(&gate), 10.0, "it comes back by itself");
}

#[test]
fn a_rate_that_goes_by_a_signal_counts_responses_to_learn_what_one_costs() {
    let (gate, _, _) = dialled(&["caller"]);
    let mut outcome = get(ALICE, "/").through(&gate);
    assert!(outcome.needs_settling() && outcome.receipt().is_none());
    let error = gate.expect_reservable("service").unwrap_err().to_string();
    assert!(error.contains("\"service\" follows load: it can be checked"), "{error}");
    assert!(!outcome.is_plain(), "its steps are looked at, and logged");
    assert!(outcome.limits().all(|limit| limit.is_adaptive() && !limit.is_concurrency()));
}

#[test]
fn a_cost_is_spent_and_given_back_with_the_request() {
    let adaptive = Adaptive::load(0.8, "1/h burst 10"..="1/h burst 10").signal(|| Some(0.8));
    let limit = Limit::adaptive("service", adaptive).cost(4);
    let (gate, _) = gate_of(Policy::builder().limit(limit).build().unwrap());
    let left =
        |gate: &TestGate| at_once(gate.peek_limit("service", &[ALICE], 0)).unwrap().remaining();
    let first = get(ALICE, "/").through(&gate);
    assert_eq!(left(&gate), 6);
    gate.cancel(first);
    assert_eq!(left(&gate), 10);
    assert_eq!(burst(&gate, ALICE), 2);
    assert_eq!(left(&gate), 2, "what is denied spends nothing");
}

#[test]
fn a_rate_in_shadow_mode_refuses_nobody() {
    let adaptive = Adaptive::load(0.8, "1/h burst 1"..="1/h burst 1").signal(|| Some(0.8));
    let limit = Limit::adaptive("service", adaptive).mode(spillgate_policy::Mode::Shadow);
    let (gate, _) = gate_of(Policy::builder().limit(limit).build().unwrap());
    let open: Vec<_> = (0..3).map(|_| get(ALICE, "/").through(&gate)).collect();
    assert!(open.iter().all(Outcome::is_allowed));
    let would = open.iter().filter(|it| it.limits().any(|limit| limit.decision().is_denied()));
    assert_eq!(would.count(), 2);
}

#[test]
fn a_rate_can_follow_latency() {
    let adaptive = Adaptive::target(Duration::from_millis(40), "10/s"..="1000/s");
    let limit_ = Limit::adaptive("service", adaptive).per(["global"]);
    let (gate, clock) = gate_of(Policy::builder().limit(limit_).build().unwrap());
    let outcome = get(ALICE, "/").through(&gate);
    assert!(outcome.needs_settling() && !outcome.is_plain());
    drop(outcome);
    super::load(&gate, &clock, Duration::from_millis(200), 200, 3);
    let seen = status(&gate, "service");
    assert!((seen.signal.unwrap() - 0.2).abs() < 0.01, "{seen:?}");
    assert!(seen.limit < 100.0 && seen.reason.name() == "above-target", "{seen:?}");
}
