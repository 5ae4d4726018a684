//! Reservations kept in Redis, so that any node can settle them.

use std::sync::Arc;
use std::time::Duration;

use spillgate_policy::Error;
use spillgate_policy::store::{Settlement, Spend};

use super::RedisStore;
use super::core::Caller;
use super::limits::{Limit, RedisLimits, limit_error, store_error};
use crate::Name;
use crate::backend::{Backend, BackendError, Fault, Result};
use crate::effective_quota::EffectiveQuota;
use crate::script::{Deposit, Paid};

impl<B: Backend> RedisStore<B> {
    /// Stores a reservation under an id.
    pub(super) async fn put_deposit(
        &self,
        limits: &RedisLimits,
        spend: &Spend,
        id: u128,
        lifetime: Duration,
    ) -> Result<()> {
        let limit = limits.limit(spend.limit);
        // Not the override, which may be removed before it is settled.
        let EffectiveQuota { terms, quota, .. } = *limit.quota_for(&spend.key);
        let deposit = Deposit {
            terms,
            quota,
            limit: limit.id(),
            caller: limit.caller(&spend.key),
            reserved: spend.cost,
            paid: self.paid(limit, spend),
            called: limit.name().to_owned(),
        };
        self.lease_of(limit, spend).into_iter().for_each(|lease| self.leases.reserve(lease));
        self.core.backend.deposit(self.deposit_of(id), &deposit.to_bytes(), lifetime).await
    }

    /// Takes a reservation out of Redis and settles it.
    ///
    /// It is taken out first, so that it is settled at most once. If the connection is lost in
    /// between, the reserved cost stays spent.
    pub(super) async fn take_deposit(
        &self,
        limits: &RedisLimits,
        id: u128,
        actual: u64,
    ) -> Result<Option<Settlement>, Error> {
        let kept = self.core.backend.withdraw(self.deposit_of(id)).await.map_err(store_error)?;
        let Some(kept) = kept else { return Ok(None) };
        let deposit = Deposit::from_bytes(&kept).map_err(Error::store)?;
        let settled = match self.depositor(limits, &deposit) {
            Some(caller) => {
                let (spent, reserved) = (deposit.spent(), deposit.reserved);
                // Without the spend it is unknown what was refilled: nothing is given back.
                let actual = if spent.is_none() { actual.max(reserved) } else { actual };
                let settled = self.core.settle(caller.clone(), spent, reserved, actual).await;
                Some(match settled {
                    Err(why) if why.fault() == Fault::Overloaded => {
                        self.settle_later(caller, spent, reserved, actual)
                    }
                    settled => settled.map_err(|why| limit_error(&deposit.called, &lost(&why)))?,
                })
            }
            None => None,
        };
        Ok(Some(Settlement { limit: deposit.called, reserved: deposit.reserved, settled }))
    }

    /// The caller of a reservation, if its limit still counts the same.
    fn depositor(&self, limits: &RedisLimits, deposit: &Deposit) -> Option<Caller> {
        let limit = Arc::clone(limits.with_id(deposit.limit)?);
        let (name, by_policy) =
            (deposit.caller, EffectiveQuota::by(deposit.terms, deposit.quota).ok()?);
        let by_override = self.core.overrides.get(name, self.core.local());
        let tier = limit.tier_with(&deposit.quota);
        Some(Caller { limit, name, tier, by_policy, by_override })
    }

    /// What a spend has paid, if it was made under a quota that nodes share.
    fn paid(&self, limit: &Limit, spend: &Spend) -> Option<Paid> {
        let spent = spend.decision.and_then(|decision| decision.spent())?;
        let own = *limit.quota_for(&spend.key);
        let last = self.core.overrides.last(limit.caller(&spend.key)).flatten();
        let mut known = limit.quota_of_call(spend).into_iter().chain([own]).chain(last);
        let effective = known.find(|effective| effective.algorithm == spent.algorithm)?;
        Some(Paid::new(&effective, &spent))
    }

    fn deposit_of(&self, id: u128) -> Name {
        self.deposits.caller(&id.to_be_bytes())
    }
}

/// The outcome of a settlement is unknown.
fn lost(why: &BackendError) -> String {
    format!("{why}; whether the reservation was settled is not known, and it cannot be again")
}
