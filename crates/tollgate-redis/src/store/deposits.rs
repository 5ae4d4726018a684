//! What was spent in advance, kept where every node can settle it.

use std::sync::Arc;
use std::time::Duration;

use tollgate_policy::Error;
use tollgate_policy::store::{Charge, Settlement};

use super::RedisStore;
use super::core::Caller;
use super::limits::{RedisLimits, refused};
use super::terms::Counted;
use crate::Name;
use crate::engine::wire::Deposit;
use crate::engine::{Engine, EngineError};

impl<E: Engine> RedisStore<E> {
    /// Keeps a charge under an id.
    pub(super) async fn keep(
        &self,
        limits: &RedisLimits,
        charge: &Charge,
        id: u128,
        lifetime: Duration,
    ) -> Result<(), EngineError> {
        let limit = limits.limit(charge.limit);
        let deposit = Deposit {
            // Not what it was given at run time, which may be taken away before it is settled.
            terms: limit.counted(&charge.key).terms,
            limit: limit.id(),
            caller: limit.caller(&charge.key),
            reserved: charge.cost,
            called: limit.name().to_owned(),
        };
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
        let kept = self.core.engine.withdraw(self.deposit_of(id)).await.map_err(Error::store)?;
        let Some(kept) = kept else { return Ok(None) };
        let deposit = Deposit::from_bytes(&kept).map_err(Error::store)?;
        let left = match self.depositor(limits, &deposit) {
            Some(caller) => {
                let settled = self.core.settle(caller, deposit.reserved, actual).await;
                Some(settled.map_err(|why| refused(&deposit.called, &lost(&why)))?)
            }
            None => None,
        };
        Ok(Some(Settlement { limit: deposit.called, reserved: deposit.reserved, left }))
    }

    /// Who has made a deposit, if its limit still counts the same things.
    fn depositor(&self, limits: &RedisLimits, deposit: &Deposit) -> Option<Caller> {
        let limit = Arc::clone(limits.with_id(deposit.limit)?);
        let (name, own) = (deposit.caller, Counted::of(deposit.terms).ok()?);
        let given = self.core.given.of(name, self.core.local());
        Some(Caller { limit, name, own, given, quota: None })
    }

    fn deposit_of(&self, id: u128) -> Name {
        self.deposits.caller(&id.to_be_bytes())
    }
}

/// Why nobody knows whether something was settled.
fn lost(why: &EngineError) -> String {
    format!("{why}; whether the reservation was settled is not known, and it cannot be again")
}
