//! What a limiter offers beyond a single check.

use std::net::IpAddr;
use std::time::Duration;

use spillgate::{
    AlgorithmKind, KeyedState, Limiter, ManualClock, Quota, Start, TierOf, Timestamp, Verdict,
    check_all,
};

fn limiter(quota: &str) -> (Limiter<str, ManualClock>, ManualClock) {
    let clock = ManualClock::default();
    (Limiter::builder(quota).clock(clock.clone()).build().unwrap(), clock)
}

#[test]
fn any_key_that_can_be_hashed_is_a_caller() {
    let by_address: Limiter<IpAddr> = Limiter::new("1/h").unwrap();
    assert!(by_address.check(&IpAddr::from([192, 0, 2, 1])).is_allowed());
    assert!(by_address.check(&IpAddr::from([192, 0, 2, 2])).is_allowed());
    assert!(by_address.check(&IpAddr::from([192, 0, 2, 1])).is_denied());

    let by_parts: Limiter<(u32, String)> = Limiter::new("1/h").unwrap();
    assert!(by_parts.check(&(1, "bc".into())).is_allowed());
    assert!(by_parts.check(&(1, "b".into())).is_allowed());

    let by_bytes: Limiter<[u8]> = Limiter::new("1/h").unwrap();
    assert!(by_bytes.check(&[0, 159, 146, 150]).is_allowed());
    assert!(by_bytes.check(&[]).is_allowed());
}

#[test]
fn a_decision_tells_all_three_answers() {
    let (limiter, _) = limiter("1/s burst 5");
    assert_eq!(limiter.check_n("a", 5).verdict(), Verdict::Allowed);
    let retry_after = Duration::from_secs(2);
    assert_eq!(limiter.check_n("a", 2).verdict(), Verdict::Denied { retry_after });
    assert_eq!(limiter.check_n("a", 6).verdict(), Verdict::Never);
    assert_eq!(limiter.check_n("a", u64::MAX).verdict(), Verdict::Never);
    assert_eq!(limiter.check_n("a", 0).verdict(), Verdict::Allowed);
}

#[test]
fn refund_reset_and_peek_do_what_they_say() {
    let (limiter, _) = limiter("1/s burst 5");
    assert_eq!(limiter.check_n("a", 4).remaining(), 1);
    limiter.refund_n("a", 2);
    assert_eq!(limiter.peek("a").remaining(), 3);
    limiter.refund_n("a", 100);
    assert_eq!(limiter.peek("a").remaining(), 5, "never above the burst");
    assert!(limiter.check_n("a", 5).is_allowed());
    limiter.reset("a");
    assert_eq!(limiter.peek("a").remaining(), 5);
}

#[test]
fn a_reservation_is_settled_at_its_true_cost() {
    let (limiter, clock) = limiter("10/s burst 100");
    let reservation = limiter.reserve_n("a", 40).unwrap();
    limiter.settle(reservation, 25);
    assert_eq!(limiter.peek("a").remaining(), 75);

    // Debt may exceed the burst, and has to be worked off.
    let reservation = limiter.reserve_n("a", 10).unwrap();
    limiter.settle(reservation, 175);
    assert_eq!(limiter.peek("a").remaining(), 0);
    let retry_after = Duration::from_millis(10_100);
    assert_eq!(limiter.peek("a").verdict(), Verdict::Denied { retry_after });
    clock.advance(retry_after);
    assert!(limiter.check("a").is_allowed());

    assert!(limiter.reserve_n("a", 50).unwrap_err().is_denied());
    clock.advance(Duration::from_secs(60));
    drop(limiter.reserve_n("b", 30).unwrap());
    assert_eq!(limiter.peek("b").remaining(), 70, "dropped unsettled, the estimate stands");
}

struct Plans(Vec<(String, String)>);

impl TierOf<str> for Plans {
    fn tier_of<'a>(&'a self, key: &'a str) -> Option<&'a str> {
        self.0.iter().find(|(caller, _)| caller == key).map(|(_, plan)| plan.as_str())
    }
}

#[test]
fn callers_have_the_quota_of_their_tier() {
    let plans = [("alice", "gold"), ("bob", "silver"), ("carol", "platinum")];
    let plans = plans.map(|(caller, plan)| (caller.to_owned(), plan.to_owned())).to_vec();
    let limiter = Limiter::<str>::builder("10/s")
        .tier("gold", "100/s")
        .tier("silver", "50/s")
        .tier_of(Plans(plans))
        .build()
        .unwrap();
    let limits = ["alice", "bob", "carol", "dave"].map(|key| limiter.check(key).limit());
    assert_eq!(limits, [100, 50, 10, 10]);
    assert_eq!(limiter.active_callers(), 4);

    limiter.set_tier_quota("gold", "200/s").unwrap();
    assert_eq!(limiter.quota_of("alice"), "200/s".parse().unwrap());
    let error = limiter.set_tier_quota("bronze", "1/s").unwrap_err();
    assert!(error.is_tier() && error.to_string().contains("gold, silver"), "{error}");

    let twice = Limiter::<str>::builder("1/s").tier("a", "1/s").tier("a", "2/s").build();
    assert!(twice.unwrap_err().to_string().contains("duplicate tier \"a\""));
    let unused = Limiter::<str>::builder("1/s").tier("a", "1/s").build().unwrap_err();
    assert!(unused.is_tier() && unused.to_string().contains("tier_of"), "{unused}");
}

#[test]
fn an_override_goes_before_everything_and_keeps_what_was_spent() {
    let (limiter, _) = limiter("10/s");
    assert!(limiter.check_n("partner", 7).is_allowed());
    limiter.set_override("partner", "100/s").unwrap();
    assert_eq!(limiter.peek("partner").remaining(), 93);
    assert!(limiter.check_n("partner", 50).is_allowed());
    assert_eq!(limiter.check("other").limit(), 10);

    limiter.set_override("partner", "50/s").unwrap();
    assert_eq!(limiter.peek("partner").remaining(), 0, "57 spent of 50");
    assert_eq!(limiter.remove_override("partner"), Some("50/s".parse().unwrap()));
    assert_eq!(limiter.peek("partner").remaining(), 0);
    assert_eq!(limiter.remove_override("partner"), None);
    assert!(limiter.set_override("partner", "0/s").is_err());
}

#[test]
fn a_debt_from_before_an_override_does_not_come_back_with_its_end() {
    let (limiter, _) = limiter("burst 10");
    assert!(limiter.check_n("a", 8).is_allowed());
    limiter.set_override("a", "burst 20").unwrap();
    limiter.reset("a");
    assert!(limiter.remove_override("a").is_some());
    assert_eq!(limiter.peek("a").remaining(), 10);
}

#[test]
fn a_batch_decides_as_single_checks_do() {
    let (single, _) = limiter("1/h burst 3");
    let (batch, _) = limiter("1/h burst 3");
    for limiter in [&single, &batch] {
        limiter.set_override("k7", "1/h burst 9").unwrap();
    }
    let keys: Vec<String> = (0..1_000).map(|call| format!("k{}", call * call % 101)).collect();
    let expected: Vec<_> = keys.iter().map(|key| single.check(key)).collect();
    let decided: Vec<_> = batch.check_many(keys.iter().map(String::as_str)).collect();
    assert_eq!(decided, expected);
    assert_eq!(batch.counts(), single.counts());
}

#[test]
fn a_batch_checks_only_as_far_as_it_is_consumed() {
    let (limiter, _) = limiter("1/h burst 3");
    let keys = ["a"; 40];
    assert_eq!(limiter.check_many(keys).take(2).count(), 2);
    assert_eq!(limiter.peek("a").remaining(), 1);
}

#[test]
fn a_live_change_of_quota_keeps_the_spent_tokens_of_every_algorithm() {
    for kind in AlgorithmKind::ALL {
        let clock = ManualClock::default();
        let limiter =
            Limiter::<str>::builder("10/min").algorithm(kind).clock(clock).build().unwrap();
        assert!(limiter.check_n("a", 7).is_allowed());
        limiter.set_quota("20/min").unwrap();
        assert_eq!(limiter.peek("a").remaining(), 13, "{kind}");
        limiter.set_quota("5/min").unwrap();
        assert_eq!(limiter.peek("a").remaining(), 0, "{kind}");
        assert_eq!(limiter.quota(), Quota::per_minute(5).build().unwrap(), "{kind}");
    }
}

#[test]
fn a_bucket_that_starts_empty_fills_from_the_limiters_birth() {
    for kind in [AlgorithmKind::TokenBucket, AlgorithmKind::IntervalBucket] {
        let clock = ManualClock::default();
        let limiter = Limiter::<str>::builder("2/s burst 10")
            .algorithm(kind)
            .start(Start::Empty)
            .clock(clock.clone())
            .build()
            .unwrap();
        assert!(limiter.check("early").is_denied(), "{kind}");
        clock.advance(Duration::from_millis(3_010));
        assert_eq!(limiter.check("late").remaining(), 5, "{kind}: six are refilled");
        clock.advance(Duration::from_secs(10));
        assert_eq!(limiter.check("later").remaining(), 9, "{kind}");
    }
    for kind in [AlgorithmKind::SlidingWindow, AlgorithmKind::LeakyShaper] {
        let builder = Limiter::<str>::builder("2/s").algorithm(kind).start(Start::Empty);
        assert!(builder.build().unwrap_err().is_algorithm(), "{kind}");
    }
}

#[test]
fn a_decision_tells_in_which_time_the_limit_is_refilled() {
    for (kind, quota, window) in [
        (AlgorithmKind::TokenBucket, "10/s burst 20", Some(Duration::from_secs(2))),
        (AlgorithmKind::TokenBucket, "burst 20", None),
        (AlgorithmKind::LeakyShaper, "10/s burst 20", Some(Duration::from_secs(2))),
        (AlgorithmKind::IntervalBucket, "8/s burst 20", Some(Duration::from_secs(3))),
        (AlgorithmKind::FixedWindow, "10/min", Some(Duration::from_secs(60))),
        (AlgorithmKind::SlidingWindow, "10/min", Some(Duration::from_secs(60))),
    ] {
        let limiter = Limiter::<str>::builder(quota).algorithm(kind).build().unwrap();
        assert_eq!(limiter.check("a").window(), window, "{kind} of {quota}");
    }
}

#[test]
fn a_debit_goes_into_debt() {
    let (limiter, clock) = limiter("1/s burst 5");
    limiter.debit_n("a", 8);
    assert_eq!(limiter.check("a").retry_after(), Some(Duration::from_secs(4)));
    clock.advance(Duration::from_secs(4));
    assert!(limiter.check("a").is_allowed());
}

#[test]
fn only_the_last_call_can_be_cancelled() {
    let (limiter, clock) = limiter("1/s burst 5");
    limiter.set_override("special", "1/s burst 3").unwrap();
    for key in ["a", "special"] {
        let reserve = |cost| limiter.reserve_n(key, cost).unwrap();
        let (first, second) = (reserve(1), reserve(1));
        assert!(!limiter.cancel(first), "{key}: another call came after it");
        assert!(limiter.cancel(second), "{key}");
        assert_eq!(limiter.peek(key).remaining(), limiter.peek(key).limit() - 1, "{key}");
        let third = reserve(1);
        assert!(limiter.cancel(third), "{key}: it is the last");
    }
    let late = limiter.reserve_n("b", 1).unwrap();
    clock.advance(Duration::from_secs(9));
    limiter.cancel(late);
    assert_eq!(limiter.peek("b").remaining(), 5, "never above the burst");
}

#[test]
fn a_limiter_built_from_another_knows_what_was_spent() {
    let clock = ManualClock::default();
    let builder = |quota: &str| {
        let tier_of = |key: &str| key.starts_with("gold").then_some("gold");
        Limiter::<str>::builder(quota).tier("gold", "1/s burst 100").tier_of(tier_of)
    };
    let old = builder("1/s burst 10").capacity(100).clock(clock.clone()).build().unwrap();
    old.set_override("special", "1/s burst 50").unwrap();
    for (key, spent) in [("a", 7), ("gold-1", 70), ("special", 45)] {
        assert!(old.check_n(key, spent).is_allowed(), "{key}");
    }
    let new =
        builder("1/s burst 20").capacity(5_000).clock(clock.clone()).build_from(&old).unwrap();
    // All take a second for a token, so that what is owed in time is owed in tokens.
    for (key, left) in [("a", 13), ("gold-1", 30), ("special", 5), ("b", 20)] {
        assert_eq!(new.peek(key).remaining(), left, "{key}");
    }
    // Without the tier its callers have the limiter's own quota, and their debt.
    let plain = Limiter::<str>::builder("1/s burst 20").clock(clock).build_from(&new).unwrap();
    assert_eq!(plain.peek("gold-1").remaining(), 0);
}

#[test]
fn what_was_saved_means_the_same_after_a_restart_whatever_the_clocks_say() {
    for kind in AlgorithmKind::ALL {
        for moved in [-7_000_000_123_i64, 0, 11, 86_400_000_000_000] {
            let at = |nanos: i64| Timestamp::from_nanos((1_700_000_000_000_000_000 + nanos) as u64);
            let build = |clock: ManualClock| {
                let builder = Limiter::<str>::builder("60/min").algorithm(kind);
                builder.hasher(KeyedState::new()).clock(clock).build().unwrap()
            };
            let old = build(ManualClock::new(at(0)));
            old.set_override("special", "600/min").unwrap();
            for (key, spent) in [("a", 7), ("b", 60), ("special", 450)] {
                assert!(old.check_n(key, spent).is_allowed(), "{kind}, {key}");
            }
            let saved = old.save();
            // Ten seconds later, on a clock that was moved.
            let new = build(ManualClock::new(at(moved + 10_000_000_000)));
            new.restore(&saved, at(10_000_000_000));
            old.clock().set(at(10_000_000_000));
            for key in ["a", "b", "special", "c"] {
                let (was, is) = (old.peek(key).remaining(), new.peek(key).remaining());
                // Windows follow the clock: another part of one may be past.
                let follows =
                    matches!(kind, AlgorithmKind::FixedWindow | AlgorithmKind::SlidingWindow);
                assert!(is == was || (follows && moved != 0), "{kind}, {key}: {was}, then {is}");
            }
        }
    }
}

#[test]
fn a_denied_call_spends_on_no_limiter_and_waits_for_the_slowest() {
    let (fast, clock) = limiter("10/s");
    let slow = Limiter::<u32>::builder("1/min").clock(clock.clone()).build().unwrap();
    let both = |cost| check_all([fast.spend("a", cost), slow.spend(&1, 1)]);

    assert!(both(1).is_allowed());
    let denied = both(1);
    assert!(denied.is_denied());
    assert_eq!(denied.verdict(), Verdict::Denied { retry_after: Duration::from_secs(60) });
    let allowed: Vec<_> = denied.decisions().map(|decision| decision.is_allowed()).collect();
    assert_eq!(allowed, [true, false]);
    assert_eq!(fast.peek("a").remaining(), 9);
    assert_eq!(both(11).verdict(), Verdict::Never);
    assert_eq!((fast.counts().denied, slow.counts().denied), (1, 2));

    clock.advance(Duration::from_secs(60));
    assert!(both(1).is_allowed());
}

#[test]
fn one_caller_charged_twice_needs_room_for_both() {
    let (limiter, _clock) = limiter("1/h burst 3");
    let twice = || check_all([limiter.spend("a", 2), limiter.spend("a", 2)]);
    assert!(twice().is_denied());
    assert_eq!(limiter.peek("a").remaining(), 3);
    let spends = vec![limiter.spend("a", 2), limiter.spend("a", 1)];
    assert!(check_all(spends).is_allowed());
    assert_eq!(limiter.peek("a").remaining(), 0);
}

#[test]
fn errors_name_the_value_and_what_would_be_right() {
    let error = |quota: &str, kind| {
        Limiter::<str>::builder(quota).algorithm(kind).build().unwrap_err().to_string()
    };
    let window = error("10/s burst 20", AlgorithmKind::FixedWindow);
    assert!(window.contains("10/s burst 20") && window.contains("token bucket"), "{window}");
    let once = error("burst 5", AlgorithmKind::LeakyBucket);
    assert!(once.contains("burst 5") && once.contains("drain"), "{once}");
    let many = error("1000000/s", AlgorithmKind::SlidingWindow);
    assert!(many.contains("1000000/s") && many.contains("at most 16383"), "{many}");
    assert!(
        "tocken-bucket".parse::<AlgorithmKind>().unwrap_err().to_string().contains("token-bucket")
    );
}
