//! Policies that change while permits are held.

use std::sync::atomic::{AtomicBool, Ordering};

use spillgate_policy::{Limit, Outcome, Policy, PolicyBuilder, Terms};

use super::{held, now};
use crate::common::{TestGate, gate_of, get};

fn policy(limits: impl IntoIterator<Item = Limit>) -> Policy {
    let builder = limits.into_iter().fold(Policy::builder(), PolicyBuilder::limit);
    builder.build().unwrap()
}

fn uploads(limit: u64) -> Limit {
    Limit::concurrent("uploads", limit)
}

fn open(gate: &TestGate) -> Outcome<'static> {
    get("203.0.113.7", "/").through(gate)
}

#[test]
fn holders_count_while_name_and_key_stay() {
    let (gate, _) = gate_of(policy([uploads(2)]));
    let (first, second) = (open(&gate), open(&gate));
    gate.replace(policy([uploads(3)])).unwrap();
    let third = open(&gate);
    assert!(third.is_allowed() && !open(&gate).is_allowed(), "raised to 3");
    gate.replace(policy([Limit::new("rate", "100/s"), uploads(1)])).unwrap();
    assert_eq!(held(&gate, "uploads"), 3, "those beyond a lowered limit go on");
    drop((first, second));
    assert!(!open(&gate).is_allowed());
    drop(third);
    assert!(open(&gate).is_allowed());
    assert_eq!(held(&gate, "uploads"), 0);
}

#[test]
fn a_limit_that_comes_back_counts_who_still_holds() {
    let (gate, _) = gate_of(policy([uploads(2)]));
    let (first, second) = (open(&gate), open(&gate));
    let without = || policy([Limit::new("rate", "100/s")]);
    gate.replace(without()).unwrap();
    gate.replace(without()).unwrap();
    drop(first);
    gate.replace(policy([uploads(2)])).unwrap();
    assert_eq!(held(&gate, "uploads"), 1);
    drop(second);
    assert_eq!(held(&gate, "uploads"), 0, "nothing is returned twice");
    gate.replace(without()).unwrap();
    gate.replace(policy([uploads(2)])).unwrap();
    assert_eq!(held(&gate, "uploads"), 0);
}

#[test]
fn a_limit_that_counts_something_else_starts_afresh_and_its_holders_return_nothing_there() {
    let (gate, _) = gate_of(policy([uploads(1)]));
    let before = open(&gate);
    gate.replace(policy([uploads(1).per(["ip"])])).unwrap();
    let after = open(&gate);
    assert!(after.is_allowed());
    drop(before);
    assert_eq!(held(&gate, "uploads"), 1);
    gate.replace(policy([Limit::new("uploads", "1/h")])).unwrap();
    drop(after);
    assert!(open(&gate).is_allowed() && !open(&gate).is_allowed(), "a rate now");
    gate.replace(policy([uploads(1)])).unwrap();
    assert!(open(&gate).is_allowed(), "what was spent under a rate is not held");
    gate.replace(policy([Limit::new("uploads", "1/h")])).unwrap();
    assert!(!open(&gate).is_allowed(), "and it counts again when the rate is back");
}

#[test]
fn acquired_permits_outlive_policies() {
    let jobs = || Limit::concurrent("jobs", 1).by_name().per(["user"]);
    let (gate, _) = gate_of(policy([jobs()]));
    let id = now(gate.acquire("jobs", &["42"], 1, None)).unwrap().id().unwrap();
    gate.replace(policy([Limit::new("rate", "1/s")])).unwrap();
    assert!(now(gate.renew(id, std::time::Duration::from_secs(60))).unwrap());
    gate.replace(policy([jobs()])).unwrap();
    assert_eq!(now(gate.acquire("jobs", &["42"], 1, None)).unwrap().id(), None);
    assert!(now(gate.release(id)).unwrap());
    assert!(now(gate.acquire("jobs", &["42"], 1, None)).unwrap().id().is_some());
}

#[test]
fn overrides_set_at_run_time_survive() {
    let (gate, _) = gate_of(policy([uploads(1)]));
    let quota = "burst 2".parse().unwrap();
    let set = gate.set_override("uploads", &["203.0.113.7"], quota, Terms::permanent());
    now(set).unwrap();
    gate.replace(policy([uploads(1).capacity(7)])).unwrap();
    let both = (open(&gate), open(&gate));
    assert!(both.1.is_allowed());
}

#[test]
fn concurrency_limits_are_not_saved() {
    let (gate, _) = gate_of(policy([uploads(1), Limit::new("rate", "1/h burst 5")]));
    let open = open(&gate);
    let names = |gate: &TestGate| -> Vec<_> {
        gate.save().limits.into_iter().map(|limit| limit.name).collect()
    };
    assert_eq!(names(&gate), ["rate"]);
    gate.replace(policy([Limit::new("other", "1/h")])).unwrap();
    assert_eq!(names(&gate), ["other", "rate"]);
    drop(open);
}

#[test]
fn permits_are_dropped_while_policies_are_replaced() {
    let (gate, _) = gate_of(policy([uploads(2)]));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    drop(open(&gate));
                    // Also while the policy is lent.
                    let call = get("203.0.113.7", "/");
                    let _ = gate.try_decide(&call.request(), |outcome| {
                        drop(outcome.unwrap().take_permits());
                    });
                }
            });
        }
        for round in 0..200 {
            let limits = match round % 3 {
                0 => vec![uploads(1)],
                1 => vec![Limit::new("rate", "1000000/s")],
                _ => vec![uploads(3), Limit::new("rate", "1000000/s")],
            };
            gate.replace(policy(limits)).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    gate.replace(policy([uploads(1)])).unwrap();
    assert_eq!(held(&gate, "uploads"), 0);
}
