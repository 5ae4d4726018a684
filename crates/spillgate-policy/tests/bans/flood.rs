//! Offences of very many callers at once, with a store elsewhere.

use std::sync::atomic::Ordering;

use spillgate_policy::{Gate, LimitCheck, Policy};

use crate::common::at_once;
use crate::expiry::remote::Remote;

#[test]
fn a_flood_of_offences_is_told_in_small_parts() {
    let policy = "[[limit]]\nname = 'api'\nquota = '1/h burst 1'\nban = { strikes = 100 }\n";
    let store = Remote::default();
    let gate = Gate::with_store(Policy::from_toml(policy).unwrap(), store.clone()).unwrap();
    let offend = |user: &str| {
        let outcome = at_once(gate.decide(&LimitCheck::new("api", &[user], 2))).unwrap();
        assert!(!outcome.is_allowed());
    };
    (0..1000).for_each(|user| offend(&format!("user:{user}")));
    (0..50).for_each(|_| offend("user:busy"));
    let struck = || store.struck.load(Ordering::Relaxed);
    at_once(gate.flush_offences()).unwrap();
    // For a fifth of a second, then what has begun.
    assert!((200..200 + 64 + 8).contains(&struck()), "{}", struck());
    for _ in 0..10 {
        at_once(gate.flush_offences()).unwrap();
    }
    assert_eq!(struck(), 1050, "each once");
    assert_eq!(gate.ban_usage().lost_strikes, 0);
}
