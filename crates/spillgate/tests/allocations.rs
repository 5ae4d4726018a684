//! A check allocates nothing, whatever it decides. Nor does a permit, once its key's shard has room.

use spillgate::adaptive::{AdaptiveLimit, AdaptiveRate, Auto, Ending, Priority};
use spillgate::{Concurrency, Limiter, check_all};

fn allocations(act: impl FnOnce()) -> u64 {
    allocation_counter::measure(act).count_total
}

#[test]
fn no_check_allocates() {
    let limiter: Limiter<str> = Limiter::new("2/h").unwrap();
    // The first call of a thread takes its number, once.
    let _ = limiter.check("warm-up");
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1, "allocations are seen");

    let calls = allocations(|| {
        let keys = ["new", "new", "new", "other"];
        let passed = keys.map(|key| limiter.check(key).is_allowed());
        assert_eq!(passed, [true, true, false, true]);
        assert!(limiter.peek("new").retry_after().is_some());
        assert_eq!(limiter.check_many(keys).count(), 4);
        limiter.refund_n("other", 1);
        limiter.reset("new");
        let both = [limiter.spend("x", 1), limiter.spend("y", 1)];
        assert!(check_all(both).is_allowed());
    });
    assert_eq!(calls, 0);
}

#[test]
fn a_flood_of_new_callers_allocates_nothing() {
    let limiter: Limiter<u64> = Limiter::builder("1/h").capacity(1_000).build().unwrap();
    let _ = limiter.check(&0);
    let flood = || {
        for key in 0..100_000 {
            let _ = limiter.check(&key);
        }
    };
    assert_eq!(allocations(flood), 0);
}

#[test]
fn no_permit_allocates_once_there_is_room() {
    let calls: Concurrency<u64> = Concurrency::new(2);
    let rounds = || {
        for key in 0..10_000 {
            let first = calls.try_acquire(&key).unwrap();
            let second = calls.acquire_beyond(&key, 1);
            assert!(calls.try_acquire(&key).is_err());
            drop((first, second));
        }
    };
    rounds();
    assert_eq!(allocations(rounds), 0);
}

#[test]
fn keys_that_are_gone_give_their_memory_back() {
    let calls: Concurrency<u64> = Concurrency::new(1);
    let _warm = calls.try_acquire(&0).unwrap();
    let flood = || drop((1..100_000).map(|key| calls.try_acquire(&key)).collect::<Vec<_>>());
    let memory = allocation_counter::measure(flood);
    let (most, left) = (memory.bytes_max, memory.bytes_current);
    // The permits themselves take 24 to 32 bytes each.
    assert!((2_000_000..12_000_000).contains(&most), "{most} bytes at most");
    assert!(left < 250_000, "{left} bytes are left");
}

#[test]
fn no_adaptive_limit_allocates_between_its_steps() {
    for by_priority in [false, true] {
        let service = AdaptiveLimit::concurrency(Auto::default(), 2..=2).by_priority(by_priority);
        let service = service.build();
        let range = "10/s".parse().unwrap()..="10/s".parse().unwrap();
        let rate = AdaptiveRate::<str>::builder(Auto::default(), range).by_priority(by_priority);
        let rate = rate.build().unwrap();
        let rounds = || {
            // All at one time, at which no step is due.
            let now = spillgate::Timestamp::from_secs(1_700_000_000);
            let anyone = Priority::default();
            for round in 0..1_000 {
                let mut held = service.try_acquire_at(anyone, now).unwrap();
                let (beyond, _) = service.acquire_beyond_at(anyone, now);
                assert!(service.peek_at(anyone, now).is_err());
                assert!(service.try_acquire_at(anyone, now).is_err());
                held.record_at(if round % 3 == 0 { Ending::Failed } else { Ending::Ok }, now);
                drop((held, beyond));
                let _ = rate.check_at("alice", 1, anyone, now);
                let _ = rate.peek_at("bob", 1, anyone, now);
                rate.refund_at("alice", 1, now);
                let _ = (service.status(), rate.status());
            }
        };
        rounds();
        assert_eq!(allocations(rounds), 0);
    }
}
