//! A service that fails.

use std::time::Duration;

use spillgate::adaptive::{
    AdaptiveLimit, Aimd, Controller, Errors, PriorityClass, StepReason, Window,
};

use super::simulation::{ByTime, Limited, Report, Scenario, Service, Work};

fn run(seed: u64, rate: ByTime, failing: ByTime) -> Report {
    let service = Scenario::new(Service::workers(100), Work::Exponential(0.010), rate);
    let limit = AdaptiveLimit::share(Errors::default(), 0.0);
    Scenario { seed, failing, seconds: 180, ..service }.run(&mut Limited::new(limit))
}

fn admitted(report: &Report, seconds: std::ops::Range<usize>) -> f64 {
    report.admitted(PriorityClass::Normal, seconds)
}

#[test]
fn few_failures_refuse_nothing() {
    for seed in 1..=3 {
        let report = run(seed, |_| 1000.0, |_| 0.03);
        assert_eq!(admitted(&report, 0..180), 1.0);
    }
}

/// Half of the calls fail from the second 30 to 90, so 1 − 0.5 / 0.95 of them are refused.
#[test]
fn failures_refuse_as_many_as_fail_and_are_forgotten_after_half_a_minute() {
    for seed in 1..=3 {
        let failing = |at| if (30.0..90.0).contains(&at) { 0.5 } else { 0.0 };
        let report = run(seed, |_| 200.0, failing);
        assert_eq!(admitted(&report, 0..30), 1.0);
        let during = admitted(&report, 65..90);
        assert!((during - 0.5 / 0.95).abs() < 0.03, "{during}");
        assert_eq!(admitted(&report, 122..180), 1.0);
    }
}

#[test]
fn a_fifth_gets_through_when_all_calls_fail() {
    for seed in 1..=3 {
        let report = run(seed, |_| 200.0, |_| 1.0);
        let during = admitted(&report, 60..180);
        assert!((during - 0.2).abs() < 0.01, "{during}");
    }
}

#[test]
fn too_few_calls_refuse_nothing() {
    let report = run(1, |_| 0.3, |_| 1.0);
    assert_eq!(admitted(&report, 0..175), 1.0);
}

fn window(seconds: u64, completed: u64, failed: u64) -> Window {
    let mut window = Window::default();
    window.length = Duration::from_secs(seconds);
    window.completed = completed;
    window.failed = failed;
    window
}

#[test]
fn aggression_refuses_earlier() {
    let share = |aggression| {
        let mut errors = Errors::default().threshold(0.9).aggression(aggression);
        errors.step(1.0, &window(1, 99, 50)).limit
    };
    let excess: f64 = (99.0 - 49.0 / 0.9) / 100.0;
    assert!((share(1.0) - (1.0 - excess)).abs() < 1e-9);
    assert!((share(2.0) - (1.0 - excess.sqrt())).abs() < 1e-9);
    assert!((share(0.5) - (1.0 - excess.powi(2))).abs() < 1e-9);
}

#[test]
fn reasons_say_what_the_share_does() {
    let mut errors = Errors::default();
    let mut share = 1.0;
    let mut reason = |window| {
        let step = errors.step(share, &window);
        share = step.limit;
        step.reason
    };
    assert_eq!(reason(window(1, 10, 10)), StepReason::Unused);
    assert_eq!(reason(window(1, 1000, 0)), StepReason::Steady);
    assert_eq!(reason(window(1, 1000, 1000)), StepReason::Failures);
    assert_eq!(reason(window(20, 1000, 0)), StepReason::Recovered);
    assert_eq!(reason(window(40, 100, 0)), StepReason::Recovered);
    assert_eq!(reason(window(40, 100, 0)), StepReason::Steady);
}

/// The service refuses what is beyond fifty calls.
#[test]
fn aimd_stays_near_what_the_other_side_takes() {
    let mut limit = 10.0;
    let mut limits = Vec::new();
    for _ in 0..400 {
        let mut window = window(1, limit as u64 * 10, 0);
        window.most_in_flight = limit as u32;
        window.failed = if limit > 50.0 { window.completed / 20 } else { 0 };
        limit = Aimd::default().step(limit, &window).limit;
        limits.push(limit);
    }
    let settled = &limits[100..];
    assert!(settled.iter().all(|limit| (45.0..=51.0).contains(limit)), "{settled:?}");
}

#[test]
fn aimd_holds_while_little_is_used() {
    let mut window = window(1, 1000, 5);
    window.most_in_flight = 24;
    let step = Aimd::default().step(50.0, &window);
    assert_eq!((step.limit, step.reason), (50.0, StepReason::Unused));
}
