//! Correcting what a request cost when its response is there.

use std::cmp::Ordering;

use http::{HeaderMap, StatusCode};

use super::{Gate, Passage, at_once};
use crate::store::{Charge, Store};
use crate::{Error, Key};

impl<S: Store> Gate<S> {
    /// Corrects what an allowed request cost by its response, as its limits say: takes
    /// what is missing, also beyond the burst, or gives back what was too much.
    ///
    /// If it is never called, what the request cost stands.
    ///
    /// # Errors
    ///
    /// If the store could not answer.
    pub async fn settle(
        &self,
        passage: &Passage,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<(), Error> {
        if !passage.needs_settling() {
            return Ok(());
        }
        let active = self.active();
        for charge in &passage.charges {
            let rule = &passage.policy().rules[charge.limit];
            let actual = rule.settle.as_ref().and_then(|settle| settle.actual(status, headers));
            // A limit in shadow that would have denied took nothing.
            let reserved = if charge.is_denied() { 0 } else { charge.cost };
            // The policy may have changed since.
            let limit = active.policy.rule(&rule.name);
            if let (Some(actual), Some(limit)) = (actual, limit) {
                self.correct(&active.limits, limit, &charge.key, reserved, actual).await?;
            }
        }
        Ok(())
    }

    /// Replaces what was spent in advance by the actual cost.
    pub(super) async fn correct(
        &self,
        limits: &S::Limits,
        limit: usize,
        key: &Key,
        reserved: u64,
        actual: u64,
    ) -> Result<(), Error> {
        let charge = |cost| Charge::new(limit, key.clone(), cost);
        match actual.cmp(&reserved) {
            Ordering::Greater => self.store.debit(limits, &charge(actual - reserved)).await,
            Ordering::Less => self.store.refund(limits, &charge(reserved - actual)).await,
            Ordering::Equal => Ok(()),
        }
    }

    /// [Settles](Self::settle) at once, if the store can: one in memory always does.
    pub fn settle_now(
        &self,
        passage: &Passage,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Option<Result<(), Error>> {
        at_once(self.settle(passage, status, headers))
    }

    /// Takes an allowed request back that did not go ahead, for one that was to
    /// [wait](Passage::wait) and was given up. What others have spent on since stays
    /// spent: only the last in line can leave without a gap that nobody may fill.
    pub fn cancel(&self, passage: &Passage) {
        let active = self.active();
        for charge in passage.charges.iter().filter(|charge| !charge.is_denied()) {
            let name = &passage.policy().rules[charge.limit].name;
            if let Some(limit) = active.policy.rule(name) {
                self.store.cancel(&active.limits, &Charge { limit, ..charge.clone() });
            }
        }
    }
}
