//! One kind of call, so many times, for counting the instructions that one takes:
//! `scripts/bench-instructions` runs it under valgrind.

use std::hint::black_box;
use std::time::Duration;

use spillgate::algorithm::{AlgorithmKind, TokenBucket};
use spillgate::{Clock, Concurrency, Limiter, ManualClock, Quota, Table, WhenFull, check_all_at};

const KEYS: u64 = 1_000;

type BenchLimiter = Limiter<u64, ManualClock>;

fn limiter(quota: &str, kind: AlgorithmKind) -> BenchLimiter {
    let builder = Limiter::<u64>::builder(quota).algorithm(kind).capacity(100_000);
    builder.clock(ManualClock::default()).build().unwrap()
}

/// A limiter whose callers are known.
fn known(quota: &str, kind: AlgorithmKind) -> BenchLimiter {
    let limiter = limiter(quota, kind);
    (0..KEYS).for_each(|key| {
        let _ = black_box(limiter.check(&key));
    });
    limiter
}

/// What a row is called, and what it does so many times.
type Row = (&'static str, fn(u64));

const ROWS: &[Row] = &[
    ("check, allowed", |count| {
        check(&known("1000000/s burst 100000000", AlgorithmKind::TokenBucket), count);
    }),
    ("check, 50,000 callers", |count| {
        let limiter = limiter("1000000/s burst 100000000", AlgorithmKind::TokenBucket);
        let call = |key| {
            let _ = black_box(limiter.check(&key));
        };
        (0..50_000).for_each(call);
        (0..count).map(|call| call * 7 % 50_000).for_each(call);
    }),
    ("check, denied", |count| check(&known("1/h", AlgorithmKind::TokenBucket), count)),
    ("check, leaky bucket", |count| {
        check(&known("1000000/s burst 100000000", AlgorithmKind::LeakyBucket), count);
    }),
    ("check, interval bucket", |count| {
        check(&known("1000000/h", AlgorithmKind::IntervalBucket), count);
    }),
    ("check, fixed window", |count| {
        check(&known("1000000000/h", AlgorithmKind::FixedWindow), count);
    }),
    ("check, sliding window", |count| {
        check(&known("1000000/h", AlgorithmKind::SlidingWindow), count);
    }),
    ("check, others have overrides", |count| {
        let limiter = known("1000000/s burst 100000000", AlgorithmKind::TokenBucket);
        limiter.set_override(&u64::MAX, "1/s").unwrap();
        check(&limiter, count);
    }),
    ("check, a caller with an override", |count| {
        let limiter = known("1/s", AlgorithmKind::TokenBucket);
        (0..KEYS).for_each(|key| limiter.set_override(&key, "1000000/s burst 100000000").unwrap());
        check(&limiter, count);
    }),
    ("check_at, allowed", |count| {
        let limiter = known("1000000/s burst 100000000", AlgorithmKind::TokenBucket);
        let now = limiter.clock().now();
        (0..count).for_each(|call| {
            let _ = black_box(limiter.check_at(&(call % KEYS), 1, now));
        });
    }),
    ("peek", |count| {
        let limiter = known("1000000/s burst 100000000", AlgorithmKind::TokenBucket);
        (0..count).for_each(|call| {
            let _ = black_box(limiter.peek(&(call % KEYS)));
        });
    }),
    ("check_many", |count| {
        let limiter = known("1000000/s burst 100000000", AlgorithmKind::TokenBucket);
        let keys: Vec<u64> = (0..KEYS).collect();
        for _ in 0..count / KEYS {
            limiter.check_many(&keys).for_each(|decision| {
                let _ = black_box(decision);
            });
        }
    }),
    ("check_all, two limiters", |count| {
        let quota = "1000000/s burst 100000000";
        let [one, other] = [(); 2].map(|()| known(quota, AlgorithmKind::TokenBucket));
        let now = one.clock().now();
        for call in 0..count {
            let spends = [one.spend(&(call % KEYS), 1), other.spend(&(call % KEYS), 1)];
            let _ = black_box(check_all_at(spends, now).is_allowed());
        }
    }),
    ("reserve and settle", |count| {
        let limiter = known("1000000/s burst 100000000", AlgorithmKind::TokenBucket);
        for call in 0..count {
            if let Ok(reservation) = limiter.reserve_n(&(call % KEYS), 3) {
                let _ = black_box(limiter.settle(reservation, 2));
            }
        }
    }),
    ("first calls, room for all", |count| {
        let limiter = limiter("1/h", AlgorithmKind::TokenBucket);
        (0..count.min(60_000)).for_each(|key| {
            let _ = black_box(limiter.check(&(key << 20)));
        });
    }),
    ("first calls, evicting", |count| {
        let builder = Limiter::<u64>::builder("1/h burst 9").capacity(1_000);
        let limiter = builder.clock(ManualClock::default()).build().unwrap();
        (0..10_000 + count).for_each(|key| {
            let _ = black_box(limiter.check(&(key << 20)));
        });
    }),
    ("first calls, taking over idle slots", |count| {
        let builder = Limiter::<u64>::builder("1/s").capacity(1_000);
        let limiter = builder.clock(ManualClock::default()).build().unwrap();
        for key in 0..10_000 + count {
            if key % 500 == 0 {
                limiter.clock().advance(Duration::from_secs(1));
            }
            let _ = black_box(limiter.check(&(key << 20)));
        }
    }),
    ("permit, acquired and released", |count| {
        let calls: Concurrency<u64> = Concurrency::new(10);
        (0..count).for_each(|call| drop(black_box(calls.try_acquire(&(call % KEYS)))));
    }),
    ("permit, of a key in flight", |count| {
        let calls: Concurrency<u64> = Concurrency::new(10);
        let held: Vec<_> = (0..KEYS).map(|key| calls.try_acquire(&key)).collect();
        (0..count).for_each(|call| drop(black_box(calls.try_acquire(&(call % KEYS)))));
        drop(held);
    }),
    ("permit, refused", |count| {
        let calls: Concurrency<u64> = Concurrency::new(1);
        let held: Vec<_> = (0..KEYS).map(|key| calls.try_acquire(&key)).collect();
        (0..count).for_each(|call| drop(black_box(calls.try_acquire(&(call % KEYS)))));
        drop(held);
    }),
    ("a quota that comes with the call", |count| {
        let any: Quota = "1/s".parse().unwrap();
        let kind = AlgorithmKind::TokenBucket;
        let words =
            kind.with_quota(&any, spillgate::Start::Full, spillgate::Timestamp::ZERO).unwrap();
        let table =
            Table::with_hasher(words, 100_000, WhenFull::Evict, spillgate::KeyedState::new())
                .unwrap();
        let bucket = bucket();
        let now = ManualClock::default().now();
        for call in 0..count {
            let key = table.fingerprint(&(call % KEYS));
            let _ = black_box(table.check_with_at(key, bucket, 1, now));
        }
    }),
];

/// However the library makes one: this is also compiled against older ones.
fn bucket() -> TokenBucket {
    use spillgate::algorithm::AnyAlgorithm;
    let quota: Quota = "1000000/s burst 100000000".parse().unwrap();
    let kind = AlgorithmKind::TokenBucket;
    match kind.with_quota(&quota, spillgate::Start::Full, spillgate::Timestamp::ZERO) {
        Ok(AnyAlgorithm::TokenBucket(bucket)) => bucket,
        _ => unreachable!("the quota is one of a token bucket"),
    }
}

fn check(limiter: &BenchLimiter, count: u64) {
    (0..count).for_each(|call| {
        let _ = black_box(limiter.check(&(call % KEYS)));
    });
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next(), arguments.next().and_then(|count| count.parse().ok())) {
        (Some(name), Some(count)) => {
            let row = ROWS.iter().find(|(row, _)| *row == name);
            row.unwrap_or_else(|| panic!("there is no row {name:?}")).1(count);
        }
        _ => ROWS.iter().for_each(|(name, _)| println!("{name}")),
    }
}
