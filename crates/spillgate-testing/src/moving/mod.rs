//! State that changes: tiers, overrides, debts, reservations, reloads and restarts.
//!
//! Whatever happens, a caller must be admitted no more than by the model, and at most one token
//! less: translations from one quota to another round up.

mod history;
#[cfg(feature = "gate")]
mod in_gate;
#[cfg(feature = "gate")]
mod load;
mod model;

use std::fmt;

use proptest::test_runner::{TestCaseError, TestError, TestRunner};
use spillgate::{AlgorithmKind, Quota, Timestamp};

pub use self::history::{Change, MovingHistory};
#[cfg(feature = "gate")]
pub use self::in_gate::MovingGate;
#[cfg(feature = "gate")]
pub use self::load::{policy_under_load, under_load};
use self::model::model;
use crate::strategy;

/// Anything that decides under one limit with tiers, and can be reconfigured.
pub trait Moving {
    /// Spends `cost` for a caller of a tier if allowed; returns whether it was, and what remains.
    fn check(&mut self, caller: Caller, cost: u64, now: Timestamp) -> (bool, u64);

    /// The same for a cost that is [settled](Self::settle) later under this number.
    fn reserve(&mut self, caller: Caller, cost: u64, number: usize, now: Timestamp) -> bool;

    /// Replaces what was reserved under a number, if anything, with the actual cost.
    fn settle(&mut self, number: usize, actual: u64, now: Timestamp);

    /// Spends `amount` unconditionally, for a caller without a tier.
    fn debit(&mut self, key: &'static str, amount: u64, now: Timestamp);

    /// Refunds `amount` to a caller without a tier.
    fn refund(&mut self, key: &'static str, amount: u64, now: Timestamp);

    /// Forgets what a caller has spent.
    fn reset(&mut self, key: &'static str, now: Timestamp);

    /// Sets or removes a caller's own quota.
    fn set_override(&mut self, key: &'static str, quota: Option<Quota>, now: Timestamp);

    /// Replaces the quotas. False if what follows cannot be compared: a store that translates
    /// states lazily leaves those of denied callers under their old quota.
    fn reload(&mut self, quotas: &Quotas, now: Timestamp) -> bool;

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

/// The quotas of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Of callers without a tier.
    pub base: Quota,
    /// Of each tier.
    pub tiers: Vec<(&'static str, Quota)>,
}

impl Quotas {
    /// All quotas, the limit's own first.
    #[must_use]
    pub fn all(&self) -> Vec<Quota> {
        std::iter::once(self.base).chain(self.tiers.iter().map(|(_, quota)| *quota)).collect()
    }
}

/// Compares `cases` generated histories with the model.
///
/// # Panics
///
/// If more is admitted than by the model, or less by more than a token. The message holds the
/// shortest such history found.
pub fn moving<S: Moving>(
    kind: AlgorithmKind,
    cases: u32,
    make: impl Fn(AlgorithmKind, &Quotas, Timestamp) -> S,
) {
    let mut runner = TestRunner::new(strategy::cases(cases));
    let outcome = runner.run(&history::histories(kind), |history| {
        let mut subject = make(kind, &history.quotas, history.start);
        let mut model = model(kind, &history.quotas).map_err(TestCaseError::fail)?;
        for (number, (now, change)) in history.changes.iter().enumerate() {
            let goes_on = change.make(number, *now, &mut subject, &mut *model);
            let goes_on = goes_on.map_err(|why| {
                TestCaseError::fail(format!("{}. at {now} {change:?}: {why}", number + 1))
            })?;
            if !goes_on {
                break;
            }
        }
        Ok(())
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
