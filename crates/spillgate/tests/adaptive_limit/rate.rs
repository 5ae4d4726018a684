//! Rates that follow load.

use std::time::Duration;

use spillgate::adaptive::{AdaptiveRate, Ending, Priority, PriorityClass, StepReason};
use spillgate::{Decision, Quota, WhenFull};

use super::{Script, anyone, at, ms};

fn quota(text: &str) -> Quota {
    text.parse().unwrap()
}

fn rate(script: &Script, min: &str, max: &str) -> AdaptiveRate<str> {
    AdaptiveRate::builder(script.clone(), quota(min)..=quota(max)).build().unwrap()
}

/// Takes a step to a rate, at a time.
fn step_to(rate: &AdaptiveRate<str>, script: &Script, limit: f64, now: u64) {
    rate.record_n_at(Ending::Ok, ms(1), 10, at(now));
    script.then(limit);
    let steps = script.steps();
    rate.record_at(Ending::Ok, ms(1), at(now + 1_000));
    assert_eq!(script.steps(), steps + 1);
}

fn allowed(rate: &AdaptiveRate<str>, key: &str, now: u64) -> usize {
    std::iter::repeat_with(|| rate.check_at(key, 1, anyone(), at(now)))
        .take_while(Decision::is_allowed)
        .count()
}

#[test]
fn a_rate_moves_between_its_quotas_and_meets_both() {
    let script = Script::default();
    let api = rate(&script, "10/s", "200/s burst 400");
    assert_eq!((api.status().limit, api.status().reason), (100.0, StepReason::Started));
    step_to(&api, &script, 1e9, 0);
    assert_eq!((api.quota(), api.status().limit), (quota("200/s burst 400"), 200.0));
    assert_eq!(allowed(&api, "alice", 1_001), 400);
    step_to(&api, &script, 0.0, 2_000);
    assert_eq!((api.quota(), api.status().limit), (quota("10/s"), 10.0));
    assert_eq!(allowed(&api, "bob", 3_001), 10);
    step_to(&api, &script, 57.5, 4_000);
    assert_eq!(api.quota(), quota("575 per 10 s burst 108"));
    assert_eq!(api.status().changes, 3);
    step_to(&api, &script, f64::NAN, 6_000);
    assert_eq!(api.quota(), quota("575 per 10 s burst 108"), "nothing changed");
}

#[test]
fn every_token_of_a_burst_can_be_had_at_any_moment() {
    let api = rate(&Script::default(), "7/min burst 3", "1009/s burst 11");
    for (step, quota_then) in ["13/s burst 5", "7/min burst 3", "997/s burst 7"].iter().enumerate()
    {
        let now = at(step as u64 * 60_000) + Duration::from_nanos(1_234_567);
        let (key, then) = (format!("caller {step}"), quota(quota_then));
        api.set_range_at(&(then..=then), now - ms(3)).unwrap();
        let left = |cost| api.check_at(&key, cost, anyone(), now).remaining();
        let all: Vec<u64> = (0..then.burst()).map(|_| left(1)).collect();
        assert_eq!(all, (0..then.burst()).rev().collect::<Vec<_>>(), "{then}");
        assert!(api.check_at(&key, 1, anyone(), now).is_denied());
    }
}

#[test]
fn steps_that_change_nothing_move_nobody() {
    let script = Script::default();
    let api = rate(&script, "7/s", "13/s");
    step_to(&api, &script, 9.7, 0);
    let _ = api.check_at("alice", 5, anyone(), at(1_001));
    let word = |now| api.peek_at("alice", 1, anyone(), at(now)).word();
    let before = word(1_002);
    (2..40).for_each(|step| step_to(&api, &script, 9.7, step * 2_000));
    let _ = api.check_at("alice", 5, anyone(), at(81_001));
    let after = word(81_002);
    assert_eq!(after.to_bits() - before.to_bits(), 80_000_000_000);
}

#[test]
fn a_rate_counts_what_it_refuses() {
    let script = Script::default();
    let api = rate(&script, "10/s", "200/s");
    step_to(&api, &script, 10.0, 0);
    assert_eq!(allowed(&api, "alice", 1_500), 10);
    api.refuse_at(anyone(), at(1_500));
    api.record_n_at(Ending::Ok, ms(1), 10, at(2_100));
    api.record_at(Ending::Ok, ms(1), at(3_200));
    let windows = script.windows();
    let refused: Vec<_> = windows.iter().map(|window| window.refused).collect();
    assert_eq!(refused, [0, 2]);
    assert!(windows.iter().all(|window| window.most_in_flight == 0), "nobody knows");
    assert_eq!(api.status().refused, 2);
}

#[test]
fn what_was_spent_can_be_returned() {
    let api = rate(&Script::default(), "1/s burst 10", "1/s burst 10");
    assert_eq!(allowed(&api, "alice", 0), 10);
    api.refund_at("alice", 4, at(0));
    assert_eq!(api.peek_at("alice", 1, anyone(), at(0)).remaining(), 4);
    api.refund_at("alice", u64::MAX, at(500));
    assert_eq!(allowed(&api, "alice", 500), 10);
    api.refund_at("nobody", 5, at(500));
    assert_eq!(allowed(&api, "nobody", 500), 10);
}

#[test]
fn time_that_goes_back_stops_nobody_for_long() {
    let api = rate(&Script::default(), "1/s burst 2", "100/s burst 200");
    assert_eq!(allowed(&api, "alice", 7_200_000), 20);
    assert_eq!(allowed(&api, "alice", 0), 0, "two hours back: as if time had stopped");
    assert_eq!(allowed(&api, "alice", 1_000), 10, "and goes on from there");
}

#[test]
fn quotas_that_make_no_range_are_refused() {
    let build = |min: &str, max: &str| {
        let builder = AdaptiveRate::<str>::builder(Script::default(), quota(min)..=quota(max));
        builder.build().map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        build("11/s", "10/s"),
        "the minimum \"11/s\" is a higher rate than the maximum \"10/s\"; exchange them"
    );
    assert!(build("burst 5", "10/s").contains("\"burst 5\" never refills"));
    assert!(build("1/s", "3141592/s").contains("a bucket keeps whole nanoseconds"));
    let huge = format!("1/s burst {}", (1_u64 << 60) / 1_000_000_000 + 1);
    assert!(
        build("1/min", &huge).contains("more than a quota that moves at such a rate can count"),
        "{huge}"
    );
}

#[test]
fn a_range_can_change_while_callers_owe() {
    let script = Script::default();
    let api = rate(&script, "10/s", "20/s");
    assert_eq!(allowed(&api, "alice", 0), 20);
    api.set_range_at(&(quota("30/s")..=quota("40/s")), at(0)).unwrap();
    assert_eq!((api.status().limit, api.quota()), (30.0, quota("30/s")));
    assert_eq!(allowed(&api, "alice", 0), 0);
    assert_eq!(allowed(&api, "alice", 1_001), 30);
    let far = api.set_range_at(&(quota("30/s")..=quota("1000/s")), at(1_001)).unwrap_err();
    assert!(far.to_string().contains("too far above the one that it was built with"), "{far}");
    assert!(api.set_range_at(&(quota("2/s")..=quota("1/s")), at(1_001)).is_err());
    assert_eq!(api.quota(), quota("30/s"), "nothing changed");
    let another = Script::default();
    let builder = AdaptiveRate::builder(another.clone(), quota("1/s")..=quota("5/s"));
    api.reconfigure(builder).unwrap();
    assert_eq!((api.status().limit, api.quota()), (5.0, quota("5/s")));
}

#[test]
fn a_full_table_says_when_there_is_room() {
    let api: AdaptiveRate<u64> =
        AdaptiveRate::builder(Script::default(), quota("1/min burst 1")..=quota("1/s burst 1"))
            .capacity(1)
            .when_full(WhenFull::Deny)
            .start(0.5)
            .build()
            .unwrap();
    let full = (0..1_000).map(|key| api.check_at(&key, 1, anyone(), at(0)));
    let full = full.into_iter().find(Decision::is_table_full).unwrap();
    let retry = full.retry_after().unwrap();
    assert!(retry > Duration::from_millis(1_999) && retry < ms(2_001), "{retry:?}");
}

#[test]
fn the_last_quarter_of_a_burst_is_for_high_priorities() {
    let script = Script::default();
    let builder = AdaptiveRate::<str>::builder(script.clone(), quota("100/s")..=quota("100/s"));
    let api = builder.by_priority(true).build().unwrap();
    let of = |class| Priority::new(class, 50);
    let (high, low) = (of(PriorityClass::High), of(PriorityClass::Low));
    let mut went = [0, 0];
    // Each millisecond one of each: of 2,000 a second, 100 can be served.
    for now in 0..10_000 {
        let is_high = now % 20 == 0;
        for priority in [Some(low), is_high.then_some(high)].into_iter().flatten() {
            let is_allowed = api.check_at("all", 1, priority, at(now)).is_allowed();
            went[usize::from(priority == high)] += u32::from(is_allowed && now >= 2_000);
        }
        api.record_at(Ending::Ok, ms(1), at(now));
    }
    let [low, high] = went;
    assert_eq!(high, 400, "all of high priority");
    assert!((380..=420).contains(&low), "the rest: {low}");
}

#[test]
fn a_thread_that_was_held_up_gives_nobody_a_token() {
    let api = rate(&Script::default(), "10/s burst 20", "10/s burst 20");
    assert_eq!(allowed(&api, "alice", 60_000), 20);
    for late in [58_900, 58_000, 30_000, 1_500] {
        assert_eq!(allowed(&api, "alice", late), 0);
        assert_eq!(allowed(&api, "alice", 60_000), 0, "after a call of {late}");
    }
    assert_eq!(allowed(&api, "alice", 61_000), 10);
}

#[test]
fn a_low_priority_that_needs_more_than_is_not_reserved_gets_it_when_it_is_told() {
    let script = Script::default();
    let builder = AdaptiveRate::<str>::builder(script.clone(), quota("100/s")..=quota("100/s"));
    let api = builder.by_priority(true).build().unwrap();
    let low = Priority::new(PriorityClass::Low, 50);
    for now in 0..=1_000 {
        for priority in [low, anyone()] {
            let _ = api.check_at("all", 1, priority, at(now));
        }
        api.record_at(Ending::Ok, ms(1), at(now));
    }
    let _ = api.check_at("half", 50, anyone(), at(1_001));
    for cost in [30, 75, 76, 90, 100] {
        let denied = api.peek_at("half", cost, low, at(1_001));
        assert!(denied.is_denied(), "{cost}");
        let then = at(1_001) + denied.retry_after().unwrap();
        assert!(api.peek_at("half", cost, low, then).is_allowed(), "{cost}");
        assert!(api.peek_at("half", cost, low, then - Duration::from_nanos(1)).is_denied());
    }
    assert_eq!(api.peek_at("half", 101, low, at(1_001)).retry_after(), None);
    assert_eq!(api.peek_at("new", 1, low, at(1_001)).remaining(), 75, "a quarter is reserved");
}
