//! Correcting what a request cost when its response is there.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use smallvec::SmallVec;
use tollgate::Decision;

use super::{Gate, Passage, at_once};
use crate::store::{Charge, Store};
use crate::{Error, Key};

impl<S: Store> Gate<S> {
    /// Corrects what an allowed request cost by its response, as its limits say: takes
    /// what is missing, also beyond the burst, or gives back what was too much.
    ///
    /// The passage then tells what is left. If this is never called, what the request
    /// cost stands.
    ///
    /// # Errors
    ///
    /// If the store could not answer.
    pub async fn settle(
        &self,
        passage: &mut Passage<'_>,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<(), Error> {
        if !passage.needs_settling() {
            return Ok(());
        }
        let policy = Arc::clone(passage.policy());
        let settles = |charge: &Charge| policy.rules[charge.limit].settle.as_ref();
        // Before the limits are held: a closure may call the gate.
        let actual = |charge: &Charge| settles(charge)?.actual(status, headers);
        let actuals: SmallVec<[_; 4]> = passage.charges.iter().map(actual).collect();
        let active = self.active();
        let mut settled = Ok(());
        for (charge, actual) in passage.charges.iter_mut().zip(actuals) {
            let Some(actual) = actual else { continue };
            let Some((limit, key)) = active.policy.place_of(&policy, charge) else { continue };
            // A limit in shadow that would have denied, or could not decide, took nothing.
            let reserved = if charge.is_allowed() { charge.cost } else { 0 };
            match self.correct(&active.limits, limit, key, reserved, actual).await {
                // Settled again, it is settled already.
                Ok(decision) => {
                    *charge = Charge { cost: actual, decision: Some(decision), ..charge.clone() }
                }
                Err(error) => settled = Err(error),
            }
        }
        settled
    }

    /// Replaces what was spent in advance by the actual cost, and tells what is left.
    pub(super) async fn correct(
        &self,
        limits: &S::Limits,
        limit: usize,
        key: Key,
        reserved: u64,
        actual: u64,
    ) -> Result<Decision, Error> {
        self.store.settle(limits, &Charge::new(limit, key, actual), reserved).await
    }

    /// [Settles](Self::settle) at once, if the store is in this process. If it is not, nothing
    /// has happened.
    pub fn settle_now(
        &self,
        passage: &mut Passage<'_>,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Option<Result<(), Error>> {
        if self.store.is_in_process() {
            at_once(self.settle(passage, status, headers))
        } else {
            None
        }
    }

    /// Takes an allowed request back that did not go ahead, for one that was to
    /// [wait](Passage::wait) and was given up. What others have spent on since stays
    /// spent: only the last in line can leave without a gap that nobody may fill.
    pub fn cancel(&self, passage: &Passage<'_>) {
        if !passage.is_allowed() {
            return;
        }
        let active = self.active();
        for charge in passage.charges.iter().filter(|charge| charge.is_allowed()) {
            if let Some((limit, key)) = active.policy.place_of(passage.policy(), charge) {
                let charge = Charge { limit, key, ..charge.clone() };
                self.store.cancel(&active.limits, &charge);
            }
        }
    }
}
