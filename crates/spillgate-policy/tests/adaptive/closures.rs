//! What a program gives that a file cannot say.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use spillgate_policy::{Adaptive, Limit, Policy};

use super::{ALICE, limit, status};
use crate::common::{gate_of, get};

#[test]
fn a_closure_is_asked_twice_a_second_at_most() {
    let asked = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asked);
    let signal = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        Some(f64::NAN)
    };
    let adaptive = Adaptive::load(50.0, 1..=9).signal(signal).start(4.0);
    let (gate, clock) =
        gate_of(Policy::builder().limit(Limit::adaptive("service", adaptive)).build().unwrap());
    for _ in 0..1_000 {
        clock.advance(Duration::from_millis(10));
        drop(get(ALICE, "/").through(&gate));
    }
    let times = asked.load(Ordering::Relaxed);
    assert!((15..=21).contains(&times), "{times}");
    assert_eq!((limit(&gate), status(&gate, "service").reason.name()), (4.0, "no-signal"));
    assert_eq!(gate.adaptive_states()[0].signal, "closure");
}

#[test]
fn another_closure_takes_over_with_the_next_policy() {
    let policy = |signal: f64| {
        let adaptive = Adaptive::load(0.5, 1..=99).start(50.0).signal(move || Some(signal));
        Policy::builder().limit(Limit::adaptive("service", adaptive)).build().unwrap()
    };
    let (gate, clock) = gate_of(policy(0.5));
    let run = || {
        for _ in 0..400 {
            clock.advance(Duration::from_millis(250));
            drop(get(ALICE, "/").through(&gate));
        }
    };
    run();
    let before = limit(&gate);
    gate.replace(policy(1.0)).unwrap();
    run();
    assert_eq!(status(&gate, "service").signal, Some(1.0));
    assert!(limit(&gate) < before, "{} after {before}", limit(&gate));
}
