//! Who goes ahead, and what is counted.

use spillgate::ManualClock;
use spillgate::adaptive::{
    AdaptiveLimit, AdaptivePermit, Auto, Ending, Errors, Priority, PriorityClass, StepReason,
    Target,
};

use super::{Script, anyone, at, ms};

fn limit(script: &Script, start: f64) -> AdaptiveLimit {
    AdaptiveLimit::concurrency(script.clone(), 1..=100).start(start).build()
}

/// Takes a step to a limit, at a time.
fn step_to(service: &AdaptiveLimit, script: &Script, limit: f64, now: u64) {
    script.then(limit);
    let steps = script.steps();
    service.record_n_at(Ending::Ok, ms(1), 10, at(now));
    service.record_at(Ending::Ok, ms(1), at(now + 1_000));
    assert_eq!(script.steps(), steps + 1);
}

fn acquired(service: &AdaptiveLimit, now: u64) -> Vec<AdaptivePermit> {
    std::iter::from_fn(|| service.try_acquire_at(anyone(), at(now)).ok()).collect()
}

#[test]
fn as_many_calls_are_in_flight_as_the_limit_says() {
    let service = limit(&Script::default(), 3.0);
    let mut held = acquired(&service, 0);
    assert_eq!((held.len(), service.status().in_flight, service.status().refused), (3, 3, 1));
    assert!(service.peek_at(anyone(), at(0)).is_err());
    held.pop();
    assert!(service.peek_at(anyone(), at(0)).is_ok());
    assert_eq!(service.status().in_flight, 2);
    assert_eq!(service.status().refused, 1, "a peek counts nothing");
    held.extend(service.try_acquire_at(anyone(), at(0)));
    assert_eq!(acquired(&service, 0).len(), 0);
    drop(held);
    assert_eq!(service.status().in_flight, 0);
}

#[test]
fn a_permit_outlives_its_limit() {
    let service = limit(&Script::default(), 3.0);
    let mut permit = service.try_acquire(anyone()).unwrap();
    drop(service);
    permit.record(Ending::Ok);
}

#[test]
fn a_lower_limit_takes_no_permit_away() {
    let script = Script::default();
    let service = limit(&script, 8.0);
    let mut held = acquired(&service, 0);
    step_to(&service, &script, 3.0, 0);
    assert_eq!((service.status().limit, service.status().in_flight), (3.0, 8));
    while held.len() > 3 {
        assert!(service.try_acquire_at(anyone(), at(1_001)).is_err(), "{} held", held.len());
        held.pop();
    }
    held.pop();
    held.extend(acquired(&service, 1_001));
    assert_eq!(held.len(), 3);
}

#[test]
fn fractions_of_a_limit_are_kept_and_only_whole_calls_go_ahead() {
    let script = Script::default();
    let service = limit(&script, 2.9);
    assert_eq!((service.status().limit, acquired(&service, 0).len()), (2.9, 2));
    step_to(&service, &script, 3.1, 0);
    assert_eq!((service.status().limit, acquired(&service, 1_001).len()), (3.1, 3));
    step_to(&service, &script, 0.0, 2_000);
    assert_eq!((service.status().limit, acquired(&service, 3_001).len()), (1.0, 1), "the minimum");
    for (nonsense, now) in [(f64::NAN, 10_000), (f64::INFINITY, 20_000), (-f64::INFINITY, 30_000)] {
        step_to(&service, &script, nonsense, now);
        let limit = service.status().limit;
        assert!((1.0..=100.0).contains(&limit), "{limit} for {nonsense}");
    }
}

#[test]
fn bounds_that_make_no_sense_are_brought_into_order() {
    #[expect(clippy::reversed_empty_ranges, reason = "what the test is about")]
    let ranges = [(0..=0, (1.0, 1.0)), (0..=5, (1.0, 5.0)), (7..=2, (7.0, 7.0))];
    for (range, bounds) in ranges {
        let service = AdaptiveLimit::concurrency(Script::default(), range).start(f64::NAN).build();
        let status = service.status();
        assert_eq!((status.min, status.max), bounds);
        assert!((status.min..=status.max).contains(&status.limit));
        assert!(service.try_acquire(anyone()).is_ok());
    }
    let largest = AdaptiveLimit::concurrency(Script::default(), 1..=u32::MAX).start(1e300).build();
    assert_eq!(largest.status().limit, f64::from(u32::MAX));
}

#[test]
fn it_starts_at_ten_times_the_minimum() {
    let starts =
        |range| AdaptiveLimit::concurrency(Script::default(), range).build().status().limit;
    assert_eq!((starts(2..=100), starts(20..=100)), (20.0, 100.0));
}

#[test]
fn a_call_beyond_the_limit_is_in_flight_and_says_that_it_is_beyond() {
    let service = limit(&Script::default(), 1.0);
    let (first, within) = service.acquire_beyond_at(anyone(), at(0));
    let (second, beyond) = service.acquire_beyond_at(anyone(), at(0));
    assert!(within.is_ok());
    assert_eq!(beyond.unwrap_err().retry_after, ms(1_000));
    assert_eq!((service.status().in_flight, service.status().refused), (2, 1));
    drop(first);
    assert!(service.try_acquire_at(anyone(), at(0)).is_err(), "one is still in flight");
    drop(second);
    assert!(service.try_acquire_at(anyone(), at(0)).is_ok());
}

#[test]
fn a_refusal_after_a_peek_counts_once() {
    let service = limit(&Script::default(), 1.0);
    let _held = service.try_acquire_at(anyone(), at(0)).unwrap();
    assert!(service.peek_at(anyone(), at(0)).is_err());
    service.refuse_at(anyone(), at(0));
    assert_eq!(service.status().refused, 1);
}

#[test]
fn new_bounds_keep_the_limit_and_who_is_in_flight() {
    let service = limit(&Script::default(), 10.0);
    let held = acquired(&service, 0);
    service.set_range(5..=50);
    assert_eq!((service.status().limit, service.status().max), (10.0, 50.0));
    service.set_range(20..=50);
    assert_eq!((service.status().limit, service.status().in_flight), (20.0, 10));
    assert_eq!(acquired(&service, 0).len(), 10);
    service.set_range(1..=4);
    assert_eq!((service.status().limit, service.status().in_flight), (4.0, 10));
    assert!(service.try_acquire_at(anyone(), at(0)).is_err());
    drop(held);
    assert_eq!(acquired(&service, 0).len(), 4);
}

#[test]
fn another_controller_goes_on_from_the_limit_of_the_last() {
    let (old, new) = (Script::default(), Script::default());
    let service = limit(&old, 10.0);
    let held = acquired(&service, 0);
    step_to(&service, &old, 11.0, 0);
    assert!(service.reconfigure(AdaptiveLimit::concurrency(new.clone(), 2..=12)));
    let status = service.status();
    assert_eq!((status.limit, status.min, status.max), (11.0, 2.0, 12.0));
    assert_eq!((status.in_flight, status.refused, status.changes), (10, 1, 1));
    // The first call begins its first window.
    service.record_at(Ending::Ok, ms(1), at(2_000));
    step_to(&service, &new, 12.0, 2_000);
    assert_eq!((old.steps(), service.status().limit), (1, 12.0));
    assert!(!service.reconfigure(AdaptiveLimit::share(new, 0.5)), "of another kind");
    assert_eq!(service.status().limit, 12.0);
    drop(held);
}

#[test]
fn the_status_says_why_the_limit_moved_last() {
    let script = Script::default();
    let service = limit(&script, 10.0);
    assert_eq!((service.status().reason, service.status().changes), (StepReason::Started, 0));
    step_to(&service, &script, 12.0, 0);
    assert_eq!((service.status().reason, service.status().changes), (StepReason::BelowTarget, 1));
    step_to(&service, &script, 12.0, 5_000);
    assert_eq!(service.status().changes, 1, "it has not moved");
    assert_eq!(service.status().signal, Some(0.001));
}

#[test]
fn the_status_has_the_number_that_the_controller_looked_at() {
    let signal = |service: AdaptiveLimit| {
        service.record_n_at(Ending::Ok, ms(10), 60, at(0));
        service.record_n_at(Ending::Ok, ms(70), 20, at(0));
        service.record_n_at(Ending::Failed, ms(500), 20, at(0));
        service.record_at(Ending::Ok, ms(1), at(1_000));
        service.status().signal.unwrap()
    };
    let near = |signal: f64, expected: f64| (signal / expected - 1.0).abs() < 0.02;
    let mean = signal(AdaptiveLimit::concurrency(Auto::default(), 1..=100).build());
    assert!(near(mean, 0.025), "the mean latency: {mean}");
    let target = AdaptiveLimit::concurrency(Target::new(ms(40)), 1..=100).build();
    let p90 = signal(target);
    assert!(near(p90, 0.070), "nine of ten calls: {p90}");
    let failing = signal(AdaptiveLimit::share(Errors::default(), 0.2).build());
    assert!(near(failing, 0.2), "the share of calls that failed: {failing}");
}

#[test]
fn high_priorities_go_ahead_of_low_ones() {
    let clock = ManualClock::new(at(0));
    let (high, low) =
        (Priority::new(PriorityClass::High, 50), Priority::new(PriorityClass::Low, 50));
    let run = |by_priority| {
        let service = AdaptiveLimit::concurrency(Script::default(), 1..=100)
            .start(8.0)
            .clock(clock.clone())
            .by_priority(by_priority)
            .build();
        let mut admitted = [0, 0];
        // Rounds of 100 ms in which 8 calls are served: one of high priority after 15 of low.
        for round in 0..100 {
            let arrivals = [&[low; 15][..], &[high]].concat();
            let now = at(round * 100);
            let arrive = |priority| service.try_acquire_at(priority, now).map(|it| (priority, it));
            let mut held: Vec<_> = arrivals.into_iter().filter_map(|it| arrive(it).ok()).collect();
            for (priority, permit) in &mut held {
                permit.record_at(Ending::Ok, at(round * 100 + 99));
                admitted[usize::from(*priority == high)] += 1;
            }
        }
        admitted
    };
    let [_, high_first_come] = run(false);
    let [low_by_priority, high_by_priority] = run(true);
    assert_eq!(high_first_come, 0, "always too late");
    assert!(high_by_priority >= 85, "{high_by_priority} of 100, at least after the first window");
    assert!(low_by_priority >= 400, "{low_by_priority} of the rest");
}
