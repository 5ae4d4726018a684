//! The system's clock keeps the system's time and never goes back.

#![expect(
    clippy::disallowed_methods,
    reason = "compares with the clocks that are banned elsewhere"
)]

use std::thread;
use std::time::{Duration, Instant, SystemTime};

use spillgate::{Clock, SystemClock, Timestamp};

#[test]
fn it_starts_at_the_system_time() {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let clock = Duration::from_nanos(SystemClock.now().as_nanos());
    assert!(clock.abs_diff(unix) < Duration::from_secs(5), "{clock:?} for {unix:?}");
}

#[test]
fn it_stays_with_the_monotonic_clock() {
    let (first, instant) = together();
    let mut narrowest = Duration::MAX;
    // Long enough for several corrections of the pace.
    while instant.elapsed() < Duration::from_millis(300) {
        let before = instant.elapsed();
        let clock = SystemClock.now().since(first);
        let after = instant.elapsed();
        // Between the two readings, but for those of the beginning.
        let slack = Duration::from_micros(50);
        assert!(
            clock + slack >= before && clock <= after + slack,
            "{before:?} {clock:?} {after:?}"
        );
        narrowest = narrowest.min(after - before);
    }
    assert!(narrowest < Duration::from_micros(10), "readings were never close: {narrowest:?}");
}

/// Readings of both clocks with no interruption between them.
fn together() -> (Timestamp, Instant) {
    loop {
        let instant = Instant::now();
        let first = SystemClock.now();
        if instant.elapsed() < Duration::from_micros(20) {
            return (first, instant);
        }
    }
}

#[test]
fn it_never_goes_back_for_any_thread() {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut last = Timestamp::ZERO;
                for _ in 0..2_000_000 {
                    let now = SystemClock.now();
                    assert!(now >= last);
                    last = now;
                }
            });
        }
    });
}
