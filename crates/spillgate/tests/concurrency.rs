//! Many threads on few callers never get more than the quota, and no less.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use spillgate::{
    AlgorithmKind, Clock, Counts, Limiter, ManualClock, Quota, SystemClock, WhenFull, check_all,
};

const THREADS: u64 = 8;

/// Runs `act` on several threads at once and adds up what they return.
fn on_threads(act: impl Fn(u64) -> u64 + Sync) -> u64 {
    thread::scope(|scope| {
        let act = &act;
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || act(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

#[test]
fn exactly_the_burst_passes_at_one_instant_with_every_algorithm() {
    for kind in AlgorithmKind::ALL {
        let limiter: Limiter<u64, _> = Limiter::builder("1000/min")
            .algorithm(kind)
            .clock(ManualClock::default())
            .build()
            .unwrap();
        let passed = on_threads(|_| {
            let calls = (0..4_000).flat_map(|_| 0..5_u64);
            calls.filter(|key| limiter.check(key).is_allowed()).count() as u64
        });
        assert_eq!(passed, 5 * 1_000, "{kind}");
        let counts = limiter.counts();
        assert_eq!(counts.allowed, passed, "{kind}");
        assert_eq!(counts.allowed + counts.denied, THREADS * 4_000 * 5, "{kind}");
    }
}

#[test]
fn exactly_burst_and_refill_pass_while_the_clock_moves() {
    let clock = ManualClock::default();
    let limiter: Limiter<str, _> =
        Limiter::builder("1000/s burst 100").clock(clock.clone()).build().unwrap();
    let done = AtomicBool::new(false);
    let mut steps = 0;
    let passed = thread::scope(|scope| {
        let hammer = || {
            let mut passed = 0;
            while !done.load(Ordering::Relaxed) {
                passed += u64::from(limiter.check("hot").is_allowed());
            }
            passed
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(hammer)).collect();
        // Less than the burst at a time, so that no refill overflows the bucket.
        while steps < 2_000 {
            if limiter.peek("hot").remaining() < 50 {
                clock.advance(Duration::from_millis(10));
                steps += 1;
            }
        }
        while limiter.peek("hot").remaining() > 0 {
            thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>()
    });
    assert_eq!(passed, 100 + steps * 10);
}

#[test]
fn the_real_clock_lets_through_no_more_than_burst_and_rate() {
    let limiter: Limiter<str> = Limiter::new(Quota::per_second(1_000_000).burst(10)).unwrap();
    let begin = SystemClock.now();
    let passed =
        on_threads(|_| (0..200_000).filter(|_| limiter.check("hot").is_allowed()).count() as u64);
    let elapsed = SystemClock.now().since(begin);
    let most = 10 + elapsed.as_nanos() as u64 / 1_000;
    assert!(passed <= most, "{passed} passed, at most {most} may");
}

#[test]
fn callers_racing_into_a_crowded_table_get_their_burst_once() {
    let limiter: Limiter<u64, _> = Limiter::builder("1/h burst 3")
        .capacity(10_000)
        .when_full(WhenFull::Deny)
        .clock(ManualClock::default())
        .build()
        .unwrap();
    // Every thread makes the first call of every caller, in the same order.
    let passed = on_threads(|_| {
        let calls = (0..3_000).flat_map(|key| [key; 2]);
        calls.filter(|key| limiter.check(key).is_allowed()).count() as u64
    });
    assert_eq!(passed, 3 * 3_000);
    assert_eq!(limiter.active_callers(), 3_000);
}

#[test]
fn changing_the_quota_under_load_never_frees_a_token() {
    let limiter: Limiter<u64, _> =
        Limiter::builder("1/h burst 100").clock(ManualClock::default()).build().unwrap();
    let passed = on_threads(|thread| {
        if thread == 0 {
            for round in 0..300 {
                // Slower and faster, but always the same burst.
                let period = Duration::from_secs(60 * (1 + round % 7));
                limiter.set_quota(Quota::per(1, period).burst(100)).unwrap();
            }
        }
        let calls = (0..400).flat_map(|_| 0..20_u64);
        calls.filter(|key| limiter.check(key).is_allowed()).count() as u64
    });
    assert_eq!(passed, 20 * 100);
}

/// A key with the tier of its call, by which it is not identified.
struct Tiered(u64, Option<&'static str>);

impl std::hash::Hash for Tiered {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[test]
fn calls_in_several_tiers_while_quotas_change_never_free_a_token() {
    let limiter = Limiter::<Tiered>::builder("1/h burst 100").tier("gold", "1/min burst 100");
    let limiter = limiter.tier("silver", "2/h burst 100").tier_of(|key: &Tiered| key.1);
    let limiter = limiter.clock(ManualClock::default()).build().unwrap();
    let passed = on_threads(|thread| {
        let mut passed = 0;
        for round in 0..300_u64 {
            if thread == 0 {
                let period = Duration::from_secs(60 * (1 + round % 7));
                limiter.set_tier_quota("gold", Quota::per(1, period).burst(100)).unwrap();
            }
            for key in 0..20 {
                let tier = [None, Some("gold"), Some("silver")][((round + thread) % 3) as usize];
                passed += u64::from(limiter.check(&Tiered(key, tier)).is_allowed());
            }
        }
        passed
    });
    assert_eq!(passed, 20 * 100);
}

#[test]
fn all_or_nothing_spends_everywhere_or_nowhere() {
    let clock = ManualClock::default();
    let limiter = |quota| Limiter::<u64, _>::builder(quota).clock(clock.clone()).build().unwrap();
    let (own, shared) = (limiter("1000/h"), limiter("3000/h"));
    let passed = on_threads(|thread| {
        let calls = (0..2_000)
            .filter(|_| check_all([own.spend(&thread, 1), shared.spend(&0, 1)]).is_allowed());
        calls.count() as u64
    });
    assert_eq!(passed, 3_000);
    let kept = own.counts().kept_spends;
    let spent: u64 = (0..THREADS).map(|key| 1_000 - own.peek(&key).remaining()).sum();
    assert_eq!(spent, passed + kept, "what was denied by the one is not spent on the other");
    assert_eq!(kept, 0, "nobody else spends on a thread's own caller");
}

#[test]
fn every_thread_counts_even_those_that_come_and_go() {
    let limiter: Limiter<u64> = Limiter::new("1000000/h").unwrap();
    let spent = AtomicU64::new(0);
    for _ in 0..20 {
        on_threads(|thread| {
            for _ in 0..100 {
                let decision = limiter.check(&thread);
                spent.fetch_add(u64::from(decision.is_allowed()), Ordering::Relaxed);
            }
            0
        });
    }
    let Counts { allowed, denied, .. } = limiter.counts();
    assert_eq!((allowed, denied), (spent.into_inner(), 0));
    assert_eq!(allowed, 20 * THREADS * 100);
}

#[test]
fn a_caller_that_never_rests_is_saved_every_time() {
    let limiter: Limiter<str> = Limiter::builder("1/h burst 1000000").capacity(1).build().unwrap();
    assert!(limiter.check("hot").is_allowed());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    limiter.debit_n("hot", 1);
                }
            });
        }
        let missed = (0..200_000).filter(|_| limiter.save().tables[0].callers.is_empty()).count();
        done.store(true, Ordering::Relaxed);
        assert_eq!(missed, 0);
    });
}

#[test]
fn a_caller_is_saved_also_while_its_override_comes_and_goes() {
    let limiter: Limiter<str> = Limiter::builder("1/h burst 1000").capacity(1).build().unwrap();
    limiter.debit_n("caller", 500);
    let caller = limiter.fingerprint("caller");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                limiter.set_override("caller", "1/h burst 2000").unwrap();
                limiter.remove_override("caller");
            }
        });
        let is_missed = |_: &u32| {
            let saved = limiter.save();
            let mut counted = saved.tables.iter().flat_map(|table| &table.callers);
            let mut accounts = saved.accounts.iter();
            !counted.any(|(known, _)| *known == caller)
                && !accounts.any(|known| known.caller == caller)
        };
        let missed = (0..1_000_000).filter(is_missed).count();
        done.store(true, Ordering::Relaxed);
        assert_eq!(missed, 0);
    });
}

#[test]
fn an_override_frees_no_exhausted_caller_however_it_comes_and_goes() {
    // Set once while others ask.
    let mut passed = 0;
    for _ in 0..1_000 {
        let limiter: Limiter<str, _> = Limiter::builder("100/day")
            .clock(ManualClock::default())
            .capacity(100)
            .build()
            .unwrap();
        assert!(limiter.check_n("a", 100).is_allowed());
        passed += on_threads(|thread| match thread {
            0 => limiter.set_override("a", "50/day").map_or(1, |()| 0),
            1..5 => (0..20).filter(|_| limiter.check("a").is_allowed()).count() as u64,
            _ => 0,
        });
    }
    assert_eq!(passed, 0);

    // There and back, all the time.
    for kind in AlgorithmKind::ALL {
        let builder = Limiter::<str>::builder("100/day").algorithm(kind).capacity(100);
        let limiter = builder.clock(ManualClock::default()).build().unwrap();
        let passed = on_threads(|thread| {
            if thread == 0 {
                for round in 0..2_000 {
                    limiter.set_override("a", ["50/day", "100/day"][round % 2]).unwrap();
                    limiter.remove_override("a");
                }
            }
            (0..4_000).filter(|_| limiter.check("a").is_allowed()).count() as u64
        });
        assert!(passed <= 100, "{kind}: {passed} of 100");
        assert_eq!(limiter.peek("a").remaining(), 0, "{kind}: all of it was asked for");
    }
}

/// A clock that is behind for every other reading.
struct Stale(ManualClock, AtomicU64);

impl Clock for Stale {
    fn now(&self) -> spillgate::Timestamp {
        let reading = self.1.fetch_add(1, Ordering::Relaxed);
        self.0.now() - Duration::from_millis(if reading % 2 == 0 { 5 } else { 0 })
    }
}

#[test]
fn the_same_quota_again_frees_no_token_whatever_the_clock_says() {
    let clock = Stale(ManualClock::default(), AtomicU64::new(0));
    let limiter: Limiter<str, _> =
        Limiter::builder("1000/s burst 10").clock(clock).build().unwrap();
    // Nothing is left by the later reading. By the earlier one first, 5 ms would be refilled.
    let spent = (0..100).filter(|_| limiter.check("a").is_allowed()).count();
    assert!((10..=15).contains(&spent), "{spent} of 10, and of 5 ms");
    let passed = on_threads(|thread| {
        if thread == 0 {
            (0..2_000).for_each(|_| limiter.set_quota("1000/s burst 10").unwrap());
        }
        (0..4_000).filter(|_| limiter.check("a").is_allowed()).count() as u64
    });
    assert_eq!(passed, 0, "all were spent, and no time has passed");

    // Another quota and back: a token takes another time, but there are as many.
    let passed = on_threads(|thread| {
        if thread == 0 {
            for round in 0..2_000 {
                limiter.set_quota(["500/s burst 10", "1000/s burst 10"][round % 2]).unwrap();
            }
        }
        (0..4_000).filter(|_| limiter.check("a").is_allowed()).count() as u64
    });
    assert!(passed <= 5, "{passed}: at most what 5 ms refill");
}

/// What several threads do at one instant adds up: whatever moves, every call is charged once.
/// All quotas have one burst, and tokens that take differently long: so all that moves between
/// them is translated. What is charged goes beyond the burst.
#[test]
fn everything_that_moves_at_once_charges_every_call_once() {
    const BURST: u64 = 2_000;
    for kind in AlgorithmKind::ALL {
        let quotas = [1_u64, 2, 5].map(|days| format!("{BURST} per {days} day"));
        for has_tiers in [false, true] {
            let builder = Limiter::<u64>::builder(&*quotas[0]).algorithm(kind).capacity(50);
            // Of tiers, time is kept and not tokens: so all have the same quota there.
            let builder = match has_tiers {
                true => builder
                    .tier("gold", &*quotas[0])
                    .tier_of(|key: &u64| key.is_multiple_of(2).then_some("gold")),
                false => builder,
            };
            let limiter = builder.clock(ManualClock::default()).build().unwrap();
            let spent: [AtomicU64; 8] = Default::default();
            let refunded: [AtomicU64; 8] = Default::default();
            on_threads(|thread| {
                let mut random = thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
                let mut draw = |below: u64| {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    random % below
                };
                for _ in 0..3_000 {
                    let key = draw(8);
                    let (spent, refunded) = (&spent[key as usize], &refunded[key as usize]);
                    let other = &*quotas[draw(3) as usize];
                    match draw(40) {
                        0 => limiter.set_override(&key, other).unwrap(),
                        1 => drop(limiter.remove_override(&key)),
                        2 if !has_tiers => limiter.set_quota(other).unwrap(),
                        3 if has_tiers => limiter.set_tier_quota("gold", &*quotas[0]).unwrap(),
                        4 => drop(limiter.purge_idle()),
                        5 => limiter.restore(&limiter.save(), limiter.clock().now()),
                        6..10 => {
                            let amount = 1 + draw(9);
                            let settled = limiter.debit_n(&key, amount);
                            spent.fetch_add(amount - settled.uncharged, Ordering::Relaxed);
                        }
                        10..16 => {
                            let (estimate, actual) = (1 + draw(5), draw(9));
                            if let Ok(reservation) = limiter.reserve_n(&key, estimate) {
                                limiter.settle(reservation, actual);
                                spent.fetch_add(estimate.max(actual), Ordering::Relaxed);
                                let unused = estimate.saturating_sub(actual);
                                refunded.fetch_add(unused, Ordering::Relaxed);
                            }
                        }
                        _ => {
                            let cost = 1 + draw(3);
                            let passes = limiter.check_n(&key, cost).is_allowed();
                            spent.fetch_add(if passes { cost } else { 0 }, Ordering::Relaxed);
                        }
                    }
                }
                0
            });
            for key in 0..8_u64 {
                limiter.remove_override(&key);
                let owed = limiter.peek(&key).owed();
                let [spent, refunded] =
                    [&spent, &refunded].map(|of| of[key as usize].load(Ordering::Relaxed));
                // Windows count as far as their words do, which is at least twice the burst.
                let least = (spent - refunded).min(2 * BURST);
                assert!(owed >= least, "{kind}: {owed} owed of {spent} less {refunded}");
                // What is given back under an override, or is in a snapshot that is put back, may
                // count again: never more than was spent. A nanosecond more may be a token.
                assert!(owed <= spent + 1, "{kind}: {owed} owed, and {spent} were spent");
                assert!(spent - refunded > BURST, "there are debts");
            }
        }
    }
}
