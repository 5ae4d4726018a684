//! What was spent in advance, kept where every node can settle it.

use std::sync::Arc;
use std::time::Duration;

use spillgate_policy::Error;
use spillgate_policy::store::{Settlement, Spend};

use super::RedisStore;
use super::core::Caller;
use super::limits::{Limit, RedisLimits, refused, unanswered};
use crate::Name;
use crate::counted::Counted;
use crate::engine::wire::{Deposit, Paid};
use crate::engine::{Engine, EngineError, Fault};

impl<E: Engine> RedisStore<E> {
    /// Keeps a spend under an id.
    pub(super) async fn keep(
        &self,
        limits: &RedisLimits,
        spend: &Spend,
        id: u128,
        lifetime: Duration,
    ) -> Result<(), EngineError> {
        let limit = limits.limit(spend.limit);
        // Not what it was given at run time, which may be taken away before it is settled.
        let Counted { terms, quota, .. } = *limit.counted(&spend.key);
        let deposit = Deposit {
            terms,
            quota,
            limit: limit.id(),
            caller: limit.caller(&spend.key),
            reserved: spend.cost,
            charge: self.paid(limit, spend),
            called: limit.name().to_owned(),
        };
        self.lease_of(limit, spend).into_iter().for_each(|place| self.leases.reserve(place));
        self.core.engine.deposit(self.deposit_of(id), &deposit.to_bytes(), lifetime).await
    }

    /// Takes out what was kept under an id, and settles it.
    ///
    /// Only what is out is settled, so that it never is twice. If the engine is lost between
    /// the two, what was spent stays spent.
    pub(super) async fn settle_kept(
        &self,
        limits: &RedisLimits,
        id: u128,
        actual: u64,
    ) -> Result<Option<Settlement>, Error> {
        let kept = self.core.engine.withdraw(self.deposit_of(id)).await.map_err(unanswered)?;
        let Some(kept) = kept else { return Ok(None) };
        let deposit = Deposit::from_bytes(&kept).map_err(Error::store)?;
        let settled = match self.depositor(limits, &deposit) {
            Some(caller) => {
                let (charged, reserved) = (deposit.charged(), deposit.reserved);
                // Of an unknown spend nobody knows what has been refilled: nothing is given
                // back.
                let actual = if charged.is_none() { actual.max(reserved) } else { actual };
                let settled = self.core.settle(caller.clone(), charged, reserved, actual).await;
                Some(match settled {
                    Err(why) if why.fault() == Fault::Overloaded => {
                        self.settle_later(caller, charged, reserved, actual)
                    }
                    settled => settled.map_err(|why| refused(&deposit.called, &lost(&why)))?,
                })
            }
            None => None,
        };
        Ok(Some(Settlement { limit: deposit.called, reserved: deposit.reserved, settled }))
    }

    /// Who has made a deposit, if its limit still counts the same things.
    fn depositor(&self, limits: &RedisLimits, deposit: &Deposit) -> Option<Caller> {
        let limit = Arc::clone(limits.with_id(deposit.limit)?);
        let (name, own) = (deposit.caller, Counted::by(deposit.terms, deposit.quota).ok()?);
        let given = self.core.given.of(name, self.core.local());
        let tier = limit.tier_with(&deposit.quota);
        Some(Caller { limit, name, tier, own, given })
    }

    /// What a spend was counted by, if it is anything that nodes share.
    fn paid(&self, limit: &Limit, spend: &Spend) -> Option<Paid> {
        let charged = spend.decision.and_then(|decision| decision.spent())?;
        let own = *limit.counted(&spend.key);
        let given = self.core.given.last(limit.caller(&spend.key)).flatten();
        let by_call = spend.quota.as_deref().map(|call| {
            let (quota, algorithm) = (call.quota(), call.bucket().into());
            Counted { quota, algorithm, ..limit.base }
        });
        let mut known = by_call.into_iter().chain([own]).chain(given);
        let counted = known.find(|counted| counted.algorithm == charged.algorithm)?;
        Some(Paid::new(&counted, &charged))
    }

    fn deposit_of(&self, id: u128) -> Name {
        self.deposits.caller(&id.to_be_bytes())
    }
}

/// Why nobody knows whether something was settled.
fn lost(why: &EngineError) -> String {
    format!("{why}; whether the reservation was settled is not known, and it cannot be again")
}
