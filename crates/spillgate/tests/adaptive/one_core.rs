//! A service bound to one processor: all calls at once, the more the slower each.

use spillgate::adaptive::{AdaptiveLimit, Auto};

use super::simulation::{ByTime, Limited, Scenario, Service, Unlimited, Work};

/// A hundred calls per second is all that it can do.
const WORK: Work = Work::Constant(0.010, 0.1);
const UNLOADED: f64 = 11.0;

fn overloaded(seed: u64, rate: ByTime) -> Scenario {
    Scenario { seed, seconds: 180, ..Scenario::new(Service::shared(1.0), WORK, rate) }
}

fn auto(start: f64) -> Limited {
    Limited::new(AdaptiveLimit::concurrency(Auto::default(), 1..=500).start(start))
}

#[test]
fn five_times_the_load_is_served_as_far_as_possible_in_good_time() {
    for seed in 1..=5 {
        for start in [1.0, 10.0, 100.0] {
            let report = overloaded(seed, |_| 500.0).run(&mut auto(start));
            let figures = report.figures(30..180);
            let holds = figures.goodput >= 90.0 && figures.p99 <= 3.0 * UNLOADED;
            assert!(holds, "seed {seed}, start {start}: {figures}");
        }
    }
}

/// The knee is at one call, and cannot be reached.
#[test]
fn a_minimum_above_the_knee_does_not_confuse_it() {
    for seed in 1..=3 {
        let limit = AdaptiveLimit::concurrency(Auto::default(), 10..=500).start(100.0);
        let report = overloaded(seed, |_| 500.0).run(&mut Limited::new(limit));
        let figures = report.figures(60..180);
        let holds = figures.goodput >= 95.0 && figures.highest <= 20.0;
        assert!(holds, "seed {seed}: {figures}");
    }
}

/// A few more calls than can be served leave gaps between them. A queue as short as for many
/// more would leave a fifth of the processor unused.
#[test]
fn slightly_too_much_load_is_served_as_far_as_possible() {
    let rates: [ByTime; 3] = [|_| 120.0, |_| 150.0, |_| 200.0];
    for seed in 1..=3 {
        for rate in rates {
            let figures = overloaded(seed, rate).run(&mut auto(10.0)).figures(30..180);
            assert!(figures.goodput >= 90.0, "seed {seed}, {}/s: {figures}", rate(0.0));
        }
    }
}

/// Calls of a second: what a window sees is of the limit before, and there are few of them.
#[test]
fn slow_calls_are_waited_for() {
    for seed in 1..=3 {
        for start in [2.0, 20.0, 60.0] {
            let run = overloaded(seed, |_| 5.0);
            let run = Scenario { work: Work::Constant(1.0, 0.1), seconds: 1500, ..run };
            let figures = run.run(&mut auto(start)).figures(600..1490);
            let holds = figures.goodput >= 0.9 && figures.p99 <= 4_000.0;
            assert!(holds, "seed {seed}, start {start}: {figures}");
        }
    }
}

#[test]
fn it_is_used_fully_again_after_the_load_drops() {
    for seed in 1..=3 {
        let rate = |at| if at < 90.0 { 500.0 } else { 50.0 };
        let figures = overloaded(seed, rate).run(&mut auto(10.0)).figures(100..180);
        let refused = figures.refused as f64 / figures.arrived as f64;
        assert!(refused < 0.01 && figures.goodput > 45.0, "seed {seed}: {figures}");
    }
}

#[test]
fn without_a_limit_nothing_is_served_in_time() {
    for seed in 1..=3 {
        let report = overloaded(seed, |_| 500.0).run(&mut Unlimited);
        assert_eq!(report.goodput_within(1.0, 10..60), 0.0);
        assert!(report.figures(120..180).goodput < 5.0, "all are begun, and none is finished");
    }
}

/// The latency without a queue that half the load shows is too high: requests meet by chance. And
/// the first probe begins with calls in flight that were let through by a far higher limit.
#[test]
fn overload_after_half_the_load_is_found_out_within_seconds() {
    for seed in 1..=6 {
        let rate = |at| if at < 15.0 { 100.0 } else { 1000.0 };
        let work = Work::Constant(0.005, 0.05);
        let run = Scenario { work, seconds: 60, ..overloaded(seed, rate) };
        let figures = run.run(&mut auto(10.0)).figures(25..60);
        let holds = figures.goodput >= 180.0 && figures.p99 <= 3.0 * 5.5;
        assert!(holds, "seed {seed}: {figures}");
    }
}
