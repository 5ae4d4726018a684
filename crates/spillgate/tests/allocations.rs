//! A check allocates nothing, whatever it decides.

use spillgate::{Limiter, check_all};

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
