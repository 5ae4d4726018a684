//! Quotas that come with each call.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use spillgate::{Clock, Decision, ManualClock, WhenFull};
use spillgate_policy::store::{CallQuota, Memory};
use spillgate_policy::{
    Descriptor, Descriptors, Gate, LimitCheck, Outcome, Policy, PolicyBuilder, Throttle,
};

use crate::common::{TestGate, gate_of, problems};

const CAPACITY: usize = 1_000;

fn policy() -> Policy {
    with_throttle(CAPACITY, WhenFull::Evict)
}

fn with_throttle(capacity: usize, when_full: WhenFull) -> Policy {
    Policy::builder().build().unwrap().with_throttle(capacity, when_full)
}

fn decide(gate: &TestGate, key: &[u8], quota: &str, cost: u64) -> Decision {
    let quota = CallQuota::new(quota.parse().unwrap()).unwrap();
    let decided = gate.try_decide(&Throttle { key, quota, cost }, |it| {
        it.map(|outcome| *outcome.decision().unwrap())
    });
    decided.unwrap().unwrap()
}

fn admitted(gate: &TestGate, key: &[u8], quota: &str, calls: usize) -> usize {
    (0..calls).filter(|_| decide(gate, key, quota, 1).is_allowed()).count()
}

/// Callers under one quota who come again and again, while a flood of new keys comes under
/// another. Returns how many calls of each were admitted.
fn flooded(quota: &str, flood: &str) -> Vec<usize> {
    let (gate, _) = gate_of(policy());
    let mut passed = vec![0; 20];
    for round in 0..20_u64 {
        for (caller, passed) in passed.iter_mut().enumerate() {
            let key = format!("caller-{caller}");
            *passed += admitted(&gate, key.as_bytes(), quota, 2);
        }
        for number in 0..1_000 {
            let key = format!("flood-{round}-{number}");
            let _ = decide(&gate, key.as_bytes(), flood, 1);
        }
    }
    passed
}

#[test]
fn a_flood_under_one_quota_frees_nobody_under_another() {
    for (quota, flood) in [
        ("1/day burst 10", "1/s"),
        ("1/s burst 10", "1/day"),
        ("1/s burst 10", "1/min"),
        ("1/min burst 10", "10/h"),
        ("10/h burst 10", "10/day"),
    ] {
        assert_eq!(flooded(quota, flood), [10; 20], "{quota}, flooded under {flood}");
    }
}

#[test]
fn a_flood_frees_nobody_if_the_table_protects_or_denies() {
    for when_full in [WhenFull::Deny, WhenFull::Protect] {
        let (gate, _) = gate_of(with_throttle(100, when_full));
        let quota = "1/h burst 3";
        let again = |calls| -> Vec<_> {
            let key = |caller| format!("caller-{caller}");
            (0..20).map(|caller| admitted(&gate, key(caller).as_bytes(), quota, calls)).collect()
        };
        assert_eq!(again(9), [3; 20]);
        for number in 0..10_000 {
            let _ = decide(&gate, format!("flood-{number}").as_bytes(), "2/h", 2);
        }
        assert_eq!(again(9), [0; 20], "{when_full:?}");
    }
}

#[test]
fn a_key_owes_the_same_under_quotas_of_every_class() {
    let quotas = ["1/s burst 5", "1/min burst 5", "1/h burst 5", "1/day burst 5"];
    for spent in quotas {
        for next in quotas {
            let (gate, clock) = gate_of(policy());
            // So that every class has a table.
            quotas.iter().for_each(|quota| assert_eq!(admitted(&gate, b"other", quota, 0), 0));
            for quota in quotas {
                let _ = decide(&gate, quota.as_bytes(), quota, 1);
            }
            let full_after = decide(&gate, b"key", spent, 3).reset_after();
            assert_eq!(decide(&gate, b"key", next, 0).reset_after(), full_after, "{spent} {next}");
            clock.advance(Duration::from_secs(1));
            let full_after = full_after.map(|time| time - Duration::from_secs(1));
            assert_eq!(decide(&gate, b"key", next, 0).reset_after(), full_after, "{spent} {next}");
            assert_eq!(decide(&gate, b"key", spent, 0).reset_after(), full_after, "and back");
        }
    }
}

#[test]
fn a_key_keeps_the_time_that_it_owes() {
    let (gate, clock) = gate_of(policy());
    assert_eq!(admitted(&gate, b"key", "1/h burst 10", 7), 7);
    assert_eq!(admitted(&gate, b"key", "1/s burst 10", 1), 0, "it owes seven hours");
    clock.advance(Duration::from_secs(7 * 3600 - 9));
    assert_eq!(admitted(&gate, b"key", "1/s burst 10", 9), 1, "and now nine seconds");
    assert_eq!(admitted(&gate, b"key", "1/h burst 10", 20), 9, "ten seconds are part of an hour");
}

#[test]
fn hits_that_are_given_back_are_given_back_in_every_class() {
    let (gate, _) = gate_of(Policy::builder().call_quotas().build().unwrap());
    let entries = [("user", "7")];
    let call = |quota: &str, hits, gives_back| {
        let quota = Some(quota.parse().unwrap());
        let descriptors = &[Descriptor { hits, gives_back, quota, ..Descriptor::new(&entries) }];
        let left = gate.try_decide(&Descriptors { domain: "edge", descriptors }, |it| {
            it.map(|outcome| outcome.outcome().decision().unwrap().remaining())
        });
        left.unwrap().unwrap()
    };
    assert_eq!(call("1/min burst 10", 4, false), 6);
    assert_eq!(call("1/day burst 10", 0, false), 9, "four minutes are part of a day");
    assert_eq!(call("1/min burst 10", 4, true), 10);
    assert_eq!(call("1/day burst 10", 0, false), 10);
}

#[test]
fn what_keys_owe_survives_a_restart_and_a_reload() {
    let (gate, clock) = gate_of(policy());
    let quotas = ["1/s burst 5", "1/min burst 5", "1/h burst 5", "1/day burst 5"];
    for quota in quotas {
        assert_eq!(admitted(&gate, quota.as_bytes(), quota, 3), 3);
    }
    assert_eq!(gate.usage()[0].1.callers, 4);
    gate.replace(policy()).unwrap();
    let larger = with_throttle(5_000, WhenFull::Deny);
    gate.replace(larger).unwrap();
    for quota in quotas {
        assert_eq!(decide(&gate, quota.as_bytes(), quota, 0).remaining(), 2, "{quota}");
    }
    let store = Memory::new(ManualClock::default()).with_seed(gate.store().seed());
    let next = Gate::with_store(policy(), store).unwrap();
    next.restore(gate.save(), clock.now()).unwrap();
    for quota in quotas {
        assert_eq!(admitted(&next, quota.as_bytes(), quota, 9), 2, "{quota}");
    }
    assert_eq!(next.usage()[0].1.callers, 4);
}

#[test]
fn a_full_table_denies_newcomers_under_any_quota_if_it_is_told_to() {
    let (gate, _) = gate_of(with_throttle(1, WhenFull::Deny));
    let passed = |quota| {
        // Keys that no other quota has seen: what a key owes would go with it.
        let key = |number: u32| format!("{quota} {number}");
        let passes = |number: &u32| decide(&gate, key(*number).as_bytes(), quota, 1).is_allowed();
        let passed = (0..1_000).filter(passes).count();
        let last = decide(&gate, key(999).as_bytes(), quota, 1);
        assert!(last.is_table_full(), "{last:?}");
        passed
    };
    let (first, second) = (passed("1/h"), passed("1/day"));
    assert!((1..100).contains(&first), "{first}");
    assert_eq!(second, 0);
}

#[tokio::test]
async fn its_name_is_reserved_and_no_limit_by_name() {
    let text = "[[limit]]\nname = \"cl.throttle\"\nquota = \"1/s\"";
    assert!(problems(text)[0].contains("quotas that come with calls"), "{:?}", problems(text));
    let (gate, _) = gate_of(policy());
    let error = gate.decide(&LimitCheck::new("cl.throttle", &["key"], 1)).await.unwrap_err();
    assert!(error.to_string().contains("comes with each call"), "{error}");
    let spent = "1/h burst 3";
    assert_eq!(admitted(&gate, b"key", spent, 9), 3);
    gate.reset_limit("cl.throttle", &["key"]).await.unwrap();
    assert_eq!(admitted(&gate, b"key", spent, 9), 3);
    let (without, _) = gate_of(PolicyBuilder::default().build().unwrap());
    let quota = CallQuota::new("1/s".parse().unwrap()).unwrap();
    let error = without.decide(&Throttle { key: b"key", quota, cost: 1 }).await.unwrap_err();
    assert!(error.to_string().contains("with_throttle"), "{error}");
}

#[test]
fn keys_are_bytes_and_are_never_shown() {
    let (gate, _) = gate_of(policy());
    for key in [&b"\xff\0secret"[..], b"", b"anonymous"] {
        assert_eq!(admitted(&gate, key, "1/h burst 2", 9), 2);
        gate.prefetch([key]);
    }
    let quota = CallQuota::new("1/h".parse().unwrap()).unwrap();
    let question = Throttle { key: b"secret-7", quota, cost: 1 };
    let shown = gate.try_decide(&question, |it| format!("{question:?} {:?}", it.unwrap())).unwrap();
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn a_cancelled_call_is_taken_back_in_every_class_unless_more_was_spent_since() {
    let [short, long] = ["1/min burst 5", "1/day burst 5"].map(|quota| quota.parse().unwrap());
    let take = |gate: &TestGate, quota, cost| {
        let question = Throttle { key: b"key", quota: CallQuota::new(quota).unwrap(), cost };
        gate.try_decide(&question, |it| it.map(Outcome::take)).unwrap().unwrap()
    };
    for later in [0, 1] {
        let (gate, _) = gate_of(policy());
        let _ = take(&gate, short, 1);
        let before = take(&gate, long, 0).decision().unwrap().reset_after();
        let spent = take(&gate, short, 2);
        // Copies what the key owes to the other class.
        let after = take(&gate, long, later).decision().unwrap().reset_after();
        gate.cancel(spent);
        let expected = if later == 0 { before } else { after };
        for quota in [short, long] {
            let left = take(&gate, quota, 0);
            assert_eq!(left.decision().unwrap().reset_after(), expected, "{later} {quota}");
        }
    }
}

proptest! {
    /// What is known of a key is one time, at which its bucket is full again: as redis-cell has
    /// it. These quotas refill in whole nanoseconds, so nothing is rounded.
    #[test]
    fn a_key_is_admitted_as_by_the_time_at_which_its_bucket_is_full(
        calls in vec((select(QUOTAS), 0..7_u64, select(WAITS)), 1..60),
    ) {
        let (gate, clock) = gate_of(policy());
        let mut full_at = 0;
        for (call, (quota, cost, wait)) in calls.into_iter().enumerate() {
            clock.advance(Duration::from_millis(wait));
            let now = u128::from(clock.now().as_nanos());
            let (text, interval, burst) = quota;
            let next = now.max(full_at) + u128::from(cost) * interval;
            let passes = cost == 0 || next <= now + burst * interval;
            let decision = decide(&gate, b"key", text, cost);
            prop_assert_eq!(decision.is_allowed(), passes, "call {}: {:?}", call, decision);
            if passes {
                full_at = next;
            }
            let owed = Duration::from_nanos((full_at.max(now) - now) as u64);
            prop_assert_eq!(decision.reset_after(), Some(owed), "call {}", call);
            let left = (now + burst * interval).saturating_sub(full_at.max(now)) / interval;
            prop_assert_eq!(u128::from(decision.remaining()), left, "call {}", call);
        }
    }
}

/// Quotas of every class: as a text, the time per token in nanoseconds, and the burst.
const QUOTAS: &[(&str, u128, u128)] = &[
    ("10/s burst 20", 100_000_000, 20),
    ("1/s burst 5", 1_000_000_000, 5),
    ("30/min burst 16", 2_000_000_000, 16),
    ("1/min burst 5", 60_000_000_000, 5),
    ("100/h", 36_000_000_000, 100),
    ("1/h burst 3", 3_600_000_000_000, 3),
    ("10/day", 8_640_000_000_000, 10),
    ("1/day burst 3", 86_400_000_000_000, 3),
];

const WAITS: &[u64] = &[0, 1, 100, 1_500, 60_000, 1_800_000, 50_000_000];
