//! Who is refused when there is too much load: three times what a service can do.

use spillgate::adaptive::{
    AdaptiveLimit, AdaptiveLimitBuilder, Auto, Controller, PriorityClass, Step, StepReason, Window,
};

use super::simulation::{ByTime, Limited, Report, Scenario, Service, Work};

const HIGH: PriorityClass = PriorityClass::High;
const NORMAL: PriorityClass = PriorityClass::Normal;

/// Leaves the limit where it begins.
#[derive(Debug)]
struct Fixed;

impl Controller for Fixed {
    fn step(&mut self, limit: f64, _: &Window) -> Step {
        Step::new(limit, StepReason::Steady)
    }
}

fn auto() -> AdaptiveLimitBuilder {
    AdaptiveLimit::concurrency(Auto::default(), 1..=500).start(20.0)
}

fn fixed(limit: u32) -> AdaptiveLimitBuilder {
    AdaptiveLimit::concurrency(Fixed, 1..=500).start(limit.into())
}

fn run(workers: usize, seed: u64, limit: AdaptiveLimitBuilder, high: ByTime) -> Report {
    let rate = match workers {
        1 => |_| 300.0,
        2 => |_| 600.0,
        3 => |_| 900.0,
        _ => |_| 3000.0,
    };
    let service = Scenario::new(Service::workers(workers), Work::Exponential(0.010), rate);
    let scenario = Scenario { seed, high, seconds: 120, ..service };
    scenario.run(&mut Limited::new(limit.by_priority(true)))
}

#[test]
fn a_fifth_of_high_priority_goes_ahead_and_the_rest_of_the_capacity_goes_to_the_others() {
    for seed in 1..=3 {
        let report = run(10, seed, auto(), |_| 0.2);
        let figures = report.figures(20..120);
        let high = report.admitted(HIGH, 20..120);
        assert!(high >= 0.99, "seed {seed}: {high}");
        assert!(figures.goodput >= 950.0, "seed {seed}: {figures}");
    }
}

#[test]
fn without_priorities_they_are_refused_like_the_others() {
    let rate: ByTime = |_| 3000.0;
    let service = Scenario::new(Service::workers(10), Work::Exponential(0.010), rate);
    let report = Scenario { high: |_| 0.2, ..service }.run(&mut Limited::new(auto()));
    let (high, normal) = (report.admitted(HIGH, 20..60), report.admitted(NORMAL, 20..60));
    assert!((high - normal).abs() < 0.02, "{high} {normal}");
}

/// A third of the calls can be served at best, and the limit is less than what high priority alone
/// has in flight now and then.
#[test]
fn a_limit_of_three_is_enough_for_high_priority() {
    for seed in 1..=3 {
        for workers in 1..=3 {
            let report = run(workers, seed, fixed(3), |_| 0.2);
            let high = report.admitted(HIGH, 5..120);
            assert!(high >= 0.99, "seed {seed}, {workers} workers: {high}");
            let fixed = run(workers, seed, fixed(3), |_| 0.0).figures(5..120);
            let with = report.figures(5..120);
            assert!(with.goodput > 0.98 * fixed.goodput, "{with}; without: {fixed}");
        }
    }
}

/// The first calls of the window in which the mix changes are judged by the mix before.
#[test]
fn a_sudden_change_of_the_mix_is_seen_after_a_window() {
    let mixes: [ByTime; 3] = [
        |at| if at < 60.0 { 0.0 } else { 0.2 },
        |at| if at < 60.0 { 1.0 } else { 0.2 },
        |at| if at < 60.0 { 0.05 } else { 0.25 },
    ];
    for seed in 1..=3 {
        for high in mixes {
            let report = run(10, seed, auto(), high);
            let high = report.admitted(HIGH, 62..120);
            assert!(high >= 0.985, "seed {seed}: {high}");
            let figures = report.figures(62..120);
            assert!(figures.goodput >= 950.0, "seed {seed}: {figures}");
        }
    }
}

/// High priority asks for nine tenths of the capacity: it cannot have all of that without a long
/// queue, and must not lose much of it to the others.
#[test]
fn high_priority_that_nearly_fills_the_service_gets_most_of_it() {
    for seed in 1..=3 {
        let report = run(10, seed, auto(), |_| 0.3);
        let high = report.admitted(HIGH, 20..120);
        assert!(high >= 0.9, "seed {seed}: {high}");
    }
}

#[test]
fn nobody_is_shed_while_nobody_is_refused() {
    let rate: ByTime = |at| if (30.0..60.0).contains(&at) { 3000.0 } else { 500.0 };
    for seed in 1..=3 {
        let service = Scenario::new(Service::workers(10), Work::Exponential(0.010), rate);
        let scenario = Scenario { seed, high: |_| 0.2, seconds: 120, ..service };
        let report = scenario.run(&mut Limited::new(auto().by_priority(true)));
        assert_eq!(report.admitted(NORMAL, 15..30), 1.0);
        assert_eq!(report.admitted(NORMAL, 70..120), 1.0);
    }
}
