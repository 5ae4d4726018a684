//! Costs that are known afterwards: what could not be charged, and what the store could not
//! settle, is counted and logged here for every protocol.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use spillgate::Settled;
use spillgate_policy::store::{Settlement, Store};
use spillgate_policy::{Error, Outcome, Receipt, SettledResponse};

use crate::Enforcer;

impl<S: Store, R> Enforcer<S, R> {
    /// Corrects the cost of a request by its response without waiting, if the store is in this
    /// process. See [`Gate::settle`](spillgate_policy::Gate::settle).
    pub fn try_settle(&self, outcome: &mut Outcome<'_>, status: StatusCode, headers: &HeaderMap) {
        if !outcome.needs_settling() {
            return;
        }
        if let Some(settled) = self.gate.settle_now(outcome, status, headers) {
            self.note_response(&settled);
            self.note_steps_of(outcome);
        }
    }

    /// Corrects the cost of a request by its response. See
    /// [`Gate::settle`](spillgate_policy::Gate::settle).
    pub async fn settle(&self, outcome: &mut Outcome<'_>, status: StatusCode, headers: &HeaderMap) {
        self.note_response(&self.gate.settle(outcome, status, headers).await);
        self.note_steps_of(outcome);
    }

    fn note_response(&self, settled: &SettledResponse) {
        settled.uncharged.iter().for_each(|it| self.note_uncharged(&it.limit, it.amount));
        settled.error.iter().for_each(|error| self.store_failed(error));
        self.note_bans();
    }

    /// Replaces what was spent under a limit in advance by the actual cost. See
    /// [`Gate::settle_limit`](spillgate_policy::Gate::settle_limit).
    ///
    /// # Errors
    ///
    /// If the limit or values do not fit the policy, or the store could not answer.
    pub async fn settle_limit(
        &self,
        limit: &str,
        values: &[&str],
        reserved: u64,
        actual: u64,
    ) -> Result<Settled, Error> {
        let settled = self.gate.settle_limit(limit, values, reserved, actual).await;
        let settled = settled.inspect_err(|error| self.note_error(error))?;
        self.note_uncharged(limit, settled.uncharged);
        Ok(settled)
    }

    /// Settles a receipt. See
    /// [`Gate::settle_actual`](spillgate_policy::Gate::settle_actual).
    ///
    /// # Errors
    ///
    /// If the store could not answer.
    pub async fn settle_actual(&self, receipt: Receipt, actual: u64) -> Result<Settlement, Error> {
        let settlement = self.gate.settle_actual(receipt, actual).await;
        let settlement = settlement.inspect_err(|error| self.note_error(error))?;
        self.note_settlement(&settlement);
        Ok(settlement)
    }

    /// Leaves a receipt with the store. See [`Gate::deposit`](spillgate_policy::Gate::deposit).
    ///
    /// # Errors
    ///
    /// If the store could not answer.
    pub async fn deposit(
        &self,
        receipt: &Receipt,
        id: u128,
        lifetime: Duration,
    ) -> Result<bool, Error> {
        let deposited = self.gate.deposit(receipt, id, lifetime).await;
        deposited.inspect_err(|error| self.note_error(error))
    }

    /// Settles what any node has deposited. See
    /// [`Gate::settle_deposit`](spillgate_policy::Gate::settle_deposit).
    ///
    /// # Errors
    ///
    /// If the store could not answer.
    pub async fn settle_deposit(&self, id: u128, actual: u64) -> Result<Option<Settlement>, Error> {
        let settlement = self.gate.settle_deposit(id, actual).await;
        let settlement = settlement.inspect_err(|error| self.note_error(error))?;
        settlement.iter().for_each(|settlement| self.note_settlement(settlement));
        Ok(settlement)
    }

    fn note_settlement(&self, settlement: &Settlement) {
        let uncharged = settlement.settled.map_or(0, |settled| settled.uncharged);
        self.note_uncharged(&settlement.limit, uncharged);
    }

    /// Counts and logs what was not charged, since the caller would have owed more than the
    /// limit's [bound](spillgate_policy::Limit::max_debt).
    fn note_uncharged(&self, limit: &str, amount: u64) {
        if amount == 0 {
            return;
        }
        if let Some(meter) = &self.meter {
            meter.uncharged(limit, amount);
        }
        self.log.uncharged(limit, amount);
    }
}
