//! Limits on how many requests are in flight.

use std::time::Duration;

use spillgate_policy::{
    Adaptive, Answer, BanSpec, Gate, Limit, LimitCheck, Limits, Mode, Outcome, Policy, Terms,
};

use super::{ALICE, BOB, end, in_flight, limit, load, service, status};
use crate::common::{at_once, gate, gate_of, get};

const TWO: &str = "min = 2, max = 2";

#[test]
fn what_is_beyond_the_limit_is_shed_whoever_asks() {
    let (gate, _) = gate(&service(TWO));
    let first = get(ALICE, "/").through(&gate);
    let second = get(BOB, "/").through(&gate);
    assert!(first.is_allowed() && second.is_allowed() && !first.is_plain());
    assert!(first.needs_settling());
    let third = get(BOB, "/").through(&gate);
    assert_eq!((third.answer(), third.shed_by()), (Answer::Shed, Some("service")));
    assert_eq!((third.denied_by(), third.retry_after()), (None, Some(Duration::from_secs(1))));
    assert_eq!(third.limits().count(), 1);
    assert!(third.limits().all(|limit| limit.is_adaptive() && limit.is_concurrency()));
    assert!(third.refused_caller().is_some() && !third.needs_settling());
    let shown = second.limits().map(|it| (it.decision().limit(), it.decision().remaining()));
    assert_eq!(shown.collect::<Vec<_>>(), [(2, 0)]);
    drop(first);
    assert!(get(BOB, "/").through(&gate).is_allowed());
    drop(second);
    assert_eq!((in_flight(&gate), status(&gate, "service").refused), (0, 1));
}

#[test]
fn deciding_later_is_deciding_at_once() {
    let (gate, _) = gate(&service(TWO));
    let call = get(ALICE, "/");
    let open: Vec<_> = (0..2).map(|_| at_once(gate.decide(&call.request())).unwrap()).collect();
    let third = at_once(gate.decide(&call.request())).unwrap();
    assert_eq!((third.answer(), third.shed_by()), (Answer::Shed, Some("service")));
    assert_eq!(in_flight(&gate), 2);
    drop(open);
    assert_eq!(in_flight(&gate), 0);
}

#[test]
fn a_permit_is_held_until_the_request_has_ended_and_recorded_when_its_response_is_there() {
    let (gate, clock) = gate(&service("controller = 'target', target = '1s', min = 1, max = 99"));
    let mut outcome = get(ALICE, "/").through(&gate);
    let permits = outcome.take_permits();
    assert_eq!((permits.len(), permits.is_empty()), (1, false));
    clock.advance(Duration::from_millis(20));
    end(&gate, outcome, 200);
    assert_eq!(in_flight(&gate), 1, "the body is being sent");
    drop(permits);
    assert_eq!(in_flight(&gate), 0);
    // One sample of ten: the window ends with the eleventh.
    for _ in 0..9 {
        gate.report("service", spillgate::adaptive::Ending::Ok, Duration::from_millis(20), 1)
            .unwrap();
    }
    clock.advance(Duration::from_secs(1));
    end(&gate, get(ALICE, "/").through(&gate), 200);
    let seen = status(&gate, "service").signal.unwrap();
    assert!((seen - 0.02).abs() < 0.001, "{seen}");
}

#[test]
fn the_limit_follows_what_requests_take_and_how_they_end() {
    let (gate, clock) = gate(&service("controller = 'aimd', min = 4, max = 100, start = 20"));
    load(&gate, &clock, Duration::from_millis(50), 200, 5);
    let grown = limit(&gate);
    assert!(grown > 20.0, "{grown}");
    load(&gate, &clock, Duration::from_millis(50), 500, 10);
    let shrunk = limit(&gate);
    assert!(shrunk < grown, "{shrunk} after {grown}");
    assert_eq!(status(&gate, "service").reason.name(), "failures");
}

#[test]
fn statuses_below_500_are_no_failures_and_no_response_at_all_is_one() {
    let policy = service("controller = 'aimd', min = 1, max = 100, start = 50");
    for (ending, falls) in [(Some(200), false), (Some(429), false), (Some(500), true), (None, true)]
    {
        let (gate, clock) = gate(&policy);
        for _ in 0..30 {
            let mut outcome = get(ALICE, "/").through(&gate);
            clock.advance(Duration::from_millis(100));
            match ending {
                Some(status) => end(&gate, outcome, status),
                None => gate.fail(&mut outcome),
            }
        }
        assert_eq!(limit(&gate) < 50.0, falls, "{ending:?}");
    }
}

#[test]
fn a_client_that_goes_away_moves_nothing() {
    let (gate, clock) = gate(&service("controller = 'aimd', min = 1, max = 100, start = 50"));
    for _ in 0..100 {
        drop(get(ALICE, "/").through(&gate));
        clock.advance(Duration::from_millis(100));
    }
    assert_eq!((limit(&gate), status(&gate, "service").signal), (50.0, None));
}

#[test]
fn a_request_is_recorded_once() {
    let (gate, clock) = gate(&service("controller = 'target', target = '1s', min = 1, max = 99"));
    let mut outcome = get(ALICE, "/").through(&gate);
    for _ in 0..20 {
        gate.fail(&mut outcome);
    }
    clock.advance(Duration::from_secs(1));
    drop(get(ALICE, "/").through(&gate));
    assert_eq!(status(&gate, "service").signal, None, "one sample ends no window");
}

#[test]
fn what_is_shed_spends_nothing_and_is_no_offence() {
    let policy = Policy::builder()
        .limit(Limit::adaptive("service", Adaptive::auto(1..=1)))
        .limit(Limit::new("rate", "1/h burst 2").ban(BanSpec::new(1)))
        .limit(Limit::concurrent("uploads", 5))
        .build();
    let (gate, _) = gate_of(policy.unwrap());
    let first = get(ALICE, "/").through(&gate);
    let names: Vec<_> = first.limits().map(|limit| limit.name().to_owned()).collect();
    assert_eq!(names, ["service", "uploads", "rate"]);
    for _ in 0..9 {
        assert_eq!(get(ALICE, "/").through(&gate).answer(), Answer::Shed);
    }
    let left = at_once(gate.peek_limit("rate", &[ALICE], 0)).unwrap();
    assert_eq!((left.remaining(), gate.bans().len()), (1, 0));
    let uploads = gate.usage().into_iter().find(|(name, _)| name == "uploads").unwrap().1;
    assert_eq!(uploads.held, 1);
    drop(first);
    assert!(get(ALICE, "/").through(&gate).is_allowed());
}

#[test]
fn callers_who_are_over_their_own_rate_take_nothing_of_the_service() {
    let policy = service("min = 2, max = 2") + "[[limit]]\nname = 'rate'\nquota = '1/h'\n";
    let (gate, _) = gate(&policy);
    let first = get(ALICE, "/").through(&gate);
    for _ in 0..1_000 {
        let denied = get(ALICE, "/").through(&gate);
        assert_eq!((denied.answer(), denied.denied_by()), (Answer::Denied, Some("rate")));
        assert_eq!(in_flight(&gate), 1);
    }
    assert!(get(BOB, "/").through(&gate).is_allowed());
    assert_eq!(status(&gate, "service").refused, 0);
    drop(first);
}

#[test]
fn shadow_mode_counts_and_refuses_nobody() {
    let policy = service("controller = 'aimd', min = 1, max = 1") + "mode = 'shadow'\n";
    let (gate, _) = gate(&policy);
    let open: Vec<_> = (0..5).map(|_| get(ALICE, "/").through(&gate)).collect();
    assert!(open.iter().all(Outcome::is_allowed));
    let would = open.iter().filter(|it| it.limits().any(|limit| limit.decision().is_denied()));
    assert_eq!((would.count(), in_flight(&gate)), (4, 5));
    assert!(open.iter().all(|it| it.limits().all(|limit| limit.mode() == Mode::Shadow)));
    assert_eq!(status(&gate, "service").refused, 4);
    drop(open);
    assert_eq!(in_flight(&gate), 0);
}

#[test]
fn a_limit_in_shadow_mode_is_asked_only_of_what_passes() {
    let policy = service("min = 1, max = 1") + "mode = 'shadow'\n";
    let (gate, _) = gate(&(policy + "[[limit]]\nname = 'rate'\nquota = '1/h'\n"));
    let first = get(ALICE, "/").through(&gate);
    let denied = get(ALICE, "/").through(&gate);
    assert_eq!((denied.denied_by(), denied.limits().count()), (Some("rate"), 1));
    assert_eq!((in_flight(&gate), status(&gate, "service").refused), (1, 0));
    drop(first);
}

#[test]
fn a_limit_can_be_checked_by_its_name() {
    let policy = service("min = 1, max = 1") + "by-name = true\n";
    let (gate, _) = gate(&(policy + "[[limit]]\nname = 'rate'\nquota = '1/h burst 9'\n"));
    assert!(get(ALICE, "/").through(&gate).is_allowed(), "no request meets it");
    assert_eq!(in_flight(&gate), 0);
    let check = LimitCheck::new("service", &[], 1);
    let held = at_once(gate.decide(&check)).unwrap();
    assert!(held.is_allowed() && in_flight(&gate) == 1);
    let shed = at_once(gate.decide(&check)).unwrap();
    assert_eq!((shed.answer(), shed.shed_by()), (Answer::Shed, Some("service")));
    let look = at_once(gate.decide(&LimitCheck::new("service", &[], 0))).unwrap();
    assert_eq!((look.is_allowed(), look.decision().unwrap().remaining()), (true, 0));
    let rate = LimitCheck::new("rate", &[ALICE], 1);
    let both = at_once(gate.decide(&Limits(&[rate, check]))).unwrap();
    assert_eq!(both.answer(), Answer::Shed);
    drop(held);
    let both = at_once(gate.decide(&Limits(&[rate, check]))).unwrap();
    let names: Vec<_> = both.limits().map(|limit| limit.name().to_owned()).collect();
    assert_eq!(names, ["rate", "service"], "in the order of the checks");
    assert_eq!(both.limits().next().unwrap().decision().remaining(), 7, "the shed one spent none");
    let error = at_once(gate.decide(&LimitCheck::new("service", &[], 2))).unwrap_err();
    assert!(error.is_unknown() && error.to_string().contains("ask for 1, not 2"), "{error}");
}

#[test]
fn what_makes_sense_of_others_alone_is_refused_by_name() {
    let (gate, _) = gate(&service(TWO));
    let quota = "5/s".parse().unwrap();
    for error in [
        at_once(gate.settle_limit("service", &[], 1, 2)).unwrap_err(),
        at_once(gate.reset_limit("service", &[])).unwrap_err(),
        at_once(gate.set_override("service", &[], quota, Terms::permanent())).unwrap_err(),
    ] {
        assert!(error.to_string().contains("follows load"), "{error}");
    }
    let mut outcome = get(ALICE, "/").through(&gate);
    assert!(outcome.receipt().is_none());
    let left = at_once(gate.peek_limit("service", &[], 1)).unwrap();
    assert_eq!((left.limit(), left.remaining()), (2, 1));
    drop(outcome);
}

#[test]
fn a_request_that_does_not_go_ahead_gives_everything_back() {
    let policy = service("min = 1, max = 1") + "[[limit]]\nname = 'rate'\nquota = '1/h'\n";
    let (gate, _) = gate(&policy);
    gate.cancel(get(ALICE, "/").through(&gate));
    assert_eq!(in_flight(&gate), 0);
    assert!(get(ALICE, "/").through(&gate).is_allowed());
}

#[tokio::test]
async fn the_system_clock_serves_as_well() {
    let service = Limit::adaptive("service", Adaptive::auto(1..=1));
    let gate = Gate::new(Policy::builder().limit(service).build().unwrap()).unwrap();
    let call = get(ALICE, "/");
    let first = gate.decide(&call.request()).await.unwrap();
    assert_eq!(gate.decide(&call.request()).await.unwrap().answer(), Answer::Shed);
    drop(first);
    assert!(gate.decide(&call.request()).await.unwrap().is_allowed());
}
