//! Costs that are known only when the response is there.

use std::sync::{Arc, OnceLock};

use crate::common::{Call, TestGate, at_once, gate, gate_of, get};
use crate::expiry::remote::Remote;
use http::{HeaderMap, StatusCode};
use spillgate_policy::{Gate, Limit, LimitCheck, Limits, ListKind, Mode, Policy, Settle, Terms};

/// Sends a call; if it passes, answers it with a status and perhaps a header.
fn answered(call: &Call, gate: &TestGate, status: u16, header: Option<(&str, &str)>) -> bool {
    let mut outcome = call.through(gate);
    if !outcome.is_allowed() {
        return false;
    }
    let mut headers = HeaderMap::new();
    if let Some((name, value)) = header {
        let name: http::HeaderName = name.parse().unwrap();
        headers.insert(name, value.parse().unwrap());
    }
    let status = StatusCode::from_u16(status).unwrap();
    assert!(gate.settle_now(&mut outcome, status, &headers).unwrap().error.is_none());
    true
}

fn left(gate: &TestGate) -> u64 {
    let state = get("203.0.113.7", "/").explained(gate).limits[0].state.clone();
    state.unwrap().remaining
}

#[test]
fn only_failed_logins_count() {
    let (gate, _) = gate(
        "[[limit]]\nname = \"login\"\nquota = \"burst 3\"\nsettle = { status = [401, \"5xx\"] }",
    );
    let login = get("203.0.113.7", "/");
    assert!((0..20).all(|_| answered(&login, &gate, 200, None)));
    assert_eq!(left(&gate), 3);
    assert!(answered(&login, &gate, 401, None));
    assert!(answered(&login, &gate, 503, None));
    assert!(answered(&login, &gate, 404, None));
    assert_eq!(left(&gate), 1);
    assert!(answered(&login, &gate, 401, None));
    assert!(!answered(&login, &gate, 200, None), "also for whoever would succeed now");
}

#[test]
fn what_a_receipt_holds_is_given_back_by_it_alone() {
    let policy = "[[limit]]\nname = \"l\"\nquota = \"burst 10\"\ncost = 4\n\
                  settle = { status = [401] }";
    for is_cancelled in [false, true] {
        let (gate, _) = gate(policy);
        let mut outcome = get("203.0.113.7", "/").through(&gate);
        let receipt = outcome.receipt().unwrap();
        assert!(outcome.receipt().is_none() && outcome.take().receipt().is_none());
        let mut outcome = get("203.0.113.7", "/").through(&gate).take();
        let other = outcome.receipt().unwrap();
        if is_cancelled {
            gate.cancel(outcome);
        } else {
            let settled = gate.settle_now(&mut outcome, StatusCode::OK, &HeaderMap::new());
            assert!(settled.unwrap().error.is_none());
        }
        assert_eq!(left(&gate), 2);
        for (receipt, afterwards) in [(receipt, 5), (other, 8)] {
            let settlement = at_once(gate.settle_actual(receipt, 1)).unwrap();
            assert_eq!(settlement.settled.unwrap().left.remaining(), afterwards);
        }
    }
}

#[test]
fn the_response_tells_what_it_took_and_debt_is_paid_off() {
    let (gate, clock) = gate(
        "[[limit]]\nname = \"tokens\"\nquota = \"100/s burst 1000\"\ncost = 300\n\
         settle = { header = \"x-tokens\" }",
    );
    let ask = get("203.0.113.7", "/");
    assert!(answered(&ask, &gate, 200, Some(("x-tokens", "50"))));
    assert_eq!(left(&gate), 950);
    assert!(answered(&ask, &gate, 200, Some(("x-tokens", "1500"))));
    assert!(!answered(&ask, &gate, 200, None), "in debt by 550");
    clock.advance(std::time::Duration::from_millis(8_500));
    assert!(answered(&ask, &gate, 200, Some(("x-tokens", "nonsense"))), "the estimate stands");
    assert_eq!(left(&gate), 0);
}

#[test]
fn a_closure_can_tell_what_a_response_took() {
    let settle = Settle::with(
        |status, headers| {
            if status.is_success() { Some(headers.len() as u64) } else { None }
        },
    );
    let limit = Limit::new("l", "burst 10").cost(5).settle(settle);
    let (gate, _) = gate_of(Policy::builder().limit(limit).build().unwrap());
    let call = get("203.0.113.7", "/");
    assert!(answered(&call, &gate, 200, Some(("x", "y"))));
    assert_eq!(left(&gate), 9);
    assert!(answered(&call, &gate, 500, None));
    assert_eq!(left(&gate), 4);
}

#[test]
fn a_response_that_is_never_told_leaves_the_cost_as_it_is() {
    let limit = Limit::new("l", "burst 10").cost(4).settle(Settle::header("x-cost"));
    let (gate, _) = gate_of(Policy::builder().limit(limit).build().unwrap());
    let call = get("203.0.113.7", "/");
    drop(call.through(&gate));
    assert_eq!(left(&gate), 6);
}

#[test]
fn a_cost_is_settled_also_if_the_policy_changed_meanwhile() {
    let policy = |burst: u64| {
        let limit = Limit::new("l", format!("burst {burst}")).settle(Settle::status(["401"]));
        Policy::builder().limit(Limit::new("first", "burst 99")).limit(limit).build().unwrap()
    };
    let (gate, _) = gate_of(policy(10));
    let mut outcome = get("203.0.113.7", "/").through(&gate);
    let other = Policy::builder()
        .limit(Limit::new("l", "burst 20").settle(Settle::status(["401"])))
        .build()
        .unwrap();
    gate.replace(other).unwrap();
    assert_eq!(left(&gate), 19);
    let settled = gate.settle_now(&mut outcome, StatusCode::OK, &HeaderMap::new()).unwrap();
    assert!(settled.error.is_none());
    assert_eq!(left(&gate), 20);
    let message = outcome.limits().find(|limit| limit.name() == "l").unwrap().decision();
    assert_eq!((message.remaining(), message.limit()), (20, 20), "the outcome tells what is left");
}

#[test]
fn what_a_limit_in_shadow_did_not_take_is_not_given_back() {
    let limit = Limit::new("l", "burst 1").mode(Mode::Shadow).settle(Settle::status(["401"]));
    let (gate, _) = gate_of(Policy::builder().limit(limit).build().unwrap());
    let call = get("203.0.113.7", "/");
    assert!(answered(&call, &gate, 401, None));
    assert!(answered(&call, &gate, 200, None));
    assert_eq!(left(&gate), 0);
}

#[test]
fn what_was_never_spent_is_not_given_back() {
    let (gate, _) = gate(
        "[[limit]]\nname = \"lax\"\nquota = \"burst 9\"\nper = \"ip\"\n\
         [[limit]]\nname = \"strict\"\nquota = \"burst 3\"",
    );
    let call = get("203.0.113.7", "/");
    assert_eq!(call.passes(&gate, 3), 3);
    for _ in 0..3 {
        gate.cancel(call.through(&gate));
    }
    assert_eq!(left(&gate), 6);

    let settled = Limit::new("l", "burst 9").cost(5).settle(Settle::header("x-cost"));
    let (gate, _) = gate_of(Policy::builder().limit(settled).build().unwrap());
    let mut outcome = call.through(&gate);
    let headers = HeaderMap::from_iter([("x-cost".parse().unwrap(), "2".parse().unwrap())]);
    for _ in 0..2 {
        let settled = gate.settle_now(&mut outcome, StatusCode::OK, &headers).unwrap();
        assert!(settled.error.is_none());
        assert_eq!(left(&gate), 7, "settled twice is settled once");
    }
}

#[test]
fn a_closure_that_settles_may_block_the_caller() {
    let gate = Arc::new(OnceLock::<TestGate>::new());
    let known = Arc::clone(&gate);
    let settle = Settle::with(move |_, _| {
        let block = known.get()?.list(ListKind::Block, "203.0.113.7", Terms::permanent());
        at_once(block).ok()?;
        None
    });
    let policy = Policy::builder().limit(Limit::new("l", "burst 9").settle(settle)).build();
    let gate = gate.get_or_init(|| gate_of(policy.unwrap()).0);
    assert!(answered(&get("203.0.113.7", "/"), gate, 200, None));
    assert!(!get("203.0.113.7", "/").through(gate).is_allowed());
}

#[test]
fn a_request_that_gives_up_waiting_gives_its_place_back() {
    let (gate, _) =
        gate("[[limit]]\nname = \"l\"\nquota = \"1/s burst 3\"\nalgorithm = \"leaky-shaper\"");
    let call = get("203.0.113.7", "/");
    let seconds = |call: &Call| call.through(&gate).wait().as_secs();
    assert_eq!(seconds(&call), 0);
    let second = call.through(&gate);
    assert_eq!(second.wait().as_secs(), 1);
    gate.cancel(second);
    let second = call.through(&gate);
    assert_eq!(second.wait().as_secs(), 1, "the place is free again");
    assert_eq!(seconds(&call), 2);
    gate.cancel(second);
    assert!(!call.through(&gate).is_allowed(), "whoever is not the last leaves a gap");
}

#[test]
fn what_could_not_be_charged_is_told_also_if_the_store_fails_under_another_limit() {
    for unsettled in 0..3 {
        let limit = |name: &str| {
            let limit = Limit::new(name, "1/h burst 5").max_debt(10);
            limit.settle(Settle::header("x-tokens"))
        };
        let policy = Policy::builder().limit(limit("a")).limit(limit("b")).limit(limit("c"));
        let store = Remote::default();
        let gate = Gate::with_store(policy.build().unwrap(), store.clone()).unwrap();
        let checks = ["a", "b", "c"].map(|name| LimitCheck::new(name, &["203.0.113.7"], 1));
        let mut outcome = at_once(gate.decide(&Limits(&checks))).unwrap();
        *store.unsettled.lock().unwrap() = Some(unsettled);
        let headers = HeaderMap::from_iter([("x-tokens".parse().unwrap(), "100".parse().unwrap())]);
        let settled = at_once(gate.settle(&mut outcome, StatusCode::OK, &headers));
        let told: Vec<_> = settled.uncharged.iter().map(|it| (&*it.limit, it.amount)).collect();
        let mut expected = vec![("a", 85), ("b", 85), ("c", 85)];
        expected.remove(unsettled);
        assert_eq!(told, expected);
        assert!(settled.error.unwrap().is_store());
    }
}
