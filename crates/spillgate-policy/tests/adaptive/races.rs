//! Many threads at once, and stores that answer later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use spillgate_policy::{Adaptive, Answer, Gate, Limit, Mode, Outcome, Policy, RequestPermits};

use super::stealing::Stealing;
use super::{ALICE, in_flight, service, status};
use crate::common::{at_once, gate, get};

#[test]
fn never_more_is_in_flight_than_the_limit() {
    let policy = service("min = 3, max = 3")
        + "[[limit]]\nname = 'rate'\nquota = '1000000000/s'\n\
           [[limit]]\nname = 'fixed'\nper = 'global'\nconcurrent = 1000\n";
    let (gate, _) = gate(&policy);
    let (running, most, shed) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let call = get(ALICE, "/");
                for _ in 0..3_000 {
                    let outcome = call.through(&gate);
                    if !outcome.is_allowed() {
                        assert_eq!(outcome.answer(), Answer::Shed);
                        shed.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    thread::yield_now();
                    running.fetch_sub(1, Ordering::SeqCst);
                    drop(outcome);
                }
            });
        }
    });
    let most = most.load(Ordering::SeqCst);
    assert!((1..=3).contains(&most), "{most}");
    assert_eq!(in_flight(&gate), 0);
    let held = gate.usage().into_iter().map(|(_, usage)| usage.held).sum::<u64>();
    assert_eq!(held, 0, "what was lost was given back");
}

#[test]
fn what_is_spent_is_what_was_let_through() {
    const BURST: u64 = 50_000;
    let policy = service("min = 1, max = 1")
        + &format!("[[limit]]\nname = 'rate'\nper = 'global'\nquota = '1/day burst {BURST}'\n");
    let (gate, _) = gate(&policy);
    let through = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let call = get(ALICE, "/");
                for _ in 0..3_000 {
                    let outcome = call.through(&gate);
                    through.fetch_add(outcome.is_allowed().into(), Ordering::Relaxed);
                    thread::yield_now();
                }
            });
        }
    });
    let left = at_once(gate.peek_limit("rate", &[], 0)).unwrap().remaining();
    assert_eq!(BURST - left, u64::from(through.load(Ordering::Relaxed)));
}

/// A service that does one thing at once, a rate, permits, and a shadow limit, in a store.
fn stealing(is_elsewhere: bool, adaptive: Limit) -> Arc<Gate<Stealing>> {
    let policy = Policy::builder()
        .limit(Limit::adaptive("first", Adaptive::load(0.8, "1/h burst 9"..="1/h burst 9")))
        .limit(adaptive)
        .limit(Limit::new("rate", "1/h burst 9"))
        .limit(Limit::new("shadow", "1/h burst 9").mode(Mode::Shadow))
        .limit(Limit::concurrent("jobs", 9));
    let store = Stealing { is_elsewhere, ..Stealing::default() };
    Arc::new(Gate::with_store(policy.build().unwrap(), store).unwrap())
}

fn service_of_one() -> Limit {
    Limit::adaptive("service", Adaptive::auto(1..=1))
}

#[test]
fn a_request_that_loses_a_race_gives_everything_back() {
    for (is_elsewhere, is_async) in [(false, false), (false, true), (true, false), (true, true)] {
        let gate = stealing(is_elsewhere, service_of_one());
        let thief = Arc::clone(&gate);
        let steal = move || drop(at_once(thief.acquire("service", &[], 1, None)).unwrap());
        *gate.store().hook.lock().unwrap() = Some(Box::new(steal));
        let call = get(ALICE, "/");
        let lost = match is_async {
            true => at_once(gate.decide(&call.request())).unwrap(),
            false => gate.try_decide(&call.request(), |it| it.map(Outcome::take)).unwrap().unwrap(),
        };
        assert_eq!((lost.answer(), lost.shed_by()), (Answer::Shed, Some("service")));
        let names: Vec<_> = lost.limits().map(|it| it.name().to_owned()).collect();
        assert_eq!(names, ["service"], "the others decided nothing in the end");
        for limit in ["first", "rate", "shadow", "jobs"] {
            let left = at_once(gate.peek_limit(limit, &[ALICE], 0)).unwrap().remaining();
            assert_eq!(left, 9, "{limit} {is_elsewhere} {is_async}");
        }
        assert!(lost.refused_caller().is_some() || is_async);
        drop(lost);
    }
}

#[test]
fn an_overloaded_service_costs_the_store_nothing() {
    let gate = stealing(false, service_of_one());
    let call = get(ALICE, "/");
    let open = at_once(gate.decide(&call.request())).unwrap();
    for _ in 0..9 {
        assert_eq!(at_once(gate.decide(&call.request())).unwrap().answer(), Answer::Shed);
    }
    assert_eq!(*gate.store().decided.lock().unwrap(), 1);
    drop(open);
}

#[test]
fn a_store_that_is_not_asked_cannot_fail() {
    let policy = Policy::builder().limit(service_of_one()).build().unwrap();
    let gate = Gate::with_store(policy, Stealing::default()).unwrap();
    gate.store().fails.store(true, Ordering::Relaxed);
    assert!(at_once(gate.decide(&get(ALICE, "/").request())).unwrap().is_allowed());
    assert_eq!(*gate.store().decided.lock().unwrap(), 0);
}

#[test]
fn a_store_that_fails_takes_no_permit_and_about_shadow_limits_alone_stops_nobody() {
    let gate = stealing(false, service_of_one());
    gate.store().fails.store(true, Ordering::Relaxed);
    let call = get(ALICE, "/");
    assert!(at_once(gate.decide(&call.request())).is_err());
    assert_eq!(gate.adaptive_states()[1].status.in_flight, 0);
    let policy = Policy::builder()
        .limit(service_of_one())
        .limit(Limit::new("shadow", "1/h burst 9").mode(Mode::Shadow));
    let gate = Gate::with_store(policy.build().unwrap(), Stealing::default()).unwrap();
    gate.store().fails.store(true, Ordering::Relaxed);
    let outcome = at_once(gate.decide(&call.request())).unwrap();
    assert!(outcome.is_allowed() && outcome.shadow_error().is_some());
    assert_eq!(gate.adaptive_states()[0].status.in_flight, 1);
    drop(outcome);
}

#[test]
fn policies_change_while_requests_are_in_flight() {
    let policy = |max: u32| service(&format!("min = 1, max = {max}"));
    let (gate, _) = gate(&policy(3));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let call = get(ALICE, "/");
                while !stop.load(Ordering::Relaxed) {
                    let outcome = call.through(&gate);
                    assert!(in_flight(&gate) <= 8);
                    drop(outcome.is_allowed().then_some(outcome));
                }
            });
        }
        for round in 0..300 {
            gate.replace(Policy::from_toml(&policy(1 + round % 8)).unwrap()).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(in_flight(&gate), 0);
}

/// What holds something of a service.
enum Holder {
    Outcome(Box<Outcome<'static>>),
    Permits(#[expect(dead_code, reason = "it is there to be dropped")] RequestPermits),
}

proptest! {
    /// Whatever is asked, ended, dropped and reloaded: what is in flight is what is held, and what
    /// is let through was below the limit.
    #[test]
    fn what_is_in_flight_is_what_is_held(
        steps in prop::collection::vec((0..5_u8, 1..6_u32), 1..60),
    ) {
        let policy = |max: u32| service(&format!("controller = 'aimd', min = 1, max = {max}"));
        let (gate, clock) = gate(&policy(4));
        let mut holders = Vec::new();
        for (step, number) in steps {
            match (step, holders.pop()) {
                (0, last) => {
                    holders.extend(last);
                    let limit = status(&gate, "service").limit as usize;
                    let outcome = get(ALICE, "/").through(&gate);
                    prop_assert_eq!(outcome.is_allowed(), holders.len() < limit);
                    holders.extend(outcome.is_allowed().then(|| Holder::Outcome(outcome.into())));
                }
                (1, _) => {}
                (2, Some(Holder::Outcome(mut outcome))) => {
                    holders.push(Holder::Permits(outcome.take_permits()));
                }
                (3, Some(Holder::Outcome(outcome))) => super::end(&gate, *outcome, 200),
                (4, last) => {
                    holders.extend(last);
                    drop(gate.replace(Policy::from_toml(&policy(number)).unwrap()).unwrap());
                }
                (_, last) => holders.extend(last),
            }
            clock.advance(Duration::from_millis(100 * u64::from(number)));
            prop_assert_eq!(in_flight(&gate) as usize, holders.len());
        }
    }
}
