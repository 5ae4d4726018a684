//! What requests hold until their outcome is dropped.

use spillgate_policy::{
    Answer, Gate, Limit, LimitCheck, Limits, Mode, Outcome, Policy, Terms, Tier,
};

use super::{held, now};
use crate::common::{gate, gate_of, get};

const ALICE: &str = "203.0.113.7";
const BOB: &str = "203.0.113.8";

#[test]
fn a_request_holds_its_permit_until_the_outcome_is_dropped() {
    let (gate, _) = gate("[[limit]]\nname = 'uploads'\nconcurrent = 2\n");
    let first = get(ALICE, "/").through(&gate);
    let second = get(ALICE, "/").through(&gate);
    assert_eq!(held(&gate, "uploads"), 2);
    let third = get(ALICE, "/").through(&gate);
    assert_eq!((third.answer(), third.denied_by()), (Answer::Denied, Some("uploads")));
    assert_eq!(third.retry_after(), Some(std::time::Duration::from_secs(1)));
    assert!(get(BOB, "/").through(&gate).is_allowed(), "each caller has its own");
    assert!(!first.is_plain(), "something is held");
    drop(first);
    assert!(get(ALICE, "/").through(&gate).is_allowed());
    drop(second);
    assert_eq!(held(&gate, "uploads"), 0);
}

#[test]
fn permits_can_be_kept_apart_from_the_outcome() {
    let (gate, _) = gate("[[limit]]\nname = 'uploads'\nconcurrent = 1\n");
    let permits = get(ALICE, "/").through(&gate).take_permits();
    assert_eq!((permits.len(), held(&gate, "uploads")), (1, 1));
    drop(permits);
    assert_eq!(held(&gate, "uploads"), 0);
}

#[test]
fn a_rate_that_denies_returns_the_permits_and_a_permit_that_is_missing_spends_nothing() {
    let policy = "[[limit]]\nname = 'rate'\nquota = '1/h burst 2'\n\
                  [[limit]]\nname = 'uploads'\nconcurrent = 1\n";
    let (gate, _) = gate(policy);
    let first = get(ALICE, "/").through(&gate);
    let names: Vec<_> = first.limits().map(|limit| limit.name().to_owned()).collect();
    assert_eq!(names, ["uploads", "rate"], "permits are taken first");
    assert_eq!(get(ALICE, "/").through(&gate).denied_by(), Some("uploads"));
    drop(first);
    assert!(get(ALICE, "/").through(&gate).is_allowed(), "the denied one has spent nothing");
    assert_eq!(get(ALICE, "/").through(&gate).denied_by(), Some("rate"));
    assert_eq!(held(&gate, "uploads"), 0);
}

#[test]
fn of_several_concurrency_limits_all_are_held_or_none() {
    let policy = "[[limit]]\nname = 'caller'\nconcurrent = 2\n\
                  [[limit]]\nname = 'all'\nper = 'global'\nconcurrent = 3\n";
    let (gate, _) = gate(policy);
    let open: Vec<_> = [ALICE, ALICE, BOB].map(|peer| get(peer, "/").through(&gate)).into();
    let denied = get(BOB, "/").through(&gate);
    assert_eq!(denied.denied_by(), Some("all"));
    let remaining: Vec<_> =
        denied.limits().map(|limit| (limit.name(), limit.decision().remaining())).collect();
    assert_eq!(remaining, [("caller", 1), ("all", 0)]);
    assert_eq!((held(&gate, "caller"), held(&gate, "all")), (3, 3));
    drop(open);
    assert_eq!((held(&gate, "caller"), held(&gate, "all")), (0, 0));
}

#[test]
fn a_shadow_limit_counts_beyond_and_never_denies() {
    let limit = |mode| Limit::concurrent("uploads", 1).mode(mode);
    let policy = Policy::builder()
        .limit(limit(Mode::Shadow))
        .limit(Limit::new("rate", "1/h burst 3"))
        .build()
        .unwrap();
    let (gate, _) = gate_of(policy);
    let open: Vec<_> = (0..3).map(|_| get(ALICE, "/").through(&gate)).collect();
    let denied: Vec<_> = open
        .iter()
        .map(|outcome| {
            let mut limits = outcome.limits();
            limits.any(|limit| limit.name() == "uploads" && limit.decision().is_denied())
        })
        .collect();
    assert_eq!(denied, [false, true, true]);
    assert!(open.iter().all(Outcome::is_allowed));
    assert_eq!(held(&gate, "uploads"), 3);
    let refused = get(ALICE, "/").through(&gate);
    assert_eq!((refused.denied_by(), held(&gate, "uploads")), (Some("rate"), 3));
    drop(open);
    assert_eq!(held(&gate, "uploads"), 0);
}

#[test]
fn a_cost_is_a_number_of_permits() {
    let (gate, _) =
        gate_of(Policy::builder().limit(Limit::concurrent("uploads", 5).cost(2)).build().unwrap());
    let open: Vec<_> = (0..3).map(|_| get(ALICE, "/").through(&gate)).collect();
    let allowed: Vec<_> = open.iter().map(Outcome::is_allowed).collect();
    assert_eq!((allowed, held(&gate, "uploads")), (vec![true, true, false], 4));
}

#[test]
fn tiers_and_overrides_have_numbers_of_their_own() {
    let policy = Policy::builder()
        .limit(Limit::concurrent("uploads", 1).concurrent_for("caller", "ip:203.0.113.9", 3))
        .tier("gold", Tier::new().callers([format!("ip:{BOB}")]).concurrent("uploads", 2))
        .build()
        .unwrap();
    let (gate, _) = gate_of(policy);
    let most = |peer: &str| {
        let open: Vec<_> = (0..5).map(|_| get(peer, "/").through(&gate)).collect();
        open.iter().filter(|outcome| outcome.is_allowed()).count()
    };
    assert_eq!((most(ALICE), most(BOB), most("203.0.113.9")), (1, 2, 3));
    let set = |quota: &str| {
        let (quota, terms) = (quota.parse().unwrap(), Terms::permanent());
        now(gate.set_override("uploads", &[ALICE], quota, terms))
    };
    set("burst 4").unwrap();
    assert_eq!(most(ALICE), 4);
    let error = set("4/s").unwrap_err().to_string();
    assert!(error.contains("concurrency") && error.contains("burst 50"), "{error}");
    assert!(set("burst 1000001").is_err());
    assert!(now(gate.remove_override("uploads", &[ALICE])).unwrap());
    assert_eq!(most(ALICE), 1);
}

#[test]
fn a_check_by_name_holds_until_its_outcome_is_dropped() {
    let policy = "[[limit]]\nname = 'jobs'\nby-name = true\nper = 'user'\nconcurrent = 1\n\
                  [[limit]]\nname = 'starts'\nby-name = true\nper = 'user'\nquota = '1/h burst 2'\n";
    let (gate, _) = gate(policy);
    let check = |cost| LimitCheck::new("jobs", &["42"], cost);
    let decide = |cost| now(gate.decide(&check(cost))).unwrap();
    let mut first = decide(1);
    assert!(first.is_allowed() && first.receipt().is_none(), "there is nothing to settle");
    let peeked = decide(0);
    assert_eq!(peeked.decision().unwrap().remaining(), 0);
    let both = [LimitCheck::new("starts", &["42"], 1), check(1)];
    let denied = now(gate.decide(&Limits(&both))).unwrap();
    let names: Vec<_> = denied.limits().map(|limit| limit.name()).collect();
    assert_eq!((denied.denied_by(), names), (Some("jobs"), vec!["jobs"]));
    drop((first, denied));
    let allowed = now(gate.decide(&Limits(&both))).unwrap();
    let names: Vec<_> = allowed.limits().map(|limit| limit.name()).collect();
    assert_eq!(names, ["starts", "jobs"], "in the order of the checks");
    assert_eq!(allowed.limits().next().unwrap().decision().remaining(), 1);
}

#[test]
fn what_makes_sense_of_rates_only_is_refused() {
    let (gate, _) =
        gate("[[limit]]\nname = 'jobs'\nby-name = true\nper = 'user'\nconcurrent = 2\n");
    let reset = now(gate.reset_limit("jobs", &["42"])).unwrap_err().to_string();
    let settle = now(gate.settle_limit("jobs", &["42"], 1, 2)).unwrap_err().to_string();
    for error in [&reset, &settle] {
        assert!(error.contains("limit \"jobs\" is on concurrency; "), "{error}");
    }
    let open = now(gate.decide(&LimitCheck::new("jobs", &["42"], 1))).unwrap();
    let peeked = now(gate.peek_limit("jobs", &["42"], 1)).unwrap();
    assert!(peeked.is_allowed() && peeked.remaining() == 1, "nothing is taken");
    let peeked = now(gate.peek_limit("jobs", &["42"], 2)).unwrap();
    assert!(peeked.is_denied() && peeked.remaining() == 1);
    drop(open);
}

#[test]
fn summaries_and_explanations_say_what_is_in_flight() {
    let (gate, _) = gate("[[limit]]\nname = 'uploads'\nconcurrent = 2\n");
    let open = get(ALICE, "/").through(&gate);
    let summary = &gate.limits()[0];
    assert_eq!((summary.quota.as_str(), summary.algorithm), ("2 concurrent", "concurrency"));
    assert_eq!((summary.held, summary.expired, summary.callers), (Some(1), Some(0), Some(1)));
    let explained = get(ALICE, "/").explained(&gate);
    assert_eq!(explained.limits[0].state.as_ref().unwrap().in_flight, Some(1));
    assert!(explained.to_string().contains("1 of 2 in flight"), "{explained}");
    drop(open);
}

#[test]
fn a_caller_for_whom_there_is_no_room_is_denied() {
    let policy = Policy::builder().limit(Limit::concurrent("uploads", 2).capacity(1)).build();
    let (gate, _) = gate_of(policy.unwrap());
    let mut open = Vec::new();
    let mut denied = None;
    for last in 1..=200 {
        let outcome = get(&format!("203.0.113.{last}"), "/").through(&gate);
        if !outcome.is_allowed() {
            denied = Some(outcome);
            break;
        }
        open.push(outcome);
    }
    let denied = denied.unwrap();
    assert_eq!(denied.denied_by(), Some("uploads"));
    assert_eq!(denied.retry_after(), Some(std::time::Duration::from_secs(1)));
    let first = get("203.0.113.1", "/").through(&gate);
    assert!(first.is_allowed(), "those who hold something keep their place");
}

#[test]
fn threads_never_hold_more_than_the_limit() {
    use std::sync::atomic::{AtomicI64, Ordering};
    let policy = Policy::builder().limit(Limit::concurrent("all", 3).per(["global"])).build();
    let gate = Gate::new(policy.unwrap()).unwrap();
    let (in_flight, most) = (AtomicI64::new(0), AtomicI64::new(0));
    let allowed: usize = std::thread::scope(|scope| {
        let work = || {
            let mut allowed = 0;
            for _ in 0..2_000 {
                let outcome = get(ALICE, "/");
                let outcome = gate
                    .try_decide(&outcome.request(), |it| it.map(Outcome::take))
                    .unwrap()
                    .unwrap();
                if outcome.is_allowed() {
                    allowed += 1;
                    most.fetch_max(in_flight.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    in_flight.fetch_sub(1, Ordering::SeqCst);
                }
            }
            allowed
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(allowed > 0);
    assert!((1..=3).contains(&most.into_inner()));
    assert_eq!(gate.usage()[0].1.held, 0);
}
