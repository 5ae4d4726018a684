//! A processor whose load follows the calls that it gets, seconds late.

use std::time::Duration;

use spillgate::adaptive::{Controller, Load, StepReason, Window};

use super::simulation::Random;

const TARGET: f64 = 0.8;
/// Calls per second between which the limit may be.
const RANGE: (f64, f64) = (10.0, 2000.0);

/// A machine with a limit before it, stepped twice a second.
struct Machine {
    /// Calls per second that use all of it.
    capacity: f64,
    /// What others use of it.
    background: f64,
    /// What is left of a smoothed load after half a second.
    decay: f64,
    /// Whether calls say how they ended.
    reports: bool,
    limit: f64,
    load: f64,
    smoothed: f64,
    controller: Load,
    random: Random,
}

impl Machine {
    fn new(seed: u64) -> Self {
        Self {
            capacity: 500.0,
            background: 0.0,
            decay: 0.95,
            reports: true,
            limit: RANGE.1,
            load: 0.0,
            smoothed: 0.0,
            controller: Load::new(TARGET),
            random: Random::new(seed),
        }
    }

    /// Half a second under this many calls per second. Returns why the limit is where it is.
    fn step(&mut self, demand: f64) -> StepReason {
        let admitted = demand.min(self.limit);
        let noise = 0.1 * (self.random.unit() - 0.5);
        self.load = (self.background + admitted / self.capacity + noise).clamp(0.0, 1.0);
        self.smoothed = self.load + self.decay * (self.smoothed - self.load);
        let done = admitted.min(self.capacity * (1.0 - self.background));
        let mut window = Window::default();
        window.length = Duration::from_millis(500);
        window.completed = if self.reports { (done / 2.0).round() as u64 } else { 0 };
        window.refused = ((demand - admitted) / 2.0) as u64;
        window.signal = Some(self.smoothed);
        let step = self.controller.step(self.limit, &window);
        self.limit = step.limit.clamp(RANGE.0, RANGE.1);
        step.reason
    }

    /// The lowest and the highest load in so many seconds, each the mean of five.
    fn loads(&mut self, seconds: u32, demand: f64) -> (f64, f64) {
        let loads: Vec<f64> = (0..seconds * 2)
            .map(|_| {
                self.step(demand);
                self.load
            })
            .collect();
        let means = loads.windows(10).map(|some| some.iter().sum::<f64>() / 10.0);
        means.fold((f64::MAX, 0.0), |(low, high), mean| (mean.min(low), mean.max(high)))
    }
}

#[track_caller]
fn assert_near_target(loads: (f64, f64)) {
    let near = 0.9 * TARGET..=1.1 * TARGET;
    assert!(near.contains(&loads.0) && near.contains(&loads.1), "{loads:?}");
}

#[test]
fn settles_near_its_target_and_stays_there() {
    for seed in 0..5 {
        let mut machine = Machine::new(seed);
        machine.loads(30, 100.0);
        machine.loads(20, 2500.0);
        assert_near_target(machine.loads(600, 2500.0));
    }
}

#[test]
fn lets_everyone_through_while_the_load_is_low_and_is_back_after_a_drop() {
    for seed in 0..5 {
        let mut machine = Machine::new(seed);
        machine.loads(30, 2500.0);
        machine.loads(30, 100.0);
        assert_eq!(machine.limit, RANGE.1, "20 % of the load is no reason to refuse calls");
        machine.loads(20, 2500.0);
        assert_near_target(machine.loads(120, 2500.0));
    }
}

#[test]
fn makes_room_for_what_else_runs_on_the_machine() {
    let mut machine = Machine::new(1);
    machine.loads(30, 2500.0);
    machine.background = 0.4;
    machine.loads(60, 2500.0);
    assert_near_target(machine.loads(120, 2500.0));
    machine.background = 0.0;
    machine.loads(60, 2500.0);
    assert_near_target(machine.loads(120, 2500.0));
}

#[test]
fn settles_with_a_signal_that_is_not_smoothed_too() {
    let mut machine = Machine { decay: 0.0, ..Machine::new(2) };
    machine.loads(40, 2500.0);
    assert_near_target(machine.loads(300, 2500.0));
}

#[test]
fn settles_without_reports_of_calls() {
    let mut machine = Machine { reports: false, ..Machine::new(3) };
    machine.loads(240, 2500.0);
    assert_near_target(machine.loads(600, 2500.0));
}

#[test]
fn after_a_pause_it_begins_anew() {
    let mut controller = Load::new(TARGET);
    let mut window = Window::default();
    (window.length, window.completed) = (Duration::from_millis(500), 1_000);
    window.signal = Some(0.9);
    let first = controller.step(500.0, &window);
    window.completed = 100;
    controller.step(500.0, &window);
    let step = controller.forget(123.0);
    assert_eq!((step.limit, controller.clone()), (123.0, Load::new(TARGET)));
    window.completed = 1_000;
    assert_eq!(controller.step(500.0, &window), first);
}

#[test]
fn holds_the_limit_without_a_signal() {
    let mut controller = Load::new(TARGET);
    for signal in [None, Some(f64::NAN), Some(f64::INFINITY), Some(f64::NEG_INFINITY)] {
        let mut window = Window::default();
        window.signal = signal;
        let step = controller.step(77.0, &window);
        assert_eq!((step.limit, step.reason), (77.0, StepReason::NoSignal));
    }
    for target in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
        let mut window = Window::default();
        window.signal = Some(0.5);
        let step = Load::new(target).step(77.0, &window);
        assert_eq!((step.limit, step.reason), (77.0, StepReason::NoSignal));
    }
}
