//! The store: limits shared by many nodes through Redis.

mod account;
mod acquired;
mod admin;
mod agreement;
mod batches;
mod cache;
mod core;
mod decide;
mod deposits;
mod edits;
mod hold;
mod last_words;
mod lease_source;
mod leased;
mod limits;
mod local_tables;
mod nodes;
mod outage;
mod overrides;
mod pending;
mod redis_store;
mod refunds;
mod report;
mod returning;
mod settings;
mod settle;
mod share;
mod strikes;
mod unreported;

use std::sync::Arc;
use std::time::Duration;

use spillgate::{Decision, Quota, Settled, Timestamp};
use spillgate_policy::store::{
    BanRule, BanStart, Edit, EditLog, LimitSpec, PermitId, Permits, Settlement, Spend, Store,
    StrikeCall, Usage,
};
use spillgate_policy::{Error, Key};
use tokio::runtime::Handle;

pub use self::agreement::Agreement;
pub(crate) use self::core::StoreCore;
pub use self::limits::RedisLimits;
use self::limits::store_error;
use self::local_tables::{LocalTables, share_spend};
pub use self::redis_store::RedisStore;
pub use self::settings::Settings;
use crate::backend::{Backend, Fault, PermitOp};
use crate::flow::of_limit;
use crate::hold::permits_of;

impl<B: Backend> Store for RedisStore<B> {
    type Limits = RedisLimits;

    fn is_in_process(&self) -> bool {
        false
    }

    fn open(&self, limits: &[LimitSpec]) -> Result<RedisLimits, Error> {
        let local = LocalTables::open(limits, &self.core.clock, self.core.nodes.assumed())?;
        let opened = RedisLimits::new(limits, (&self.secret, &self.held), local)?;
        self.set_fingerprint(limits);
        Ok(opened)
    }

    fn reopen(&self, old: &RedisLimits, limits: &[LimitSpec]) -> Result<RedisLimits, Error> {
        let local = old.local.reopen(limits)?;
        let opened = RedisLimits::new(limits, (&self.secret, &self.held), local)?;
        self.held.forget_unused();
        self.set_fingerprint(limits);
        Ok(opened)
    }

    async fn decide(&self, limits: &RedisLimits, spends: &mut [Spend]) -> Result<(), Error> {
        let Some(first) = spends.first() else { return Ok(()) };
        let limit = limits.limit(first.limit).id();
        of_limit(limit, self.decide_call(limits, spends)).await
    }

    fn decide_now(&self, limits: &RedisLimits, spends: &mut [Spend]) -> Option<Result<(), Error>> {
        let is_decided = self.decide_by_leases(limits, spends) || self.deny_at_once(limits, spends);
        is_decided.then_some(Ok(()))
    }

    async fn peek(&self, limits: &RedisLimits, spend: &Spend) -> Result<Decision, Error> {
        let limit = limits.limit(spend.limit);
        if let Some(decision) = self.peek_permits(limit, spend) {
            return Ok(decision);
        }
        if let Some(lease) = self.lease_of(limit, spend) {
            let (own, local) = (limit.quota_for(&spend.key), self.core.local());
            if let Some(decision) = self.leases.peek(lease, own, spend.cost, local) {
                return Ok(decision);
            }
        }
        let caller = self.caller_of(limits, spend);
        match of_limit(limit.id(), self.core.peek(caller.clone(), spend.cost)).await {
            Ok(decision) => Ok(decision),
            Err(why) => self.peek_local(limits, spend, &caller, &why).await,
        }
    }

    async fn settle(
        &self,
        limits: &RedisLimits,
        spend: &Spend,
        actual: u64,
    ) -> Result<Settled, Error> {
        let caller = self.caller_of(limits, spend);
        let (reserved, lease) = (spend.cost, self.lease_of(&caller.limit, spend));
        if let Some(left) = self.debit_lease(&caller, lease, reserved, actual) {
            return Ok(Settled { left, uncharged: 0 });
        }
        let spent = spend.decision.and_then(|decision| decision.spent());
        if let Some(left) = self.refund_lease(&caller, lease, spent, actual) {
            return Ok(Settled { left, uncharged: 0 });
        }
        let settling = self.core.settle_to_the_end(caller.clone(), spent, reserved, actual);
        let settled = of_limit(caller.limit.id(), settling).await;
        lease.into_iter().for_each(|lease| self.leases.unlearn(lease));
        match settled {
            Ok(settled) => Ok(settled),
            Err(why) if why.fault() == Fault::Overloaded => {
                Ok(self.core.settle_later(caller, spent, reserved, actual))
            }
            Err(why) => self.settle_local(limits, spend, &caller, actual, &why).await,
        }
    }

    async fn deposit(
        &self,
        limits: &RedisLimits,
        spend: &Spend,
        id: u128,
        lifetime: Duration,
    ) -> Result<bool, Error> {
        let limit = limits.limit(spend.limit).id();
        let kept = of_limit(limit, self.put_deposit(limits, spend, id, lifetime)).await;
        kept.map_err(store_error)?;
        Ok(true)
    }

    async fn settle_deposit(
        &self,
        limits: &RedisLimits,
        id: u128,
        actual: u64,
    ) -> Result<Option<Settlement>, Error> {
        self.take_deposit(limits, id, actual).await
    }

    fn cancel(&self, limits: &RedisLimits, spend: Spend) {
        let Some(spent) = spend.decision.and_then(|decision| decision.spent()) else { return };
        let lease = self.lease_of(limits.limit(spend.limit), &spend);
        if lease.is_some_and(|lease| self.leases.undo(lease, &spent)) {
            return;
        }
        let caller = self.caller_of(limits, &spend);
        let nodes = self.core.nodes.assumed();
        if let Some(mut own) = share_spend(limits, &spend, nodes) {
            own.decision = spend.decision;
            // Words may be equal locally and in Redis: take it back once.
            if limits.local.for_nodes(nodes).cancel(own) {
                self.core.unreported.subtract(&caller, spend.cost);
                return;
            }
        }
        if let Ok(runtime) = Handle::try_current() {
            let core = Arc::clone(&self.core);
            let limit = caller.limit.id();
            runtime.spawn(of_limit(limit, async move { core.cancel(&caller, &spent).await }));
        }
    }

    async fn reset(&self, limits: &RedisLimits, limit: usize, key: &Key) -> Result<(), Error> {
        // Permits are released, not reset.
        if limits.limit(limit).hold.is_some() {
            return Ok(());
        }
        self.reset_caller(limits, limit, key).await
    }

    async fn set_override(
        &self,
        limits: &RedisLimits,
        limit: usize,
        key: &Key,
        quota: Option<Quota>,
        _until: Option<Timestamp>,
    ) -> Result<(), Error> {
        let permits = quota.as_ref().map(permits_of);
        if Self::override_permits(limits.limit(limit), key, permits) {
            return Ok(());
        }
        self.override_quota(limits, limit, key, quota).await
    }

    fn now(&self) -> Timestamp {
        self.core.local()
    }

    async fn hold(
        &self,
        limits: &RedisLimits,
        spends: &mut [Spend],
        permits: &mut Permits,
    ) -> Result<(), Error> {
        self.hold_all(limits, spends, permits).await
    }

    fn hold_now(
        &self,
        limits: &RedisLimits,
        spends: &mut [Spend],
        permits: &mut Permits,
    ) -> Option<Result<(), Error>> {
        self.hold_all_now(limits, spends, permits).then_some(Ok(()))
    }

    async fn acquire(
        &self,
        limits: &RedisLimits,
        spend: &Spend,
        ttl: Duration,
    ) -> Result<(Decision, Option<PermitId>), Error> {
        self.acquire_permits(limits.limit(spend.limit), spend, ttl).await
    }

    async fn renew(&self, _: &RedisLimits, id: PermitId, ttl: Duration) -> Result<bool, Error> {
        self.change_permits(id, PermitOp::Renew { ttl }).await
    }

    async fn release(&self, _: &RedisLimits, id: PermitId) -> Result<bool, Error> {
        self.change_permits(id, PermitOp::Release).await
    }

    async fn strike(
        &self,
        limits: &RedisLimits,
        limit: usize,
        key: &Key,
        rule: &BanRule,
        call: StrikeCall,
    ) -> Result<Option<BanStart>, Error> {
        self.strike_caller(limits.limit(limit), key, rule, call).await
    }

    async fn forgive(&self, limits: &RedisLimits, limit: usize, key: &Key) -> Result<(), Error> {
        self.forgive_caller(limits.limit(limit), key).await
    }

    async fn publish(&self, edits: &[Edit]) -> Result<(), Error> {
        self.publish_edits(edits).await
    }

    async fn edits_since(&self, version: u64) -> Result<EditLog, Error> {
        self.fetch_edits(version).await
    }

    /// Redis does not count callers per limit, but this node knows the permits that it has handed
    /// out.
    fn usage(&self, limits: &RedisLimits, limit: usize) -> Option<Usage> {
        Self::permit_usage(limits.limit(limit))
    }
}
