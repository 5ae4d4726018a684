//! Locks around a `fork`. What happens in a child, `bindings/c/tests/c/forks.c` tests.

use spillgate::{Limiter, ManualClock, fork};

#[test]
fn known_callers_need_no_lock_and_others_wait_for_it() {
    let clock = ManualClock::default();
    let limiter = Limiter::<str>::builder("5/h").clock(clock).build().unwrap();
    assert!(limiter.check("alice").is_allowed());
    std::thread::scope(|scope| {
        let held = fork::hold([&limiter]);
        let other = scope.spawn(|| limiter.check("bob").remaining());
        assert_eq!(limiter.check("alice").remaining(), 3);
        assert!(limiter.table().iter().count() == 1, "bob waits");
        drop(held);
        assert_eq!(other.join().unwrap(), 4);
    });
}

#[test]
fn every_lock_is_released() {
    let limiter = Limiter::<str>::builder("5/h")
        .tier("gold", "9/h")
        .tier_of(|key: &str| key.starts_with("gold").then_some("gold"))
        .build()
        .unwrap();
    drop(fork::hold([&limiter]));
    limiter.set_override("alice", "7/h").unwrap();
    assert_eq!((limiter.check("alice").limit(), limiter.check("gold").limit()), (7, 9));
    limiter.set_quota("6/h").unwrap();
    assert_eq!(limiter.remove_override("alice"), Some("7/h".parse().unwrap()));
    assert_eq!(Limiter::<str>::new("1/s").unwrap().check("alice").remaining(), 0);
}
