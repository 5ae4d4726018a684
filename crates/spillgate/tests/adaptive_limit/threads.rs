//! Many threads on one limit, while it moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;

use spillgate::adaptive::{
    AdaptiveLimit, AdaptiveRate, Controller, Ending, Priority, PriorityClass, Step, StepReason,
    Window,
};
use spillgate::{Clock, ManualClock};

use super::{anyone, at, ms};

const THREADS: u64 = 8;
const CALLS: u64 = 20_000;

/// Moves a limit up and down, and sums up what it sees.
#[derive(Clone, Debug, Default)]
struct Swing {
    steps: Arc<AtomicU64>,
    completed: Arc<AtomicU64>,
    failed: Arc<AtomicU64>,
    wrong: Arc<AtomicU64>,
    forgets: Arc<AtomicU64>,
}

impl Controller for Swing {
    fn step(&mut self, _: f64, window: &Window) -> Step {
        let step = self.steps.fetch_add(1, Ordering::Relaxed);
        self.completed.fetch_add(window.completed, Ordering::Relaxed);
        self.failed.fetch_add(window.failed, Ordering::Relaxed);
        // All calls that end well take 3 ms, and others are none.
        let right = window.mean_latency.is_none_or(|mean| mean == ms(3));
        self.wrong.fetch_add(u64::from(!right), Ordering::Relaxed);
        Step::new([3.0, 7.0, 2.0, 5.0][step as usize % 4], StepReason::Steady)
    }

    fn forget(&mut self, limit: f64) -> Step {
        self.forgets.fetch_add(1, Ordering::Relaxed);
        Step::new(limit, StepReason::Steady)
    }
}

#[test]
fn no_more_are_in_flight_than_the_highest_limit() {
    let (clock, swing) = (ManualClock::new(at(0)), Swing::default());
    let service =
        AdaptiveLimit::concurrency(swing.clone(), 1..=7).start(7.0).clock(clock.clone()).build();
    let (now, most) = (AtomicU32::new(0), AtomicU32::new(0));
    let (acquired, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let hammer = || {
        for call in 0..CALLS {
            clock.advance(ms(1));
            let Ok(mut permit) = service.try_acquire(anyone()) else {
                refused.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            acquired.fetch_add(1, Ordering::Relaxed);
            let in_flight = now.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(in_flight, Ordering::SeqCst);
            if call % 16 == 0 {
                thread::yield_now();
            }
            let ending = if call % 4 == 0 { Ending::Failed } else { Ending::Ok };
            permit.record_latency_at(ending, ms(3), clock.now());
            now.fetch_sub(1, Ordering::SeqCst);
        }
    };
    thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(hammer))));
    let (most, acquired) = (most.load(Ordering::SeqCst), acquired.load(Ordering::Relaxed));
    assert!((2..=7).contains(&most), "{most} at once");
    let status = service.status();
    assert_eq!((status.in_flight, status.refused), (0, refused.load(Ordering::Relaxed)));
    // How many depends on when threads run: one that is stopped within a step keeps the window open.
    assert!(swing.steps.load(Ordering::Relaxed) > 0);
    // The last window ends here.
    clock.advance(ms(1_000));
    service.record_n_at(Ending::Ok, ms(3), 10, clock.now());
    clock.advance(ms(1_000));
    service.record_at(Ending::Ok, ms(3), clock.now());
    let seen = swing.completed.load(Ordering::Relaxed);
    // The others move the clock on while a thread is stopped within a step: what is long ago then is
    // forgotten.
    let is_forgotten = swing.forgets.load(Ordering::Relaxed) > 0;
    let least = if is_forgotten { 1 } else { acquired };
    assert!((least..=acquired + 10).contains(&seen), "{seen} of {acquired}: none is lost");
    assert_eq!(swing.wrong.load(Ordering::Relaxed), 0, "no window was wrong");
    assert!(swing.failed.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_lowered_limit_holds_from_the_moment_it_is_set() {
    let service = AdaptiveLimit::concurrency(Swing::default(), 1..=64).start(64.0).build();
    let is_over = AtomicBool::new(false);
    let busy = || {
        while !is_over.load(Ordering::Relaxed) {
            drop(service.try_acquire_at(anyone(), at(0)));
        }
    };
    thread::scope(|scope| {
        (0..4).for_each(|_| drop(scope.spawn(busy)));
        for _ in 0..2_000 {
            service.set_range(1..=64);
            let held: Vec<_> =
                (0..20).map(|_| service.acquire_beyond_at(anyone(), at(0)).0).collect();
            service.set_range(1..=3);
            // With 20 held, nobody gets a permit any more.
            assert!(service.try_acquire_at(anyone(), at(0)).is_err());
            drop(held);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(service.status().in_flight, 0);
}

#[test]
fn priorities_never_exceed_the_maximum() {
    let clock = ManualClock::new(at(0));
    let service = AdaptiveLimit::concurrency(Swing::default(), 1..=9)
        .by_priority(true)
        .clock(clock.clone())
        .build();
    let (now, most) = (AtomicU32::new(0), AtomicU32::new(0));
    let hammer = |thread: u64| {
        for call in 0..CALLS {
            clock.advance(ms(1));
            let class = PriorityClass::ALL[((thread + call) % 5) as usize];
            let Ok(mut permit) = service.try_acquire(Priority::new(class, 50)) else { continue };
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            if call % 4 == 0 {
                thread::yield_now();
            }
            permit.record(Ending::Ok);
            now.fetch_sub(1, Ordering::SeqCst);
        }
    };
    thread::scope(|scope| {
        (0..12).for_each(|thread| drop(scope.spawn(move || hammer(thread))));
    });
    assert!((1..=9).contains(&most.load(Ordering::SeqCst)));
    assert_eq!(service.status().in_flight, 0);
}

#[test]
fn all_threads_together_get_no_more_than_a_moving_quota_allows() {
    let range = "100/s".parse().unwrap()..="1000/s".parse().unwrap();
    let rate: AdaptiveRate<str> = AdaptiveRate::builder(Swing::default(), range).build().unwrap();
    let allowed = AtomicU64::new(0);
    let hammer = |thread: u64| {
        for call in 0..CALLS {
            // 20 seconds, in which every thread goes its own way by up to 10 ms.
            let now = at(call + thread);
            if thread == 0 && call % 100 == 0 {
                let quota = ["100/s", "700/s burst 50", "1000/s"][(call / 100 % 3) as usize];
                let quota = quota.parse().unwrap();
                rate.set_range_at(&(quota..=quota), now).unwrap();
            }
            let is_allowed = rate.check_at("all", 1, anyone(), now).is_allowed();
            allowed.fetch_add(u64::from(is_allowed), Ordering::Relaxed);
        }
    };
    let hammer = &hammer;
    thread::scope(|scope| {
        (0..THREADS).for_each(|thread| drop(scope.spawn(move || hammer(thread))));
    });
    let allowed = allowed.load(Ordering::Relaxed);
    assert!(allowed <= 1_000 + 1_000 * (CALLS + THREADS) / 1_000, "{allowed}");
    assert!(allowed >= 100 * CALLS / 1_000, "{allowed}");
}
