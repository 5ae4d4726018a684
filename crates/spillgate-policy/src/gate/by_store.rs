//! Deciding by the limits of the store, beside which others may follow load.

use super::adaptive::of_store;
use super::{Active, Gate, Outcome};
use crate::Error;
use crate::store::Store;

impl<S: Store> Gate<S> {
    /// Lets the store decide about its limits.
    pub(super) async fn decide_by_store(
        &self,
        active: &Active<S::Limits>,
        outcome: &mut Outcome<'_>,
    ) -> Result<(), Error> {
        if active.policy.has_holds {
            return self.hold_and_decide(active, outcome).await;
        }
        let spends = of_store(&active.policy, &mut outcome.spends);
        match spends.is_empty() {
            true => Ok(()),
            false => self.store.decide(&active.limits, spends).await,
        }
    }

    /// The same without waiting, if the store can. Otherwise nothing has happened.
    #[inline]
    pub(super) fn decide_by_store_now(
        &self,
        active: &Active<S::Limits>,
        outcome: &mut Outcome<'_>,
    ) -> Option<Result<(), Error>> {
        if active.policy.has_holds {
            return self.hold_and_decide_now(active, outcome);
        }
        let spends = of_store(&active.policy, &mut outcome.spends);
        match spends.is_empty() {
            true => Some(Ok(())),
            false => self.store.decide_now(&active.limits, spends),
        }
    }
}
