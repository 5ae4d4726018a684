//! When steps are taken, and what they see.

use std::time::Duration;

use spillgate::adaptive::{
    AdaptiveLimit, AdaptivePermit, AdaptiveRate, Auto, Ending, LimitKind, Target, Window,
};

use super::{Script, anyone, at, ms};

fn limit(script: &Script) -> AdaptiveLimit {
    AdaptiveLimit::concurrency(script.clone(), 1..=1000).start(500.0).build()
}

fn call(service: &AdaptiveLimit, from: u64) -> AdaptivePermit {
    service.try_acquire_at(anyone(), at(from)).unwrap()
}

#[test]
fn a_window_is_a_second_and_ten_samples() {
    let script = Script::default();
    let service = limit(&script);
    for (samples, now) in [(9, 0), (1, 999)] {
        (0..samples).for_each(|_| service.record_at(Ending::Ok, ms(1), at(now)));
    }
    assert_eq!(script.steps(), 0, "too young");
    service.record_at(Ending::Ok, ms(1), at(1_000));
    assert_eq!(script.steps(), 1);
    // One sample is in the next one already.
    (0..8).for_each(|_| service.record_at(Ending::Ok, ms(1), at(9_000)));
    drop(call(&service, 9_000));
    assert_eq!(script.steps(), 1, "too few");
    service.record_at(Ending::Ok, ms(1), at(9_001));
    service.peek_at(anyone(), at(9_001)).unwrap();
    assert_eq!(script.steps(), 2, "anyone takes it");
    let windows = script.windows();
    assert_eq!((windows[0].completed, windows[0].length), (10, ms(1_000)));
    assert_eq!((windows[1].completed, windows[1].length), (10, ms(8_001)));
}

#[test]
fn a_window_has_what_ended_in_it() {
    let script = Script::default();
    let service = limit(&script);
    service.record_at(Ending::Ok, ms(10), at(0));
    let mut calls: Vec<_> = (0..40).map(|_| call(&service, 10)).collect();
    for (index, call) in calls.iter_mut().enumerate() {
        let ending = if index % 4 == 0 { Ending::Failed } else { Ending::Ok };
        call.record_at(ending, at(30));
        call.record_at(Ending::Failed, at(500));
    }
    drop(calls);
    let mut queued = call(&service, 100);
    queued.record_latency_at(Ending::Ok, ms(900), at(100));
    let cancelled = call(&service, 200);
    drop(cancelled);
    service.record_n_at(Ending::Failed, ms(5), 3, at(900));
    let _ = call(&service, 1_000);
    let [window] = &script.windows()[..] else { panic!("{:?}", script.windows()) };
    assert_eq!((window.completed, window.failed, window.refused), (45, 13, 0));
    // One of 10 ms, 30 of 20 ms, one of 900 ms.
    let mean = window.mean_latency.unwrap();
    assert_eq!(mean, Duration::from_nanos(1_510_000_000 / 32));
    let p90 = window.p90_latency.unwrap();
    assert!((ms(19)..=ms(21)).contains(&p90), "{p90:?}");
    assert_eq!(window.most_in_flight, 40);
    assert_eq!((window.signal, window.length), (None, ms(1_000)));
}

#[test]
fn those_still_in_flight_count_in_the_next_window() {
    let script = Script::default();
    let service = limit(&script);
    service.record_n_at(Ending::Ok, ms(1), 10, at(0));
    let mut calls: Vec<_> = (0..7).map(|_| call(&service, 10)).collect();
    calls.truncate(5);
    service.record_n_at(Ending::Ok, ms(1), 10, at(1_000));
    calls.truncate(2);
    service.record_n_at(Ending::Ok, ms(1), 10, at(2_000));
    service.record_n_at(Ending::Ok, ms(1), 10, at(3_000));
    let most: Vec<_> = script.windows().iter().map(|window| window.most_in_flight).collect();
    assert_eq!(most, [7, 5, 2]);
}

#[test]
fn refusals_count_in_their_window() {
    let script = Script::default();
    let service = AdaptiveLimit::concurrency(script.clone(), 1..=1).build();
    service.record_n_at(Ending::Ok, ms(1), 10, at(0));
    let _held = call(&service, 0);
    (0..5).for_each(|_| assert!(service.try_acquire_at(anyone(), at(1)).is_err()));
    service.record_n_at(Ending::Ok, ms(1), 10, at(1_000));
    service.refuse_at(anyone(), at(1_001));
    service.record_n_at(Ending::Ok, ms(1), 10, at(2_000));
    let refused: Vec<_> = script.windows().iter().map(|window| window.refused).collect();
    assert_eq!((refused, service.status().refused), (vec![5, 1], 6));
}

#[test]
fn a_window_of_long_ago_is_thrown_away() {
    let script = Script::default();
    let service = limit(&script);
    // Nine samples, and more than enough, before an hour without calls.
    for (samples, from) in [(9, 0), (500, 10_000_000)] {
        service.record_n_at(Ending::Ok, ms(5_000), samples, at(from));
        service.record_n_at(Ending::Ok, ms(1), 20, at(from + 3_600_000));
        let steps = script.steps();
        service.record_at(Ending::Ok, ms(1), at(from + 3_601_000));
        let windows = script.windows();
        assert_eq!(windows.len(), steps + 1);
        let last = windows.last().unwrap();
        assert_eq!((last.completed, last.mean_latency), (20, Some(ms(1))));
        assert_eq!(last.length, ms(1_000));
    }
}

#[test]
fn time_that_goes_back_begins_a_window() {
    let script = Script::default();
    let service = limit(&script);
    service.record_n_at(Ending::Ok, ms(1), 20, at(7_200_000));
    let mut before = call(&service, 7_200_000);
    // Two hours back.
    service.record_n_at(Ending::Ok, ms(2), 20, at(0));
    before.record_at(Ending::Ok, at(1));
    service.record_n_at(Ending::Ok, ms(2), 20, at(1_000));
    let windows = script.windows();
    assert_eq!(windows.len(), 1, "it goes on from there");
    assert_eq!((windows[0].completed, windows[0].mean_latency), (20, Some(ms(2))));
    assert_eq!(windows[0].length, ms(1_000));
    // A little, as between two threads, is nothing.
    service.record_n_at(Ending::Ok, ms(2), 20, at(990));
    service.record_n_at(Ending::Ok, ms(2), 20, at(2_000));
    assert_eq!(script.windows()[1].completed, 40);
}

#[test]
fn a_latency_of_hours_is_a_clock_that_jumped() {
    let script = Script::default();
    let service = limit(&script);
    let mut before = call(&service, 0);
    service.record_n_at(Ending::Ok, ms(1), 20, at(7_200_000));
    before.record_at(Ending::Ok, at(7_200_001));
    service.record_at(Ending::Ok, ms(1), at(7_201_000));
    assert_eq!(
        (script.windows()[0].completed, script.windows()[0].mean_latency),
        (20, Some(ms(1)))
    );
}

#[test]
fn without_calls_that_end_well_there_is_no_latency() {
    let script = Script::default();
    let service = limit(&script);
    service.record_n_at(Ending::Failed, ms(1), 20, at(0));
    service.record_n_at(Ending::Failed, ms(1), u32::MAX, at(1_000));
    service.record_n_at(Ending::Ok, ms(3_600_000), u32::MAX, at(2_000));
    service.record_n_at(Ending::Ok, ms(3_600_000), u32::MAX, at(2_000));
    service.record_at(Ending::Ok, ms(1), at(3_000));
    let windows = script.windows();
    assert_eq!((windows[0].mean_latency, windows[0].p90_latency), (None, None));
    assert_eq!(windows[1].failed, u64::from(u32::MAX));
    assert_eq!(windows[2].mean_latency, Some(ms(3_600_000)), "sums do not overflow");
}

#[test]
fn a_call_that_failed_counts_whatever_its_latency() {
    let script = Script::default();
    let service = limit(&script);
    service.record_n_at(Ending::Failed, Window::LONGEST_LATENCY + ms(1), 15, at(0));
    service.record_n_at(Ending::Failed, Duration::MAX, 4, at(0));
    service.record_n_at(Ending::Ok, Window::LONGEST_LATENCY + ms(1), 15, at(0));
    service.record_at(Ending::Ok, Window::LONGEST_LATENCY, at(0));
    service.record_at(Ending::Ok, ms(1), at(1_000));
    let [window] = &script.windows()[..] else { panic!("{:?}", script.windows()) };
    assert_eq!((window.completed, window.failed), (20, 19));
    assert_eq!(window.mean_latency, Some(Window::LONGEST_LATENCY));
}

/// A thread that was held up for less than a minute says nothing about the clock.
#[test]
fn a_call_that_comes_late_begins_no_window() {
    let script = Script::default();
    let service = limit(&script);
    service.record_n_at(Ending::Ok, ms(1), 15, at(100_000));
    service.record_n_at(Ending::Ok, ms(1), 5, at(42_000));
    service.record_at(Ending::Ok, ms(1), at(101_000));
    let [window] = &script.windows()[..] else { panic!("{:?}", script.windows()) };
    assert_eq!((window.completed, window.length), (20, ms(1_000)));
}

#[test]
fn a_window_says_what_is_limited() {
    let script = Script::default();
    let limits = [limit(&script), AdaptiveLimit::share(script.clone(), 0.1).build()];
    for service in limits {
        service.record_n_at(Ending::Ok, ms(1), 10, at(0));
        service.record_at(Ending::Ok, ms(1), at(1_000));
    }
    let builder = AdaptiveRate::<str>::builder(
        script.clone(),
        "1/s".parse().unwrap()..="9/s".parse().unwrap(),
    );
    let rate = builder.build().unwrap();
    rate.record_n_at(Ending::Ok, ms(1), 10, at(0));
    rate.record_at(Ending::Ok, ms(1), at(1_000));
    let kinds: Vec<_> = script.windows().iter().map(|window| window.kind).collect();
    assert_eq!(kinds, [LimitKind::Concurrency, LimitKind::Share, LimitKind::Rate]);
}

/// Calls that hold no permit do not use a limit on what is in flight.
#[test]
fn a_limit_that_is_only_reported_to_stays() {
    let auto = AdaptiveLimit::concurrency(Auto::default(), 1..=1000).start(500.0).build();
    let target = AdaptiveLimit::concurrency(Target::new(ms(20)), 1..=1000).start(500.0).build();
    for service in [auto, target] {
        for second in 0..20 {
            service.record_n_at(Ending::Ok, ms(10 + 50 * second), 100, at(1_000 * second));
        }
        let status = service.status();
        assert_eq!((status.limit, status.changes), (500.0, 0));
    }
}
