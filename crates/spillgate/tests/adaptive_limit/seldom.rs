//! Limits with few calls: what was learnt of a busy time must not hold for ever.

use spillgate::adaptive::{
    AdaptiveLimit, AdaptiveLimitBuilder, Aimd, Auto, Controller, Ending, Errors, Priority,
    PriorityClass, Step, StepReason, Target, Window,
};

use super::{Script, anyone, at, ms};

/// A share that was lowered by calls that all failed, and the time after that.
fn failing(by_priority: bool) -> (AdaptiveLimit, u64) {
    let upstream = AdaptiveLimit::share(Errors::default(), 0.2).by_priority(by_priority).build();
    for now in 0..=2_000 {
        let _ = upstream.try_acquire_at(anyone(), at(now)).map(|mut permit| {
            permit.record_latency_at(Ending::Failed, ms(1), at(now));
        });
    }
    assert!(upstream.status().limit < 0.21, "{:?}", upstream.status());
    (upstream, 2_000)
}

/// Calls that end well at once, one every `every` milliseconds. Returns how many went ahead.
fn call(upstream: &AdaptiveLimit, from: u64, until: u64, every: usize) -> usize {
    let calls = (from..until).step_by(every).filter(|now| {
        let permit = upstream.try_acquire_at(anyone(), at(*now));
        permit.map(|mut permit| permit.record_latency_at(Ending::Ok, ms(1), at(*now))).is_ok()
    });
    calls.count()
}

#[test]
fn a_share_comes_back_with_few_calls() {
    for by_priority in [false, true] {
        // 45 calls a minute, of which nine go ahead.
        let (upstream, from) = failing(by_priority);
        call(&upstream, from + 1, from + 65_000, 1_333);
        assert_eq!(upstream.status().limit, 1.0);
        let went = call(&upstream, from + 65_000, from + 125_000, 1_333);
        assert_eq!(went, 46, "all of them, by priority: {by_priority}");
    }
}

#[test]
fn a_share_comes_back_without_calls() {
    for by_priority in [false, true] {
        let (upstream, from) = failing(by_priority);
        let hour = from + 3_600_000;
        assert_eq!(call(&upstream, hour, hour + 10, 1), 10, "by priority: {by_priority}");
        let status = upstream.status();
        assert_eq!((status.limit, status.reason), (1.0, StepReason::Recovered));
    }
}

/// The failures of before a pause do not count with those after it.
#[test]
fn failures_of_before_a_pause_are_forgotten() {
    let upstream = AdaptiveLimit::share(Errors::default(), 0.2).build();
    // Fifteen are too few to tell.
    upstream.record_n_at(Ending::Failed, ms(1), 15, at(0));
    upstream.record_n_at(Ending::Failed, ms(1), 0, at(1_000));
    for (now, failed) in [(3_600_000, 10), (3_601_000, 0)] {
        upstream.record_n_at(Ending::Failed, ms(1), failed, at(now));
    }
    assert_eq!(upstream.status().limit, 1.0, "ten are too few");
    upstream.record_n_at(Ending::Failed, ms(1), 10, at(3_602_000));
    upstream.record_n_at(Ending::Failed, ms(1), 0, at(3_603_000));
    assert!(upstream.status().limit < 0.3, "and twenty are not");
}

/// One call at a time, of eight seconds each, while more are asked for.
fn minutes_of_slow_calls(builder: AdaptiveLimitBuilder) -> f64 {
    let service = builder.start(1.0).build();
    for call in 0..60 {
        let from = call * 8_000;
        let mut held: Vec<_> =
            std::iter::repeat_with(|| service.try_acquire_at(anyone(), at(from)))
                .take_while(Result::is_ok)
                .flatten()
                .collect();
        held.iter_mut().for_each(|permit| permit.record_at(Ending::Ok, at(from + 7_999)));
    }
    service.status().limit
}

#[test]
fn a_limit_that_refuses_is_raised_also_if_calls_are_slow() {
    let limits = [
        minutes_of_slow_calls(AdaptiveLimit::concurrency(Auto::default(), 1..=100)),
        minutes_of_slow_calls(AdaptiveLimit::concurrency(Aimd::default(), 1..=100)),
        minutes_of_slow_calls(AdaptiveLimit::concurrency(Target::new(ms(10_000)), 1..=100)),
    ];
    assert!(limits.iter().all(|limit| *limit >= 2.0), "{limits:?}");
}

#[test]
fn a_minute_counts_if_it_refused_something_and_a_call_ended() {
    // How many calls were refused and ended in the window, and when the next one comes.
    let steps = |refused, ended, now| {
        let script = Script::default();
        let service = AdaptiveLimit::concurrency(script.clone(), 1..=1).build();
        service.record_n_at(Ending::Ok, ms(1), ended, at(0));
        (0..refused).for_each(|_| service.refuse_at(anyone(), at(10)));
        service.peek_at(anyone(), at(now)).unwrap();
        script.steps()
    };
    assert_eq!((steps(5, 1, 60_000), steps(5, 1, 60_001)), (0, 1));
    assert_eq!((steps(0, 9, 60_001), steps(5, 0, 60_001)), (0, 0), "nothing to learn");
    assert_eq!((steps(5, 9, 120_000), steps(5, 9, 120_001)), (1, 0), "not of now");
}

/// A controller that says what it is asked.
#[derive(Debug)]
struct Forgetful(Script);

impl Controller for Forgetful {
    fn step(&mut self, limit: f64, window: &Window) -> Step {
        self.0.step(limit, window)
    }

    fn forget(&mut self, limit: f64) -> Step {
        Step::new(limit + 7.0, StepReason::Recovered)
    }
}

#[test]
fn a_controller_is_asked_after_a_pause_and_at_no_other_time() {
    let script = Script::default();
    let service = AdaptiveLimit::concurrency(Forgetful(script.clone()), 1..=100).build();
    let limit_at = |now: u64| {
        service.record_n_at(Ending::Ok, ms(1), 20, at(now));
        service.status().limit
    };
    let hour = 3_600_000;
    assert_eq!([hour, hour + 1_000, hour + 2_000].map(limit_at), [10.0; 3], "it begins");
    assert_eq!((limit_at(2 * hour), limit_at(2 * hour + 1_000)), (17.0, 17.0), "a pause");
    assert_eq!((limit_at(0), limit_at(1_000)), (17.0, 17.0), "time went back");
    assert_eq!(script.steps(), 4);
}

/// Nobody is below a cut of an hour ago.
#[test]
fn who_was_shed_before_a_pause_is_not_after_it() {
    let low = Priority::new(PriorityClass::Low, 50);
    let builder = AdaptiveLimit::concurrency(Script::default(), 8..=8).by_priority(true);
    let service = builder.build();
    for now in 0..1_000 {
        drop(service.try_acquire_at(anyone(), at(now)));
        service.refuse_at(low, at(now));
        service.record_at(Ending::Ok, ms(1), at(now));
    }
    let places = |now| {
        let calls = (0..10).map(|_| service.try_acquire_at(low, at(now)));
        calls.collect::<Vec<_>>().iter().filter(|call| call.is_ok()).count()
    };
    assert_eq!(places(1_000), 6);
    (0..100).for_each(|_| service.refuse_at(low, at(1_500)));
    assert_eq!(places(61_500), 6, "no call has ended, and others are still refused");
    assert_eq!(places(3_600_000), 8);
}
