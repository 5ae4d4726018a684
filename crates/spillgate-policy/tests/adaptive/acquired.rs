//! Permits of adaptive limits, for programs elsewhere.

use std::time::Duration;

use spillgate::ManualClock;
use spillgate::adaptive::Ending;
use spillgate_policy::store::PermitId;
use spillgate_policy::{Acquired, Answer, CallReport};

use super::{ALICE, in_flight, service, status};
use crate::common::{TestGate, at_once, gate, get};

fn acquire(gate: &TestGate) -> Acquired {
    at_once(gate.acquire("service", &[], 1, Some(Duration::from_secs(10)))).unwrap()
}

fn release(gate: &TestGate, id: PermitId) -> bool {
    at_once(gate.release(id)).unwrap()
}

fn one() -> (TestGate, ManualClock) {
    gate(&service("controller = 'aimd', min = 1, max = 1"))
}

#[test]
fn a_permit_is_held_until_it_is_released() {
    let (gate, clock) = one();
    let first = acquire(&gate);
    let id = first.id().unwrap();
    assert_eq!((first.outcome().is_allowed(), in_flight(&gate)), (true, 1));
    assert_eq!((first.ttl(), first.decision().unwrap().remaining()), (Duration::from_secs(10), 0));
    let second = acquire(&gate);
    assert_eq!((second.id(), second.outcome().answer()), (None, Answer::Shed));
    assert_eq!(second.outcome().shed_by(), Some("service"));
    assert_eq!(get(ALICE, "/").through(&gate).answer(), Answer::Shed);
    clock.advance(Duration::from_secs(9));
    assert!(at_once(gate.renew(id, Duration::from_secs(10))).unwrap());
    clock.advance(Duration::from_secs(9));
    assert!(release(&gate, id) && !release(&gate, id));
    assert!(!at_once(gate.renew(id, Duration::from_secs(10))).unwrap());
    assert!(get(ALICE, "/").through(&gate).is_allowed());
}

#[test]
fn a_permit_that_expires_returns_and_is_counted_and_no_sample() {
    let (gate, clock) = gate(&service("controller = 'aimd', min = 1, max = 1"));
    let ids: Vec<_> = (0..20)
        .map(|_| {
            let id = acquire(&gate).id().unwrap();
            clock.advance(Duration::from_secs(11));
            id
        })
        .collect();
    assert!(get(ALICE, "/").through(&gate).is_allowed(), "it expired");
    assert!(ids.iter().all(|id| !at_once(gate.release_as(*id, Ending::Failed)).unwrap()));
    clock.advance(Duration::from_secs(2));
    drop(get(ALICE, "/").through(&gate));
    assert_eq!(status(&gate, "service").signal, None, "nothing is known of them");
    let usage = gate.usage().into_iter().find(|(name, _)| name == "service").unwrap().1;
    assert_eq!((usage.expired, usage.held), (20, 0));
}

#[test]
fn how_a_call_ended_is_said_when_its_permit_is_released() {
    let endings = [(Some(Ending::Ok), false), (Some(Ending::Failed), true), (None, false)];
    for (ending, falls) in endings {
        let (gate, clock) = gate(&service("controller = 'aimd', min = 1, max = 90, start = 50"));
        for _ in 0..30 {
            let id = acquire(&gate).id().unwrap();
            clock.advance(Duration::from_millis(200));
            let released = match ending {
                Some(ending) => at_once(gate.release_as(id, ending)),
                None => at_once(gate.release(id)),
            };
            assert!(released.unwrap());
        }
        assert_eq!(super::limit(&gate) < 50.0, falls, "{ending:?}");
        let is_known = status(&gate, "service").signal.is_some();
        assert_eq!(is_known, ending.is_some(), "{ending:?}");
    }
}

#[test]
fn a_permit_of_a_fixed_limit_may_be_released_as_well() {
    let (gate, _) = gate("[[limit]]\nname = 'jobs'\nper = 'global'\nconcurrent = 1\n");
    let id = at_once(gate.acquire("jobs", &[], 1, None)).unwrap().id().unwrap();
    assert!(at_once(gate.release_as(id, Ending::Failed)).unwrap());
    assert!(!at_once(gate.release_as(id, Ending::Ok)).unwrap());
}

#[test]
fn what_cannot_be_acquired_is_an_error() {
    let policy = service("controller = 'errors'")
        + "[[limit]]\nname = 'rate'\nper = 'global'\n\
           adaptive = { signal = 'cpu', target = 0.8, min = '1/s', max = '9/s' }\n\
           [[limit]]\nname = 'many'\nadaptive = { min = 5, max = 5 }\n";
    let (gate, _) = gate(&policy);
    let error = |limit, count| at_once(gate.acquire(limit, &[], count, None)).unwrap_err();
    assert!(error("service", 1).to_string().contains("has no permits"));
    assert!(error("rate", 1).to_string().contains("has no permits"));
    assert!(error("many", 2).to_string().contains("ask for 1, not 2"));
    assert!(error("many", 0).to_string().contains("0 permits cannot be acquired"));
    assert_eq!(status(&gate, "many").in_flight, 0);
}

#[test]
fn shadow_mode_gives_permits_beyond_the_limit() {
    let (gate, _) = gate(&(service("min = 1, max = 1") + "mode = 'shadow'\n"));
    let (first, second) = (acquire(&gate), acquire(&gate));
    assert!(second.decision().unwrap().is_denied() && second.outcome().is_allowed());
    assert_eq!(in_flight(&gate), 2);
    assert!(release(&gate, first.id().unwrap()) && release(&gate, second.id().unwrap()));
    assert_eq!(in_flight(&gate), 0);
}

#[test]
fn reports_of_calls_made_elsewhere_move_a_limit() {
    let (gate, clock) = gate(&service("controller = 'aimd', min = 1, max = 90, start = 50"));
    let latency = Duration::from_millis(30);
    for _ in 0..5 {
        gate.report("service", Ending::Failed, latency, 20).unwrap();
        clock.advance(Duration::from_secs(1));
    }
    assert!(super::limit(&gate) < 50.0, "{}", super::limit(&gate));
}

#[test]
fn what_cannot_be_reported_is_an_error() {
    let policy = service("signal = 'cpu', target = 0.8, min = 1, max = 9")
        + "[[limit]]\nname = 'fixed'\nquota = '5/s'\n\
           [[limit]]\nname = 'auto'\nadaptive = { min = 5, max = 5 }\n";
    let (gate, _) = gate(&policy);
    let error = |limit, count| {
        let reported = gate.report(limit, Ending::Ok, Duration::from_millis(5), count);
        reported.unwrap_err().to_string()
    };
    assert!(error("nobody", 1).contains("there is no limit \"nobody\""));
    assert!(error("fixed", 1).contains("is not adaptive"));
    assert!(error("service", 1).contains("follows cpu, and not how calls end"));
    assert!(error("auto", u64::MAX).contains("report at most"));
}

#[test]
fn of_several_reports_all_are_noted_or_none() {
    let policy = service("controller = 'aimd', min = 1, max = 90, start = 50")
        + "[[limit]]\nname = 'cpu'\n\
           adaptive = { signal = 'cpu', target = 0.8, min = 1, max = 9 }\n";
    let (gate, clock) = gate(&policy);
    let latency = Duration::from_millis(5);
    let failed = CallReport { limit: "service", ending: Ending::Failed, latency, count: 20 };
    for other in ["cpu", "nobody"] {
        for _ in 0..5 {
            let (limit, error) =
                gate.report_all(&[failed, CallReport { limit: other, ..failed }]).unwrap_err();
            assert_eq!((limit, error.to_string().contains(other)), (other, true), "{error}");
            clock.advance(Duration::from_secs(1));
        }
        assert_eq!(super::limit(&gate), 50.0, "{other}");
    }
    for _ in 0..5 {
        gate.report_all(&[failed, failed]).unwrap();
        clock.advance(Duration::from_secs(1));
    }
    assert!(super::limit(&gate) < 50.0);
}
