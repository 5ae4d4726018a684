//! What one thread sees.

use spillgate::{BusyCause, Concurrency, KeyedState, Permit, Seed};

fn cause(result: Result<Permit, spillgate::Busy>) -> BusyCause {
    result.unwrap_err().cause
}

#[test]
fn as_many_as_the_limit_are_in_flight_for_each_key() {
    let calls: Concurrency<str> = Concurrency::new(3);
    let held: Vec<_> = (1..=3)
        .map(|nth| {
            let permit = calls.try_acquire("a").unwrap();
            assert_eq!((permit.count(), permit.in_flight()), (1, nth));
            permit
        })
        .collect();
    let busy = calls.try_acquire("a").unwrap_err();
    assert_eq!((busy.in_flight, busy.is_full, busy.cause), (3, false, BusyCause::Held));
    let other = calls.try_acquire("b").unwrap();
    assert_eq!((calls.in_flight("a"), calls.in_flight("b"), calls.in_flight("c")), (3, 1, 0));
    assert_eq!((calls.total_in_flight(), calls.active_keys()), (4, 2));
    drop(held);
    other.release();
    assert_eq!((calls.total_in_flight(), calls.active_keys()), (0, 0));
}

#[test]
fn several_permits_come_and_go_together() {
    let calls: Concurrency<str> = Concurrency::new(5);
    let three = calls.try_acquire_n("a", 3).unwrap();
    assert_eq!(cause(calls.try_acquire_n("a", 3)), BusyCause::Held);
    assert_eq!(calls.in_flight("a"), 3, "a refusal holds nothing");
    let two = calls.try_acquire_n("a", 2).unwrap();
    assert_eq!(two.in_flight(), 5);
    drop(three);
    assert_eq!(calls.in_flight("a"), 2);
}

#[test]
fn no_permit_is_always_granted_and_holds_nothing() {
    let calls: Concurrency<str> = Concurrency::builder(1).capacity(1).build();
    let _one = calls.try_acquire("a").unwrap();
    for key in ["a", "b"] {
        for none in [calls.try_acquire_n(key, 0).unwrap(), calls.acquire_beyond(key, 0)] {
            assert_eq!((none.count(), none.is_counted()), (0, false));
            assert_eq!(none.in_flight(), calls.in_flight(key));
        }
    }
    assert!(Concurrency::<str>::new(0).try_acquire_n("a", 0).is_ok());
    assert_eq!((calls.total_in_flight(), calls.active_keys()), (1, 1));
}

#[test]
fn more_than_the_limit_is_never_granted_and_says_so() {
    let calls: Concurrency<str> = Concurrency::new(3);
    assert_eq!(cause(calls.try_acquire_n("a", 4)), BusyCause::AboveLimit);
    assert_eq!(cause(calls.try_acquire_within("a", 2, 1)), BusyCause::AboveLimit);
    let none: Concurrency<str> = Concurrency::new(0);
    assert_eq!(cause(none.try_acquire("a")), BusyCause::AboveLimit);
    assert_eq!((calls.active_keys(), none.active_keys()), (0, 0));
}

#[test]
fn a_call_may_bring_its_own_limit() {
    let calls: Concurrency<str> = Concurrency::new(2);
    let held: Vec<_> = (0..4).map(|_| calls.try_acquire_within("a", 1, 4).unwrap()).collect();
    assert_eq!(cause(calls.try_acquire_within("a", 1, 4)), BusyCause::Held);
    assert_eq!(cause(calls.try_acquire("a")), BusyCause::Held);
    drop(held);
    let _permit = calls.try_acquire("a").unwrap();
    assert_eq!(cause(calls.try_acquire_within("a", 1, 1)), BusyCause::Held);
}

#[test]
fn beyond_the_limit_counts_and_comes_back() {
    let calls: Concurrency<str> = Concurrency::new(1);
    let huge = [(); 3].map(|()| calls.acquire_beyond("a", u32::MAX));
    assert_eq!(huge[2].in_flight(), u32::MAX, "it shows the most it can");
    assert_eq!(calls.total_in_flight(), 3 * u64::from(u32::MAX));
    let [first, second, third] = huge;
    drop((first, second));
    assert_eq!(cause(calls.try_acquire("a")), BusyCause::Held, "the third is still held");
    drop(third);
    assert_eq!(calls.try_acquire("a").unwrap().in_flight(), 1);
}

#[test]
fn a_key_beyond_the_capacity_is_refused_until_another_is_gone() {
    let calls: Concurrency<u32> = Concurrency::builder(2).capacity(2).build();
    let (one, two) = (calls.try_acquire(&1).unwrap(), calls.try_acquire(&2).unwrap());
    let busy = calls.try_acquire(&3).unwrap_err();
    assert_eq!((busy.in_flight, busy.is_full, busy.cause), (0, true, BusyCause::NoRoom));
    let known = calls.try_acquire(&2).unwrap();
    let beyond = calls.acquire_beyond(&3, 5);
    assert_eq!((beyond.count(), beyond.is_counted()), (5, false));
    assert_eq!(calls.active_keys(), 2);
    drop(two);
    assert!(calls.try_acquire(&3).unwrap_err().is_full, "the key has one left");
    drop(known);
    let three = calls.try_acquire(&3).unwrap();
    drop(beyond);
    assert_eq!(calls.in_flight(&3), 1, "what did not count does not come back");
    drop((one, three));
    assert_eq!((calls.total_in_flight(), calls.active_keys()), (0, 0));
}

#[test]
fn limit_and_capacity_change_while_permits_are_held() {
    let calls: Concurrency<u32> = Concurrency::builder(3).capacity(2).build();
    let mut held: Vec<_> = (0..3).map(|_| calls.try_acquire(&1).unwrap()).collect();
    calls.set_limit(1);
    assert_eq!((calls.limit(), calls.in_flight(&1)), (1, 3));
    for left in [2, 1] {
        assert_eq!(cause(calls.try_acquire(&1)), BusyCause::Held);
        held.pop();
        assert_eq!(calls.in_flight(&1), left);
    }
    assert_eq!(cause(calls.try_acquire(&1)), BusyCause::Held);
    held.pop();
    held.push(calls.try_acquire(&1).unwrap());
    held.push(calls.try_acquire(&2).unwrap());
    calls.set_capacity(1);
    assert_eq!((calls.capacity(), calls.active_keys()), (1, 2));
    held.pop();
    assert_eq!(cause(calls.try_acquire(&2)), BusyCause::NoRoom);
    calls.set_capacity(2);
    assert!(calls.try_acquire(&2).is_ok());
}

#[test]
fn clones_share_the_counts_and_permits_outlive_them() {
    let seed = KeyedState::with_seed(Seed::from_bytes([7; 16]));
    let calls = Concurrency::<str>::builder(1).hasher(seed).build();
    let copy = calls.clone();
    let permit = calls.try_acquire("a").unwrap();
    assert_eq!(cause(copy.try_acquire("a")), BusyCause::Held);
    drop((calls, copy));
    drop(permit);
}

#[test]
fn permits_go_to_other_threads() {
    fn expect<T: Send + Sync + 'static>() {}
    expect::<Permit>();
    expect::<Concurrency<str>>();
    let calls: Concurrency<str> = Concurrency::new(1);
    let permit = calls.try_acquire("a").unwrap();
    std::thread::spawn(move || drop(permit)).join().unwrap();
    assert_eq!(calls.in_flight("a"), 0);
}

#[test]
fn nothing_shown_gives_a_key_away() {
    let calls: Concurrency<str> = Concurrency::new(1);
    let permit = calls.try_acquire("secret").unwrap();
    assert_eq!(format!("{permit:?}"), "Permit { count: 1, in_flight: 1, .. }");
    assert_eq!(format!("{calls:?}"), "Concurrency { limit: 1, active_keys: 1, .. }");
}
