//! Many threads on few keys.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use spillgate::{Concurrency, Permit};

/// What is really in flight, counted apart.
#[derive(Default)]
pub(super) struct Watermark {
    now: AtomicU64,
    most: AtomicU64,
}

impl Watermark {
    /// Counts a permit for as long as `act` runs, also if it panics.
    pub(super) fn hold<T>(&self, permit: Permit, act: impl FnOnce() -> T) -> T {
        let count = u64::from(permit.count());
        let now = self.now.fetch_add(count, Ordering::SeqCst) + count;
        self.most.fetch_max(now, Ordering::SeqCst);
        let result = catch_unwind(AssertUnwindSafe(act));
        // Before it is released: after, another may hold it already.
        self.now.fetch_sub(count, Ordering::SeqCst);
        match result {
            Ok(result) => {
                drop(permit);
                result
            }
            // With the permit still held: unwinding drops it.
            Err(panic) => resume_unwind(panic),
        }
    }

    pub(super) fn most(&self) -> u64 {
        self.most.load(Ordering::SeqCst)
    }
}

const THREADS: u64 = 8;
const CALLS: u64 = 20_000;

/// A sequence that differs between threads.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// What one thread does with the keys: acquires, holds for a while, panics now and then.
fn hammer(calls: &Concurrency<u64>, marks: &[Watermark], thread: u64) -> u64 {
    let mut dice = Dice::new(thread + 1);
    let mut granted = 0;
    for _ in 0..CALLS {
        let key = dice.roll(marks.len() as u64);
        let Ok(permit) = calls.try_acquire_n(&key, 1 + dice.roll(3) as u32) else { continue };
        granted += 1;
        let (panics, yields) = (dice.roll(50) == 0, dice.roll(4) == 0);
        let act = || {
            if yields {
                thread::yield_now();
            }
            if panics {
                resume_unwind(Box::new("in progress"));
            }
        };
        let held = catch_unwind(AssertUnwindSafe(|| marks[key as usize].hold(permit, act)));
        assert_eq!(held.is_err(), panics);
    }
    granted
}

#[test]
fn no_number_of_threads_exceeds_the_limit_and_panics_return_permits() {
    for keys in [1, 3] {
        let calls: Concurrency<u64> = Concurrency::new(5);
        let marks: Vec<_> = (0..keys).map(|_| Watermark::default()).collect();
        let granted: u64 = thread::scope(|scope| {
            let (calls, marks) = (&calls, &marks);
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| scope.spawn(move || hammer(calls, marks, thread)))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(granted > 0);
        assert!(marks.iter().all(|mark| (1..=5).contains(&mark.most())));
        assert_eq!((calls.total_in_flight(), calls.active_keys()), (0, 0));
    }
}

#[test]
fn keys_that_come_and_go_never_exceed_the_capacity() {
    let calls: Concurrency<u64> = Concurrency::builder(1).capacity(4).build();
    let held = Watermark::default();
    let refused: u64 = thread::scope(|scope| {
        let (calls, held) = (&calls, &held);
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let mut refused = 0;
                    // Every key is one permit, so permits in flight are keys in flight.
                    for key in (0..CALLS).map(|call| call * THREADS + thread) {
                        match calls.try_acquire(&key) {
                            Ok(permit) => held.hold(permit, thread::yield_now),
                            Err(busy) => refused += u64::from(busy.is_full),
                        }
                    }
                    refused
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!((1..=4).contains(&held.most()), "{} keys", held.most());
    assert!(refused > 0, "never full, so nothing was tested");
    assert_eq!((calls.total_in_flight(), calls.active_keys()), (0, 0));
}

#[test]
fn no_permit_is_granted_under_a_limit_that_is_gone() {
    let calls: Concurrency<str> = Concurrency::new(8);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let held = [(); 3].map(|()| calls.try_acquire("a").ok());
                    drop(held);
                }
            });
        }
        for _ in 0..2_000 {
            calls.set_limit(2);
            // Those that were there before drain; then no more than two are.
            while calls.in_flight("a") > 2 {
                thread::yield_now();
            }
            for _ in 0..10 {
                assert!(calls.in_flight("a") <= 2);
            }
            calls.set_limit(8);
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!((calls.total_in_flight(), calls.active_keys()), (0, 0));
}
