//! Settles the cost of a request by its response.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use smallvec::SmallVec;
use spillgate::Settled;
use spillgate::adaptive::Ending;

use super::{Gate, Outcome, at_once};
use crate::Error;
use crate::store::{Spend, Store};

impl<S: Store> Gate<S> {
    /// Replaces the cost of an allowed request with the actual cost of its response, as its limits
    /// say: debits what is missing, into debt if necessary, or refunds what has not been refilled
    /// since.
    ///
    /// The outcome then has the state afterwards. Without this call, the cost stands, and so it does
    /// under a limit about which the store could not answer.
    pub async fn settle(
        &self,
        outcome: &mut Outcome<'_>,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> SettledResponse {
        let mut settled = SettledResponse::default();
        if !outcome.needs_settling() {
            return settled;
        }
        outcome.record(ending(status), self.store.now());
        let policy = Arc::clone(outcome.policy());
        let settles = |spend: &Spend| policy.rules[spend.limit].settle.as_ref();
        // Before the limits are held: a closure may call the gate.
        let is_own = !outcome.has_receipt;
        let actual = |spend: &Spend| settles(spend).filter(|_| is_own)?.actual(status, headers);
        let actuals: SmallVec<[_; 4]> = outcome.spends.iter().map(actual).collect();
        let active = self.active();
        for (spend, actual) in outcome.spends.iter_mut().zip(actuals) {
            let Some((limit, key)) = active.policy.place_of(&policy, spend) else { continue };
            self.count_status(&active, limit, spend, status);
            let Some(actual) = actual else { continue };
            let spent = Spend { limit, key, cost: spend.spent(), ..spend.clone() };
            match self.store.settle(&active.limits, &spent, actual).await {
                Ok(Settled { left, uncharged: 0 }) => spend.settled(actual, left),
                Ok(Settled { left, uncharged: amount }) => {
                    spend.settled(actual, left);
                    let limit = Arc::clone(&policy.rules[spend.limit].name);
                    settled.uncharged.push(Uncharged { limit, amount });
                }
                Err(error) => {
                    settled.error.get_or_insert(error);
                }
            }
        }
        settled
    }

    /// [Settles](Self::settle) at once, if the store is in this process or has nothing to settle.
    /// Otherwise nothing has happened.
    pub fn settle_now(
        &self,
        outcome: &mut Outcome<'_>,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Option<SettledResponse> {
        if self.store.is_in_process() || !outcome.changes_cost() {
            at_once(self.settle(outcome, status, headers))
        } else {
            None
        }
    }

    /// Takes back an allowed request that did not go ahead, since its client did not
    /// [wait](Outcome::wait). Only the last in a queue is refunded: any other would leave a gap
    /// that nobody may fill.
    pub fn cancel(&self, mut outcome: Outcome<'_>) {
        if !outcome.is_allowed() || outcome.has_receipt {
            return;
        }
        let active = self.active();
        for spend in std::mem::take(&mut outcome.spends) {
            let place = active.policy.place_of(outcome.policy(), &spend);
            let is_spent = spend.is_allowed() && !outcome.policy().rules[spend.limit].is_hold;
            let Some((limit, key)) = place.filter(|_| is_spent) else { continue };
            match active.adaptive.get(limit) {
                Some(live) => live.give_back(&Spend { key, ..spend }, self.store.now()),
                None => self.store.cancel(&active.limits, Spend { limit, key, ..spend }),
            }
        }
    }
}

/// What a status says of the service.
fn ending(status: StatusCode) -> Ending {
    if status.is_server_error() { Ending::Failed } else { Ending::Ok }
}

/// What became of the cost of a response.
#[derive(Debug, Default)]
#[must_use = "the store may have failed"]
#[non_exhaustive]
pub struct SettledResponse {
    /// What exceeds the [maximum debt](crate::Limit::max_debt) of a limit, and was not charged.
    pub uncharged: Vec<Uncharged>,
    /// Why the store could not settle all limits: the first error. The other limits are settled.
    pub error: Option<Error>,
}

/// The part of a cost beyond the limit's [maximum debt](crate::Limit::max_debt).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Uncharged {
    /// The limit's name.
    pub limit: Arc<str>,
    /// How much.
    pub amount: u64,
}
