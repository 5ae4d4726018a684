//! Reservations kept in Redis, so that any node can settle them.

use std::sync::Arc;
use std::time::Duration;

use spillgate_policy::Error;
use spillgate_policy::store::{Settlement, Spend};

use super::RedisStore;
use super::core::{Caller, StoreCore};
use super::limits::{Limit, RedisLimits, limit_error, store_error};
use crate::Name;
use crate::backend::{Backend, BackendError, Fault, Result};
use crate::effective_quota::EffectiveQuota;
use crate::script::{Deposit, Paid};
use crate::to_the_end::to_the_end;

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
        let deposit = Deposit {
            // Not the override, which may be removed before it is settled.
            terms: limit.quota_for(&spend.key).terms,
            limit: limit.id(),
            caller: limit.caller(&spend.key),
            reserved: spend.cost,
            paid: self.paid(limit, spend),
            called: limit.name().to_owned(),
        };
        self.lease_of(limit, spend).into_iter().for_each(|lease| self.leases.reserve(lease));
        self.core.backend.deposit(self.deposit_of(id), &deposit.to_bytes(), lifetime).await
    }

    /// Takes a reservation out of Redis and settles it, also if nobody waits for it any more.
    pub(super) async fn take_deposit(
        &self,
        limits: &RedisLimits,
        id: u128,
        actual: u64,
    ) -> Result<Option<Settlement>, Error> {
        let (core, name, limits) = (Arc::clone(&self.core), self.deposit_of(id), limits.all());
        let settle = async move { core.settle_deposit(&limits, name, actual).await };
        to_the_end(settle, drop).await.map_err(store_error)?
    }

    /// What a spend has paid, if it was made under a quota that nodes share.
    fn paid(&self, limit: &Limit, spend: &Spend) -> Option<Paid> {
        let spent = spend.decision.and_then(|decision| decision.spent())?;
        let own = *limit.quota_for(&spend.key);
        let last = self.core.overrides.last(limit.caller(&spend.key)).flatten();
        let mut known = limit.quota_of_call(spend).into_iter().chain([own]).chain(last);
        let effective = known.find(|effective| effective.algorithm == spent.algorithm)?;
        Some(Paid { quota: effective.quota, word: spent.word, at: spent.at })
    }

    fn deposit_of(&self, id: u128) -> Name {
        self.deposits.caller(&id.to_be_bytes())
    }
}

impl<B: Backend> StoreCore<B> {
    /// Takes a reservation out of Redis and settles it.
    ///
    /// It is taken out first, so that it is settled at most once. If the connection is lost in
    /// between, the reserved cost stays spent.
    async fn settle_deposit(
        self: &Arc<Self>,
        limits: &[Arc<Limit>],
        name: Name,
        actual: u64,
    ) -> Result<Option<Settlement>, Error> {
        let kept = self.backend.withdraw(name).await.map_err(store_error)?;
        let Some(kept) = kept else { return Ok(None) };
        let deposit = Deposit::from_bytes(&kept).map_err(Error::store)?;
        let settled = match self.depositor(limits, &deposit) {
            Some(caller) => {
                let (spent, reserved) = (deposit.spent(), deposit.reserved);
                // Without the spend it is unknown what was refilled: nothing is given back.
                let actual = if spent.is_none() { actual.max(reserved) } else { actual };
                Some(match self.settle(caller.clone(), spent, reserved, actual).await {
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
    fn depositor(&self, limits: &[Arc<Limit>], deposit: &Deposit) -> Option<Caller> {
        let limit = Arc::clone(limits.iter().find(|limit| limit.id() == deposit.limit)?);
        let by_policy = match deposit.spent() {
            Some(spent) if limit.is_by_call => {
                EffectiveQuota { algorithm: spent.algorithm, ..limit.base }
            }
            _ => limit.quota_or_override_with(&deposit.terms).unwrap_or(limit.base),
        };
        let name = deposit.caller;
        let by_override = self.overrides.get(name, self.local());
        Some(Caller { limit, name, by_policy, by_override })
    }
}

/// The outcome of a settlement is unknown.
fn lost(why: &BackendError) -> String {
    format!("{why}; whether the reservation was settled is not known, and it cannot be again")
}
