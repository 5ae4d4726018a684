//! Asking limits by name, several of them together.

use smallvec::SmallVec;

use super::manage::find;
use super::{Gate, Outcome, Spends};
use crate::Error;
use crate::store::{Spend, Store};

/// A cost under one limit, for a caller given by its parts.
#[derive(Clone, Copy)]
pub struct LimitCheck<'a> {
    /// The limit's name.
    pub limit: &'a str,
    /// One value for each part of the limit's `per`, written as in an override.
    pub values: &'a [&'a str],
    /// How much: 0 only looks.
    pub cost: u64,
}

impl<S: Store> Gate<S> {
    /// Spends on several limits, or, if any that enforces denies, on none. Limits in shadow
    /// spend only if the others pass, and never change the answer.
    ///
    /// The outcome tells of the limits in the order of the checks; of one that is denied,
    /// those in shadow are left out.
    ///
    /// # Errors
    ///
    /// As for [`check_limit`](Self::check_limit). Then nothing is spent.
    pub async fn check_limits(&self, checks: &[LimitCheck<'_>]) -> Result<Outcome<'static>, Error> {
        let active = self.active();
        let policy = &active.policy;
        let mut spends = Spends::with_capacity(checks.len());
        for check in checks {
            let (limit, key) = find(policy, check.limit, check.values)?;
            let spend = Spend::new(limit, key, check.cost);
            spends.push(spend.in_mode(policy.rules[limit].mode));
        }
        let mut order: SmallVec<[usize; 4]> = (0..spends.len()).collect();
        if spends.len() > 1 {
            order.sort_by_key(|place| policy.rules[spends[*place].limit].turn());
            spends = order.iter().map(|place| spends[*place].clone()).collect();
        }
        let mut outcome = Outcome::new(policy);
        outcome.spends = spends;
        self.decide(&active.limits, &mut outcome).await?;
        if order.len() > 1 {
            let mut asked: Vec<_> = order.into_iter().zip(outcome.spends.drain(..)).collect();
            asked.sort_unstable_by_key(|(place, _)| *place);
            outcome.spends = asked.into_iter().map(|(_, spend)| spend).collect();
        }
        Ok(outcome.take())
    }
}

/// Values may be secrets, so they are not shown.
impl std::fmt::Debug for LimitCheck<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LimitCheck")
            .field("limit", &self.limit)
            .field("cost", &self.cost)
            .finish_non_exhaustive()
    }
}
