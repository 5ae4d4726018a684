//! Asking limits by name, several of them together.

use std::sync::Arc;

use smallvec::SmallVec;
use tollgate::Decision;

use super::manage::find;
use super::{Active, Answer, Gate, Passage};
use crate::store::{Charge, Store};
use crate::{Caller, Error, Mode};

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
    /// The passage tells of the limits in the order of the checks; of one that is denied,
    /// those in shadow are left out.
    ///
    /// # Errors
    ///
    /// As for [`check_limit`](Self::check_limit). Then nothing is spent.
    pub async fn check_limits(&self, checks: &[LimitCheck<'_>]) -> Result<Passage, Error> {
        let active = self.active();
        let Active { policy, limits, .. } = &**active;
        let mut charges = Vec::with_capacity(checks.len());
        for check in checks {
            let (limit, key) = find(policy, check.limit, check.values)?;
            charges.push(Charge::new(limit, key, check.cost));
        }
        let is_shadow = |charge: &Charge| policy.rules[charge.limit].mode == Mode::Shadow;
        let mut order: SmallVec<[usize; 4]> = (0..charges.len()).collect();
        if charges.len() > 1 {
            // Shadow at the end; of each, the most shared last, where a race is lost most often.
            order.sort_by_key(|place| {
                let charge: &Charge = &charges[*place];
                (is_shadow(charge), policy.rules[charge.limit].sharing())
            });
            charges = order.iter().map(|place| charges[*place].clone()).collect();
        }
        let enforcing = charges.partition_point(|charge| !is_shadow(charge));
        let (enforced, shadow) = charges.split_at_mut(enforcing);
        if !enforced.is_empty() {
            self.store.decide(limits, enforced).await?;
        }
        let denied = enforced.iter().any(Charge::is_denied);
        let answer = if denied { Answer::Denied } else { Answer::Allowed };
        let mut passage = Passage::new(Arc::clone(policy), &Caller::Anonymous, answer);
        if !denied {
            for charge in shadow {
                let decided = self.store.decide(limits, std::slice::from_mut(charge)).await;
                passage.shadow_error = decided.err().or(passage.shadow_error);
            }
        }
        if charges.len() > 1 {
            let mut asked: Vec<_> = order.into_iter().zip(charges).collect();
            asked.sort_unstable_by_key(|(place, _)| *place);
            charges = asked.into_iter().map(|(_, charge)| charge).collect();
        }
        passage.charges = charges;
        Ok(passage)
    }

    /// Replaces what an allowed passage cost under its only limit by the actual cost: takes
    /// what is missing, also beyond the burst, or gives back what was too much. Tells what
    /// is left then; `None` if the limit has gone since, or counts something else, so that
    /// the cost stands.
    ///
    /// To be called once for each passage: nothing remembers that it was.
    ///
    /// # Errors
    ///
    /// If the store could not answer.
    pub async fn settle_actual(
        &self,
        passage: &Passage,
        actual: u64,
    ) -> Result<Option<Decision>, Error> {
        let active = self.active();
        let [charge] = &passage.charges[..] else { return Ok(None) };
        let Some((limit, key)) = active.policy.place_of(passage.policy(), charge) else {
            return Ok(None);
        };
        // A limit in shadow that would have denied took nothing.
        let reserved = if charge.is_allowed() { charge.cost } else { 0 };
        self.correct(&active.limits, limit, key, reserved, actual).await.map(Some)
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
