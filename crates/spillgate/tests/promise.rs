//! A limiter whose quotas move keeps the promise.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use spillgate::{AlgorithmKind, Limiter, ManualClock, Reservation, Timestamp};
use spillgate_testing::moving::{self, Caller, Moving, Own, Quotas};

/// A key with the tier of its call, by which it is not identified.
#[derive(PartialEq, Eq)]
pub(crate) struct Key(pub(crate) &'static str, pub(crate) Option<&'static str>);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

struct InLimiter {
    kind: AlgorithmKind,
    quotas: Quotas,
    limiter: Limiter<Key, ManualClock>,
    open: HashMap<usize, Reservation>,
}

impl InLimiter {
    fn new(kind: AlgorithmKind, quotas: &Quotas, start: Timestamp) -> Self {
        let limiter = build(kind, quotas, ManualClock::new(start), None);
        Self { kind, quotas: quotas.clone(), limiter, open: HashMap::new() }
    }

    fn at(&self, now: Timestamp) -> &Limiter<Key, ManualClock> {
        self.limiter.clock().set(now);
        &self.limiter
    }
}

fn build(
    kind: AlgorithmKind,
    quotas: &Quotas,
    clock: ManualClock,
    old: Option<&Limiter<Key, ManualClock>>,
) -> Limiter<Key, ManualClock> {
    let builder = Limiter::builder(quotas.base).algorithm(kind).capacity(50).clock(clock);
    let mut builder =
        quotas.tiers.iter().fold(builder, |builder, (name, quota)| builder.tier(*name, *quota));
    if !quotas.tiers.is_empty() {
        builder = builder.tier_of(|key: &Key| key.1);
    }
    match old {
        Some(old) => builder.hasher(*old.table().hasher()).build().unwrap(),
        None => builder.build().unwrap(),
    }
}

impl Moving for InLimiter {
    fn check(&mut self, caller: Caller, cost: u64, now: Timestamp) -> bool {
        self.at(now).check_n(&Key(caller.key, caller.tier), cost).is_allowed()
    }

    fn retry_after(&mut self, caller: Caller, cost: u64, now: Timestamp) -> Option<Duration> {
        self.at(now).peek_n(&Key(caller.key, caller.tier), cost).retry_after()
    }

    fn reserve(&mut self, caller: Caller, cost: u64, number: usize, now: Timestamp) -> bool {
        let reservation = self.at(now).reserve_n(&Key(caller.key, caller.tier), cost);
        let is_allowed = reservation.is_ok();
        self.open.extend(reservation.ok().map(|reservation| (number, reservation)));
        is_allowed
    }

    fn settle(&mut self, number: usize, actual: u64, now: Timestamp) {
        if let Some(reservation) = self.open.remove(&number) {
            self.at(now).settle(reservation, actual);
        }
    }

    fn debit(&mut self, key: &'static str, amount: u64, now: Timestamp) {
        self.at(now).debit_n(&Key(key, None), amount);
    }

    fn refund(&mut self, key: &'static str, amount: u64, now: Timestamp) {
        self.at(now).refund_n(&Key(key, None), amount);
    }

    fn reset(&mut self, key: &'static str, now: Timestamp) {
        self.at(now).reset(&Key(key, None));
    }

    fn set_override(&mut self, key: &'static str, own: Option<Own>, now: Timestamp) {
        let (limiter, key) = (self.at(now), Key(key, None));
        match own {
            Some(Own { quota, until: None }) => limiter.set_override(&key, quota).unwrap(),
            Some(Own { quota, until: Some(until) }) => {
                limiter.set_override_until(&key, quota, until).unwrap();
            }
            None => drop(limiter.remove_override(&key)),
        }
    }

    fn reload(&mut self, quotas: &Quotas, now: Timestamp) {
        let tiers = quotas.tiers.iter().copied();
        self.at(now).set_quotas(quotas.base, tiers).unwrap();
        self.quotas = quotas.clone();
    }

    fn restart(&mut self, now: Timestamp) {
        let saved = self.at(now).save();
        let clock = self.limiter.clock().clone();
        let limiter = build(self.kind, &self.quotas, clock, Some(&self.limiter));
        limiter.restore(&saved, now);
        self.limiter = limiter;
        self.open.clear();
    }

    fn remaining(&mut self, key: &'static str, now: Timestamp) -> u64 {
        self.at(now).peek_n(&Key(key, None), 0).remaining()
    }
}

#[test]
fn what_moves_in_a_limiter_is_never_too_much_never_lost_and_never_a_lie() {
    for kind in AlgorithmKind::ALL {
        moving::moving(kind, 500, InLimiter::new);
    }
}
