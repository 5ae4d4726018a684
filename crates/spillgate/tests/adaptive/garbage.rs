//! Windows that make no sense.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use spillgate::adaptive::{Aimd, Auto, Controller, Errors, LimitKind, Load, Target, Window};

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::MAX),
        Just(Duration::from_nanos(1)),
        (0u64..100_000_000_000).prop_map(Duration::from_nanos),
    ]
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), 0..10_000u64]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(f64::MAX),
        Just(f64::MIN_POSITIVE),
        -10.0..10.0,
        0.0..100_000.0,
    ]
}

fn window() -> impl Strategy<Value = Window> {
    let latencies = (prop::option::of(duration()), prop::option::of(duration()));
    let counts = (count(), count(), count(), any::<u32>());
    let kinds = [LimitKind::Concurrency, LimitKind::Rate, LimitKind::Share];
    let kind = prop::sample::select(kinds.to_vec());
    (kind, duration(), counts, latencies, prop::option::of(number())).prop_map(
        |(kind, length, (completed, failed, refused, in_flight), (mean, p90), signal)| {
            let mut window = Window::default();
            window.kind = kind;
            window.length = length;
            (window.completed, window.failed, window.refused) = (completed, failed, refused);
            (window.mean_latency, window.p90_latency) = (mean, p90);
            (window.most_in_flight, window.signal) = (in_flight, signal);
            window
        },
    )
}

proptest! {
    #[test]
    fn no_window_leads_to_a_limit_that_is_no_number(
        windows in vec(window(), 1..100),
        first in number(),
        settings in (number(), number(), duration()),
    ) {
        let (threshold, aggression, target) = settings;
        let mut controllers: Vec<Box<dyn Controller>> = vec![
            Box::new(Auto::default()),
            Box::new(Aimd::default()),
            Box::new(Errors::default().threshold(threshold).aggression(aggression)),
            Box::new(Load::new(threshold)),
            Box::new(Load::new(0.8)),
            Box::new(Target::new(target)),
        ];
        for controller in &mut controllers {
            let mut limit = first;
            for window in &windows {
                limit = controller.step(limit, window).limit;
                prop_assert!(limit.is_finite() && limit >= 0.0, "{controller:?}: {limit}");
            }
        }
    }

    /// Whatever came before, the limit of a service in good order is found.
    #[test]
    fn garbage_is_forgotten(windows in vec(window(), 1..50)) {
        assert_forgotten(&windows);
    }
}

#[test]
fn latencies_without_answers_are_forgotten() {
    for (length, completed, mean) in [(0, 1, Duration::MAX), (1, u64::MAX, Duration::from_nanos(1))]
    {
        let windows = [(0, 0, Duration::from_nanos(1)), (completed, 1, mean)].map(
            |(completed, refused, mean)| {
                let mut window = Window::default();
                window.length = Duration::from_millis(length);
                (window.completed, window.refused) = (completed, refused);
                window.mean_latency = Some(mean);
                window
            },
        );
        assert_forgotten(&windows);
    }
}

fn assert_forgotten(windows: &[Window]) {
    let mut auto = Auto::default();
    let mut limit: f64 = 20.0;
    for window in windows {
        limit = auto.step(limit, window).limit.clamp(1.0, 1000.0);
    }
    let mut limits = Vec::new();
    for _ in 0..600 {
        let held = limit.floor();
        let mut window = Window::default();
        // Ten workers of 10 ms, twice the load.
        let rate = (100.0 * held).min(1000.0);
        window.length = Duration::from_secs(1);
        window.completed = rate as u64;
        window.refused = 2000 - window.completed;
        window.mean_latency = Some(Duration::from_secs_f64(held / rate));
        window.most_in_flight = held as u32;
        limit = auto.step(limit, &window).limit.clamp(1.0, 1000.0);
        limits.push(limit);
    }
    let settled = &limits[400..];
    let near = settled.iter().filter(|limit| (10.0..40.0).contains(*limit)).count();
    assert!(near > 180, "{windows:?}: {settled:?}");
}
