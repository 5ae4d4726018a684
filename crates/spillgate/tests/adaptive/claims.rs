//! What controllers claim: a table of scenarios, each run with several seeds.
//!
//! Ten workers that take 10 ms per call serve 1000 calls per second. Without load, one call in a
//! hundred takes longer than 46 ms if the work is exponentially distributed, 11 ms if it is nearly
//! constant.

use std::time::Duration;

use spillgate::adaptive::{AdaptiveLimit, AdaptiveLimitBuilder, Auto, Target};

use super::simulation::{ByTime, Figures, Limited, Scenario, Service, Unlimited, Work};

const SEEDS: [u64; 3] = [1, 2, 3];
const EXPONENTIAL: Work = Work::Exponential(0.010);
const CONSTANT: Work = Work::Constant(0.010, 0.1);

/// Works, and the latency that one call in a hundred exceeds without load, in milliseconds.
const WORKS: [(Work, f64); 2] = [(EXPONENTIAL, 46.0), (CONSTANT, 11.0)];

/// A controller under test.
#[derive(Clone, Copy, Debug)]
enum Tested {
    Auto,
    /// With a target of twice the latency that one call in ten exceeds without load.
    Target,
}

impl Tested {
    const ALL: [Self; 2] = [Self::Auto, Self::Target];

    fn limit(self, work: Work, start: f64) -> Limited {
        Limited::new(self.builder(work).start(start))
    }

    fn builder(self, work: Work) -> AdaptiveLimitBuilder {
        let target = match work {
            Work::Exponential(_) => Duration::from_millis(46),
            Work::Constant(..) => Duration::from_millis(22),
        };
        match self {
            Self::Auto => AdaptiveLimit::concurrency(Auto::default(), 1..=1000),
            Self::Target => AdaptiveLimit::concurrency(Target::new(target), 1..=1000),
        }
    }
}

/// Runs a claim for every controller, kind of work and seed. With `SHOW` set, prints its figures.
fn each(claim: &str, check: impl Fn(Tested, Work, f64, u64) -> Vec<(Figures, bool)>) {
    each_of(claim, &SEEDS, check);
}

fn each_of(
    claim: &str,
    seeds: &[u64],
    check: impl Fn(Tested, Work, f64, u64) -> Vec<(Figures, bool)>,
) {
    for tested in Tested::ALL {
        for (work, unloaded) in WORKS {
            for &seed in seeds {
                for (figures, holds) in check(tested, work, unloaded, seed) {
                    if std::env::var_os("SHOW").is_some() {
                        println!("{claim} | {tested:?} | {work:?} | {seed} | {figures}");
                    }
                    assert!(holds, "{claim}, {tested:?}, {work:?}, seed {seed}: {figures}");
                }
            }
        }
    }
}

fn scenario(workers: usize, work: Work, seed: u64, rate: ByTime) -> Scenario {
    Scenario { seed, ..Scenario::new(Service::workers(workers), work, rate) }
}

#[test]
fn half_the_load_is_never_refused() {
    each("500/s", |tested, work, _, seed| {
        let run = Scenario { seconds: 120, ..scenario(10, work, seed, |_| 500.0) };
        let figures = run.run(&mut tested.limit(work, 20.0)).figures(20..120);
        vec![(figures, figures.refused == 0)]
    });
}

#[test]
fn twice_the_load_is_served_as_far_as_possible_in_good_time() {
    each("2000/s", |tested, work, unloaded, seed| {
        let run = Scenario { seconds: 140, ..scenario(10, work, seed, |_| 2000.0) };
        let report = run.run(&mut tested.limit(work, 20.0));
        let figures = report.figures(20..140);
        // But for the windows in which it probes.
        let near = 0.75 * figures.median..=1.25 * figures.median;
        let away = report.limits[20..].iter().filter(|limit| !near.contains(limit)).count();
        let holds = figures.goodput >= 950.0
            && figures.p99 <= 3.0 * unloaded
            && figures.lowest >= 8.0
            && figures.highest <= 40.0
            && away <= 6;
        vec![(figures, holds)]
    });
}

/// The queue grows for as long as the load lasts, and what is served comes too late.
#[test]
fn without_a_limit_twice_the_load_is_served_in_vain() {
    for seed in SEEDS {
        for work in [EXPONENTIAL, CONSTANT] {
            let report = scenario(10, work, seed, |_| 2000.0).run(&mut Unlimited);
            assert_eq!(report.goodput_within(1.0, 10..60), 0.0);
            assert!(report.figures(50..60).p50 > 20_000.0);
        }
    }
}

#[test]
fn a_burst_of_load_is_over_when_it_is_over() {
    each("500/s, 3000/s, 500/s", |tested, work, unloaded, seed| {
        let rate = |at| if (60.0..120.0).contains(&at) { 3000.0 } else { 500.0 };
        let run = Scenario { seconds: 180, ..scenario(10, work, seed, rate) };
        let report = run.run(&mut tested.limit(work, 20.0));
        let (during, after) = (report.figures(70..120), report.figures(130..180));
        vec![
            (during, during.goodput >= 950.0 && during.p99 <= 3.0 * unloaded),
            (after, after.refused == 0),
        ]
    });
}

#[test]
fn a_service_that_is_slower_for_a_while_is_used_fully() {
    each("10 ms, 50 ms, 10 ms", |tested, work, _, seed| {
        let slowdown = |at| if (60.0..90.0).contains(&at) { 5.0 } else { 1.0 };
        let run = scenario(10, work, seed, |_| 2000.0);
        let run = Scenario { seconds: 160, slowdown, ..run };
        let report = run.run(&mut tested.limit(work, 20.0));
        let (during, after) = (report.figures(60..90), report.figures(110..160));
        vec![(during, during.goodput >= 0.9 * 200.0), (after, after.goodput >= 950.0)]
    });
}

#[test]
fn a_large_service_that_is_slower_for_long_is_used_fully() {
    each_of("40 and 100 workers, 10 ms, 50 ms, 10 ms", &SEEDS[..1], |tested, work, _, seed| {
        let slowdown = |at| if (30.0..330.0).contains(&at) { 5.0 } else { 1.0 };
        let sizes: [(usize, ByTime); 2] = [(40, |_| 6000.0), (100, |_| 15_000.0)];
        let mut figures = Vec::new();
        for (workers, rate) in sizes {
            let run = Scenario { seconds: 400, slowdown, ..scenario(workers, work, seed, rate) };
            let report = run.run(&mut tested.limit(work, 20.0));
            let capacity = workers as f64 * 100.0;
            let (during, after) = (report.figures(60..330), report.figures(360..400));
            figures.push((during, during.goodput >= 0.9 * capacity / 5.0));
            figures.push((after, after.goodput >= 0.9 * capacity));
        }
        figures
    });
}

#[test]
fn nothing_drifts_in_fifty_minutes() {
    each_of("50 minutes at 1.5 times the capacity", &SEEDS[..2], |tested, work, _, seed| {
        let sizes: [(usize, ByTime); 2] = [(2, |_| 300.0), (10, |_| 1500.0)];
        let mut figures = Vec::new();
        for (workers, rate) in sizes {
            let run = Scenario { seconds: 3000, ..scenario(workers, work, seed, rate) };
            let report = run.run(&mut tested.limit(work, 20.0));
            let (first, last) = (report.figures(60..360), report.figures(2700..3000));
            let drift = (last.median / first.median - 1.0).abs();
            figures.push((last, drift < 0.15 && last.goodput >= 90.0 * workers as f64));
        }
        figures
    });
}

#[test]
fn a_limit_that_begins_far_too_high_comes_down() {
    each("start at 200", |tested, work, unloaded, seed| {
        let run = Scenario { seconds: 90, ..scenario(10, work, seed, |_| 2000.0) };
        let figures = run.run(&mut tested.limit(work, 200.0)).figures(30..90);
        let holds = figures.goodput >= 950.0
            && figures.p99 <= 3.0 * unloaded
            && figures.lowest >= 8.0
            && figures.highest <= 40.0;
        vec![(figures, holds)]
    });
}

#[test]
fn one_call_per_second_is_never_refused() {
    each("1/s for an hour", |tested, work, _, seed| {
        let run = Scenario { seconds: 3600, ..scenario(10, work, seed, |_| 1.0) };
        let figures = run.run(&mut tested.limit(work, 10.0)).figures(0..3590);
        vec![(figures, figures.refused == 0)]
    });
}

/// A third of the clients go away. Those calls are shorter, and say nothing.
#[test]
fn cancelled_calls_do_not_move_the_limit() {
    each("a third cancelled", |tested, work, _, seed| {
        let run = |cancelled| {
            let run = scenario(10, work, seed, |_| 2000.0);
            let report = Scenario { seconds: 120, cancelled, ..run };
            report.run(&mut tested.limit(work, 20.0)).figures(20..120)
        };
        let (without, with) = (run(0.0), run(0.33));
        vec![(with, (with.median / without.median - 1.0).abs() < 0.2)]
    });
}
