//! Offences of very many callers at once, with a store elsewhere.

use std::sync::atomic::Ordering;

use spillgate_policy::store::StrikeCall;
use spillgate_policy::{Gate, LimitCheck, Policy};

use crate::common::{at_once, try_once};
use crate::expiry::remote::Remote;

const POLICY: &str = "[[limit]]\nname = 'api'\nquota = '1/h burst 1'\nban = { strikes = 100 }\n";

fn gate(store: &Remote) -> Gate<Remote> {
    Gate::with_store(Policy::from_toml(POLICY).unwrap(), store.clone()).unwrap()
}

fn offend(gate: &Gate<Remote>, user: &str) {
    let outcome = at_once(gate.decide(&LimitCheck::new("api", &[user], 2))).unwrap();
    assert!(!outcome.is_allowed());
}

fn offences(calls: &[StrikeCall]) -> u32 {
    calls.iter().map(|call| call.count).sum()
}

#[test]
fn a_flood_of_offences_is_told_in_small_parts() {
    let store = Remote::default();
    let gate = gate(&store);
    (0..1000).for_each(|user| offend(&gate, &format!("user:{user}")));
    (0..50).for_each(|_| offend(&gate, "user:busy"));
    at_once(gate.flush_offences()).unwrap();
    // For a fifth of a second, then what has begun.
    let told = store.strikes.lock().unwrap().len();
    assert!((200..200 + 64).contains(&told), "{told}");
    for _ in 0..10 {
        at_once(gate.flush_offences()).unwrap();
    }
    let told = store.strikes.lock().unwrap().clone();
    assert_eq!((told.len(), offences(&told)), (1001, 1050), "each once");
    assert_eq!(gate.ban_usage().lost_strikes, 0);
}

#[test]
fn offences_of_a_flush_that_is_dropped_or_fails_are_told_again_under_the_same_name() {
    let store = Remote::default();
    let gate = gate(&store);
    (0..3).for_each(|_| offend(&gate, "user:1"));
    store.is_slow.store(true, Ordering::Relaxed);
    // It is dropped while it waits for the answer.
    assert!(try_once(gate.flush_offences()).is_none());
    offend(&gate, "user:1");
    store.is_slow.store(false, Ordering::Relaxed);
    store.is_gone.store(true, Ordering::Relaxed);
    assert!(at_once(gate.flush_offences()).is_err());
    store.is_gone.store(false, Ordering::Relaxed);
    at_once(gate.flush_offences()).unwrap();
    at_once(gate.flush_offences()).unwrap();
    let told = store.strikes.lock().unwrap().clone();
    assert_eq!(told.iter().map(|call| call.count).collect::<Vec<_>>(), [3, 3, 3, 1]);
    assert_eq!((told[0], told[1]), (told[1], told[2]));
    assert_ne!(told[2].id, told[3].id);
    assert_eq!(gate.ban_usage().lost_strikes, 0);
}

#[test]
fn what_an_unanswered_report_has_led_to_is_looked_for() {
    let store = Remote::default();
    let gate = gate(&store);
    store.is_slow.store(true, Ordering::Relaxed);
    assert!(try_once(gate.strike("api", &["user:1"])).is_none());
    store.is_slow.store(false, Ordering::Relaxed);
    assert_eq!(at_once(gate.strike("api", &["user:2"])).unwrap(), None);
    at_once(gate.flush_offences()).unwrap();
    at_once(gate.flush_offences()).unwrap();
    let told = store.strikes.lock().unwrap().clone();
    assert_eq!(told.iter().map(|call| call.count).collect::<Vec<_>>(), [1, 1, 0]);
    assert_eq!(told[0].id, told[2].id);
}

#[test]
fn of_more_callers_than_have_room_the_offences_are_counted_as_lost() {
    let store = Remote::default();
    let gate = gate(&store);
    (0..10_000).for_each(|user| offend(&gate, &format!("user:{user}")));
    store.is_slow.store(true, Ordering::Relaxed);
    let mut flush = Box::pin(gate.flush_offences());
    assert!(try_once(flush.as_mut()).is_none());
    // While 64 are told, others take their room.
    (0..100).for_each(|user| offend(&gate, &format!("user:other-{user}")));
    assert_eq!(gate.ban_usage().lost_strikes, 100 - 64);
    drop(flush);
    assert_eq!(gate.ban_usage().lost_strikes, 100);
}
