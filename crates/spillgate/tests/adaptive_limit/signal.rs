//! Signals, and what happens without them.

use std::sync::{Arc, Mutex};

use spillgate::adaptive::{AdaptiveLimit, Ending, Signal, StepReason};
use spillgate::{ManualClock, Timestamp};

use super::{Script, anyone, at, ms};

/// A signal that a test sets, and that notes when it is read.
#[derive(Clone, Default)]
struct Dial(Arc<Mutex<(Option<f64>, Vec<Timestamp>)>>);

impl Dial {
    fn set(&self, value: Option<f64>) {
        self.0.lock().unwrap().0 = value;
    }

    fn reads(&self) -> Vec<Timestamp> {
        self.0.lock().unwrap().1.clone()
    }
}

impl Signal for Dial {
    fn read(&mut self, now: Timestamp) -> Option<f64> {
        let mut dial = self.0.lock().unwrap();
        dial.1.push(now);
        dial.0
    }
}

fn limit(script: &Script, dial: &Dial) -> AdaptiveLimit {
    let builder = AdaptiveLimit::concurrency(script.clone(), 1..=100).start(10.0);
    builder.signal(dial.clone()).build()
}

fn call(service: &AdaptiveLimit, now: u64) {
    let _ = service.try_acquire_at(anyone(), at(now));
}

#[test]
fn a_signal_is_read_twice_a_second_whether_calls_end_or_not() {
    let (script, dial) = (Script::default(), Dial::default());
    dial.set(Some(0.5));
    let service = limit(&script, &dial);
    let _ = [0, 1, 499, 500, 501, 700, 999, 1_000, 1_200, 1_501].map(|now| call(&service, now));
    assert_eq!(dial.reads(), [at(0), at(500), at(1_000), at(1_501)]);
    let windows = script.windows();
    assert_eq!(windows.len(), 3, "the first reading is one to compare with");
    assert!(windows.iter().all(|window| window.signal == Some(0.5)));
    assert_eq!(windows[2].length, ms(501));
    assert_eq!(service.status().signal, Some(0.5));
}

#[test]
fn a_missing_signal_holds_the_limit_and_says_so_until_it_is_back() {
    let (script, dial) = (Script::default(), Dial::default());
    dial.set(Some(0.5));
    let service = limit(&script, &dial);
    call(&service, 0);
    script.then(20.0);
    call(&service, 500);
    assert_eq!((service.status().limit, service.status().reason), (20.0, StepReason::BelowTarget));
    for (missing, now) in [(None, 1_000), (Some(f64::NAN), 1_500), (Some(f64::INFINITY), 2_000)] {
        dial.set(missing);
        script.then(99.0);
        call(&service, now);
        let status = service.status();
        assert_eq!((status.limit, status.reason), (20.0, StepReason::NoSignal), "{missing:?}");
        assert_eq!((status.signal, status.changes), (None, 1), "{missing:?}");
    }
    assert_eq!(script.steps(), 1, "nothing for the controller to look at");
    dial.set(Some(0.4));
    script.then(20.0);
    call(&service, 2_500);
    let status = service.status();
    assert_eq!((status.signal, status.reason), (Some(0.4), StepReason::BelowTarget));
    script.then(30.0);
    call(&service, 3_000);
    assert_eq!(service.status().limit, 30.0);
}

#[test]
fn after_a_long_time_a_signal_is_read_once_before_it_counts() {
    let (script, dial) = (Script::default(), Dial::default());
    dial.set(Some(0.5));
    let service = limit(&script, &dial);
    let _ = [0, 500, 3_600_000, 3_600_500].map(|now| call(&service, now));
    assert_eq!((dial.reads().len(), script.steps()), (4, 2));
    assert_eq!(script.windows()[1].length, ms(500));
}

#[test]
fn a_closure_is_a_signal_and_may_look_at_the_limit() {
    let clock = ManualClock::new(at(0));
    let slot: Arc<Mutex<Option<AdaptiveLimit<ManualClock>>>> = Arc::default();
    let inside = Arc::clone(&slot);
    let script = Script::default();
    let service = AdaptiveLimit::concurrency(script.clone(), 1..=100)
        .signal(move || {
            let service = inside.lock().unwrap().clone()?;
            // Nor does it wait for the step that it is part of.
            let _permit = service.try_acquire(anyone()).ok()?;
            Some(service.status().limit)
        })
        .clock(clock.clone())
        .build();
    *slot.lock().unwrap() = Some(service.clone());
    for _ in 0..3 {
        drop(service.try_acquire(anyone()));
        clock.advance(ms(500));
    }
    assert_eq!(script.windows()[0].signal, Some(10.0));
    slot.lock().unwrap().take();
}

#[test]
fn a_signal_that_panics_is_read_again() {
    let clock = ManualClock::new(at(0));
    let mut reads = 0;
    let script = Script::default();
    let service = AdaptiveLimit::concurrency(script.clone(), 1..=100)
        .signal(move || {
            reads += 1;
            assert!(reads != 2, "the second reading fails");
            Some(0.5)
        })
        .clock(clock.clone())
        .build();
    let failed = [0, 500, 501, 1_000].map(|now| {
        clock.set(at(now));
        let call = || drop(service.try_acquire(anyone()));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err()
    });
    assert_eq!(failed, [false, true, false, false], "once");
    assert_eq!(script.steps(), 1);
}

#[test]
fn samples_count_in_windows_of_signals() {
    let (script, dial) = (Script::default(), Dial::default());
    dial.set(Some(0.5));
    let service = limit(&script, &dial);
    service.record_at(Ending::Ok, ms(7), at(0));
    call(&service, 500);
    let windows = script.windows();
    assert_eq!((windows[0].completed, windows[0].mean_latency), (1, Some(ms(7))));
}

#[test]
fn another_signal_is_not_missing_before_it_was_read() {
    let (script, dial) = (Script::default(), Dial::default());
    let service = limit(&script, &dial);
    let _ = [0, 500].map(|now| call(&service, now));
    assert_eq!(service.status().reason, StepReason::NoSignal);
    assert!(service.reconfigure(AdaptiveLimit::concurrency(script.clone(), 1..=100)));
    assert_eq!(service.status().reason, StepReason::Started);

    dial.set(Some(0.5));
    let service = limit(&script, &dial);
    let _ = [0, 500].map(|now| call(&service, now));
    assert_eq!(service.status().signal, Some(0.5));
    assert!(service.reconfigure(AdaptiveLimit::concurrency(script, 1..=100)));
    assert_eq!(service.status().signal, None, "a load is no latency");
}
