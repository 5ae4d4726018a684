//! Correcting what a request cost when its response is there.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use smallvec::SmallVec;
use spillgate::Settled;

use super::{Gate, Outcome, at_once};
use crate::Error;
use crate::store::{Spend, Store};

impl<S: Store> Gate<S> {
    /// Corrects what an allowed request cost by its response, as its limits say: takes
    /// what is missing, also beyond the burst, or gives back what was too much.
    ///
    /// What has been refilled since is not given back, and debts have a
    /// [bound](crate::Limit::max_debt): what could not be charged is told.
    ///
    /// The outcome then tells what is left. If this is never called, what the request
    /// cost stands.
    ///
    /// # Errors
    ///
    /// If the store could not answer.
    pub async fn settle(
        &self,
        outcome: &mut Outcome<'_>,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<Vec<Uncharged>, Error> {
        let mut uncharged = Vec::new();
        if !outcome.needs_settling() {
            return Ok(uncharged);
        }
        let policy = Arc::clone(outcome.policy());
        let settles = |spend: &Spend| policy.rules[spend.limit].settle.as_ref();
        // Before the limits are held: a closure may call the gate.
        let actual = |spend: &Spend| settles(spend)?.actual(status, headers);
        let actuals: SmallVec<[_; 4]> = outcome.spends.iter().map(actual).collect();
        let active = self.active();
        let mut settled = Ok(());
        for (spend, actual) in outcome.spends.iter_mut().zip(actuals) {
            let Some(actual) = actual else { continue };
            let Some((limit, key)) = active.policy.place_of(&policy, spend) else { continue };
            let spent = Spend { limit, key, cost: spend.spent(), ..spend.clone() };
            match self.store.settle(&active.limits, &spent, actual).await {
                Ok(Settled { left, uncharged: 0 }) => spend.settled(actual, left),
                Ok(Settled { left, uncharged: amount }) => {
                    spend.settled(actual, left);
                    let limit = Arc::clone(&policy.rules[spend.limit].name);
                    uncharged.push(Uncharged { limit, amount });
                }
                Err(error) => settled = Err(error),
            }
        }
        settled.map(|()| uncharged)
    }

    /// [Settles](Self::settle) at once, if the store is in this process. If it is not, nothing
    /// has happened.
    pub fn settle_now(
        &self,
        outcome: &mut Outcome<'_>,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Option<Result<Vec<Uncharged>, Error>> {
        if self.store.is_in_process() {
            at_once(self.settle(outcome, status, headers))
        } else {
            None
        }
    }

    /// Takes an allowed request back that did not go ahead, for one that was to
    /// [wait](Outcome::wait) and was given up. What others have spent on since stays
    /// spent: only the last in line can leave without a gap that nobody may fill.
    pub fn cancel(&self, mut outcome: Outcome<'_>) {
        if !outcome.is_allowed() {
            return;
        }
        let active = self.active();
        for spend in std::mem::take(&mut outcome.spends) {
            let place = active.policy.place_of(outcome.policy(), &spend);
            if let Some((limit, key)) = place.filter(|_| spend.is_allowed()) {
                self.store.cancel(&active.limits, Spend { limit, key, ..spend });
            }
        }
    }
}

/// What a request cost and was not charged, since its caller would have owed more than the
/// limit's [bound](crate::Limit::max_debt).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Uncharged {
    /// The limit's name.
    pub limit: Arc<str>,
    /// How much.
    pub amount: u64,
}
