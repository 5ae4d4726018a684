use std::sync::Arc;
use std::time::Duration;

use spillgate::Decision;

use super::{Gate, Outcome};
use crate::policy::Rule;
use crate::store::{Settlement, Spend, Store};
use crate::{Error, Key, Policy};

/// A reservation under one limit, to be [settled](Gate::settle_actual) when the cost is known.
///
/// It holds the caller's key and nothing of the policy, so many can be kept for long.
#[must_use]
pub struct Receipt {
    limit: Arc<str>,
    since: u32,
    key: Key,
    tier: Option<Box<str>>,
    reserved: u64,
    /// What was decided then: in a box, since many receipts are kept for long.
    decision: Option<Box<Decision>>,
}

impl Outcome<'_> {
    /// What an allowed outcome has spent under its only limit; `None` if it is not allowed, not
    /// about one limit, or that is on concurrency or follows load, which
    /// [`Gate::expect_reservable`] tells before.
    ///
    /// There is one receipt, and what it holds is no longer the outcome's: neither
    /// [settled](Gate::settle) nor [cancelled](Gate::cancel) with it.
    pub fn receipt(&mut self) -> Option<Receipt> {
        let [spend] = &self.spends[..] else { return None };
        let rule = &self.policy().rules[spend.limit];
        if !self.is_allowed() || self.has_receipt || rule.is_hold || rule.adaptive.is_some() {
            return None;
        }
        let receipt = Receipt::new(rule, spend);
        self.has_receipt = true;
        Some(receipt)
    }
}

impl Receipt {
    fn new(rule: &Rule, spend: &Spend) -> Self {
        Self {
            limit: Arc::clone(&rule.name),
            since: rule.since,
            key: spend.key.clone(),
            tier: rule.tier_name(&spend.key).map(Into::into),
            reserved: spend.spent(),
            decision: spend.decision.map(Box::new),
        }
    }

    /// The limit's name.
    #[must_use]
    pub fn limit(&self) -> &str {
        &self.limit
    }

    /// The spend that it is of, if its limit still counts the same things.
    fn spend(&self, policy: &Policy) -> Option<Spend> {
        let (limit, key) =
            policy.still(&self.limit, self.since, self.key.clone(), self.tier.as_deref())?;
        let decision = self.decision.as_deref().copied();
        Some(Spend { decision, ..Spend::new(limit, key, self.reserved) })
    }
}

impl<S: Store> Gate<S> {
    /// Replaces a reservation with the actual cost: debits what is missing, into debt if
    /// necessary, or refunds what has not been refilled since. Nothing is
    /// [settled](Settlement::settled) if the limit was removed or has begun afresh since.
    ///
    /// # Errors
    ///
    /// If the store could not answer.
    pub async fn settle_actual(&self, receipt: Receipt, actual: u64) -> Result<Settlement, Error> {
        let active = self.active();
        let settled = match receipt.spend(&active.policy) {
            Some(spend) => Some(self.store.settle(&active.limits, &spend, actual).await?),
            None => None,
        };
        Ok(Settlement { limit: receipt.limit.to_string(), reserved: receipt.reserved, settled })
    }

    /// Leaves a receipt with the store, where every node that shares it can
    /// [settle](Self::settle_deposit) it by an id that nobody can guess. Returns false if the
    /// store does not take it: one in memory does not.
    ///
    /// # Errors
    ///
    /// If the store could not answer. It may have the receipt nevertheless: do not settle it too.
    pub async fn deposit(
        &self,
        receipt: &Receipt,
        id: u128,
        lifetime: Duration,
    ) -> Result<bool, Error> {
        let active = self.active();
        let Some(spend) = receipt.spend(&active.policy) else { return Ok(false) };
        self.store.deposit(&active.limits, &spend, id, lifetime).await
    }

    /// [Settles](Self::settle_actual) what any node has [deposited](Self::deposit), at most
    /// once; `None` if there is no deposit with that id any more.
    ///
    /// # Errors
    ///
    /// If the store could not answer. Ask again to learn whether it is still there.
    pub async fn settle_deposit(&self, id: u128, actual: u64) -> Result<Option<Settlement>, Error> {
        self.store.settle_deposit(&self.active().limits, id, actual).await
    }
}

// The key may be a secret, so it is not shown.
debug_fields!(self: Receipt { limit: self.limit, reserved: self.reserved });
