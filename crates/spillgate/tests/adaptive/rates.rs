//! Controllers of a rate: what is refused does not wait, and what waits is served later.

use std::time::Duration;

use spillgate::adaptive::{Auto, Controller, LimitKind, StepReason, Target, Window};

/// Calls per second, second by second, with the latency in seconds. The service does a thousand, of
/// `alone` seconds, and is asked for three thousand.
fn run(mut controller: impl Controller, start: f64, alone: f64) -> Vec<(f64, f64)> {
    let (mut limit, mut waiting) = (start, 0.0);
    let mut seen = Vec::new();
    for _ in 0..600 {
        let admitted = f64::min(3000.0, limit);
        let before: f64 = waiting;
        let done = f64::min(1000.0, before + admitted);
        waiting = before + admitted - done;
        let latency = alone + f64::midpoint(before, waiting) / 1000.0;
        let mut window = Window::default();
        window.kind = LimitKind::Rate;
        window.length = Duration::from_secs(1);
        window.completed = done as u64;
        window.refused = (3000.0 - admitted) as u64;
        window.mean_latency = Some(Duration::from_secs_f64(latency));
        window.p90_latency = window.mean_latency;
        limit = controller.step(limit, &window).limit.clamp(10.0, 5000.0);
        seen.push((done, latency));
    }
    seen
}

#[track_caller]
fn assert_settles(seen: &[(f64, f64)], longest: f64) {
    let settled = &seen[300..];
    let done = settled.iter().map(|(done, _)| done).sum::<f64>() / settled.len() as f64;
    let latency = settled.iter().map(|(_, latency)| latency).sum::<f64>() / settled.len() as f64;
    assert!(done > 850.0 && latency < longest, "{done} calls per second, {latency} s");
}

#[test]
fn auto_keeps_the_queue_short() {
    for start in [100.0, 900.0, 2000.0, 5000.0] {
        assert_settles(&run(Auto::default(), start, 0.010), 0.1);
    }
}

#[test]
fn target_keeps_the_latency_near_it() {
    for start in [100.0, 900.0, 2000.0, 5000.0] {
        assert_settles(&run(Target::new(Duration::from_millis(40)), start, 0.010), 0.1);
    }
}

/// A lower rate does not make it faster.
#[test]
fn a_service_that_is_slower_than_the_target_is_used_all_the_same() {
    for start in [100.0, 900.0, 2000.0, 5000.0] {
        assert_settles(&run(Target::new(Duration::from_millis(40)), start, 0.050), 0.3);
    }
}

/// At 5 calls per second, a slow one among them is no reason to refuse the next.
#[test]
fn few_calls_are_never_refused() {
    let mut window = Window::default();
    window.kind = LimitKind::Rate;
    window.length = Duration::from_secs(2);
    window.completed = 10;
    let controllers: [Box<dyn Controller>; 2] =
        [Box::new(Auto::default()), Box::new(Target::new(Duration::from_millis(40)))];
    for mut controller in controllers {
        for milliseconds in [10, 20, 200, 1000, 10, 50] {
            window.mean_latency = Some(Duration::from_millis(milliseconds));
            window.p90_latency = window.mean_latency;
            let step = controller.step(100.0, &window);
            assert_eq!((step.limit, step.reason), (100.0, StepReason::Unused));
        }
    }
}
