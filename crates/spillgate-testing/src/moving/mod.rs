//! State that moves: tiers, overrides, debts, reservations, reloads and restarts.
//!
//! Histories are generated and run against the real thing. What it admits is judged by the
//! promise of DESIGN.md alone: never too much, never lost, never a lie.

mod account;
mod course;
mod history;
#[cfg(feature = "gate")]
mod in_gate;
#[cfg(feature = "gate")]
mod load;

use std::fmt;
use std::time::Duration;

use proptest::test_runner::{TestCaseError, TestError, TestRunner};
use spillgate::{AlgorithmKind, Quota, Timestamp};

use self::course::Course;
pub use self::history::{Amount, Change, MovingHistory};
#[cfg(feature = "gate")]
pub use self::in_gate::MovingGate;
#[cfg(feature = "gate")]
pub use self::load::{policy_under_load, under_load};
use crate::strategy;

/// Anything that decides under one limit with tiers, and can be reconfigured.
pub trait Moving {
    /// Spends `cost` for a caller of a tier if allowed; returns whether it was.
    fn check(&mut self, caller: Caller, cost: u64, now: Timestamp) -> bool;

    /// When a denied cost would be allowed, if ever.
    fn retry_after(&mut self, caller: Caller, cost: u64, now: Timestamp) -> Option<Duration>;

    /// [`check`](Self::check) for a cost that is [settled](Self::settle) later under this number.
    fn reserve(&mut self, caller: Caller, cost: u64, number: usize, now: Timestamp) -> bool;

    /// Replaces what was reserved under a number, if anything, with the actual cost.
    fn settle(&mut self, number: usize, actual: u64, now: Timestamp);

    /// Spends `amount` unconditionally, for a caller without a tier.
    fn debit(&mut self, key: &'static str, amount: u64, now: Timestamp);

    /// Refunds `amount` to a caller without a tier.
    fn refund(&mut self, key: &'static str, amount: u64, now: Timestamp);

    /// Forgets what a caller has spent.
    fn reset(&mut self, key: &'static str, now: Timestamp);

    /// Sets a caller's own quota, for ever or until some time, or removes it.
    fn set_override(&mut self, key: &'static str, own: Option<Own>, now: Timestamp);

    /// Replaces the quotas.
    fn reload(&mut self, quotas: &Quotas, now: Timestamp);

    /// Restarts with the persisted state.
    fn restart(&mut self, now: Timestamp);

    /// How much a caller without a tier could spend.
    fn remaining(&mut self, key: &'static str, now: Timestamp) -> u64;
}

/// Who makes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The key.
    pub key: &'static str,
    /// The tier, of those that the limit has.
    pub tier: Option<&'static str>,
}

/// A quota of one caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// The quota.
    pub quota: Quota,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
}

/// The quotas of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Of callers without a tier.
    pub base: Quota,
    /// Of each tier.
    pub tiers: Vec<(&'static str, Quota)>,
}

impl Quotas {
    /// The quota of a tier, or of callers without one.
    #[must_use]
    pub fn of(&self, tier: Option<&str>) -> Quota {
        let named = |tier| self.tiers.iter().find(|(name, _)| *name == tier);
        tier.and_then(named).map_or(self.base, |(_, quota)| *quota)
    }
}

/// Judges `cases` generated histories.
///
/// # Panics
///
/// If what happened breaks the promise. The message holds the shortest such history found.
pub fn moving<S: Moving>(
    kind: AlgorithmKind,
    cases: u32,
    make: impl Fn(AlgorithmKind, &Quotas, Timestamp) -> S,
) {
    let mut runner = TestRunner::new(strategy::cases(cases));
    let outcome = runner.run(&history::histories(kind), |history| {
        let mut subject = make(kind, &history.quotas, history.start);
        Course::run(kind, &history, &mut subject).map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, history)) => panic!("{kind}: {reason}\nin {history}"),
        Err(TestError::Abort(reason)) => panic!("no histories of {kind}: {reason}"),
    }
}

impl fmt::Display for Quotas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.base)?;
        self.tiers.iter().try_for_each(|(name, quota)| write!(f, ", {name} {quota}"))
    }
}
