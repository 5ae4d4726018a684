//! The store: limits shared by many nodes through Redis.

mod admin;
mod agreement;
mod batches;
mod cache;
mod core;
mod decide;
mod deposits;
mod last_words;
mod lease_source;
mod leased;
mod limits;
mod local_tables;
mod nodes;
mod outage;
mod overrides;
mod pending;
mod report;
mod settings;
mod settle;
mod share;
mod translate;
mod unreported;

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use spillgate::{Decision, KeyedState, Quota, Settled};
use spillgate_policy::store::{LimitSpec, Settlement, Spend, Store, Usage};
use spillgate_policy::{Error, Key};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

pub use self::agreement::Agreement;
use self::core::{Caller, StoreCore};
pub use self::limits::RedisLimits;
use self::limits::store_error;
use self::local_tables::{LocalTables, share_spend};
pub use self::settings::Settings;
use crate::backend::{Backend, Fault};
use crate::client::Client;
use crate::flow::of_limit;
use crate::lease::Leases;
use crate::name::Names;
use crate::{Secret, Stats};

/// Keeps what callers have spent in Redis, where many nodes share it.
///
/// `capacity` and `when-full` of a limit apply only to the tables that a node uses during an outage.
pub struct RedisStore<B: Backend = Client> {
    core: Arc<StoreCore<B>>,
    leases: Leases<StoreCore<B>>,
    secret: Secret,
    deposits: Names,
    announcing: Option<AbortHandle>,
}

impl<B: Backend> RedisStore<B> {
    /// A store over a backend. It spawns a task, so create it on a Tokio runtime.
    ///
    /// # Errors
    ///
    /// If there is no runtime and the number of nodes is not [configured](Settings::nodes). With a
    /// configured number the node does not announce itself.
    pub fn new(backend: B, settings: &Settings) -> Result<Self, Error> {
        let core = Arc::new(StoreCore::new(backend, settings));
        let announcing = match Handle::try_current() {
            Ok(runtime) => Some(announce(&core, &runtime)),
            Err(_) if settings.nodes.is_some() => None,
            Err(_) => return Err(Error::store("create a Redis store on a Tokio runtime")),
        };
        let leases = Leases::new(Arc::clone(&core), KeyedState::new(), settings.leases);
        let secret = settings.secret.clone();
        let deposits = secret.deposits();
        Ok(Self { core, leases, secret, deposits, announcing })
    }

    /// What was done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let StoreCore { nodes, unreported, counters, .. } = &*self.core;
        Stats {
            unreported: unreported.len() as u64,
            forgiven: unreported.forgiven(),
            leases: self.leases.stats(),
            nodes: nodes.known().map_or(0, NonZeroU32::get),
            agreement: nodes.agreement(),
            ..counters.stats()
        }
    }

    /// The backend, usually a [`Client`].
    pub fn backend(&self) -> &B {
        &self.core.backend
    }

    /// Gives leases back, debits in Redis what was admitted during an outage, and ends the background
    /// tasks.
    pub async fn shutdown(&self) {
        self.leases.shutdown().await;
        self.core.report_all().await;
        self.announcing.iter().for_each(AbortHandle::abort);
        self.core.nodes.leave(&self.core.backend).await;
    }

    fn caller_of(&self, limits: &RedisLimits, spend: &Spend) -> Caller {
        self.core.caller_of(limits.limit(spend.limit), spend, self.core.local())
    }
}

fn announce<B: Backend>(core: &Arc<StoreCore<B>>, runtime: &Handle) -> AbortHandle {
    let core = Arc::clone(core);
    let announce = async move { core.nodes.announce(&core.backend).await };
    runtime.spawn(announce).abort_handle()
}

impl<B: Backend> Drop for RedisStore<B> {
    fn drop(&mut self) {
        self.announcing.iter().for_each(AbortHandle::abort);
    }
}

impl<B: Backend> Store for RedisStore<B> {
    type Limits = RedisLimits;

    fn is_in_process(&self) -> bool {
        false
    }

    fn open(&self, limits: &[LimitSpec]) -> Result<RedisLimits, Error> {
        let local = LocalTables::open(limits, &self.core.clock, self.core.nodes.assumed())?;
        let opened = RedisLimits::new(limits, &self.secret, local)?;
        self.set_fingerprint(limits);
        Ok(opened)
    }

    fn reopen(&self, old: &RedisLimits, limits: &[LimitSpec]) -> Result<RedisLimits, Error> {
        let opened = RedisLimits::new(limits, &self.secret, old.local.reopen(limits)?)?;
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
        let settling = self.core.settle(caller.clone(), spent, reserved, actual);
        let settled = of_limit(caller.limit.id(), settling).await;
        lease.into_iter().for_each(|lease| self.leases.unlearn(lease));
        match settled {
            Ok(settled) => Ok(settled),
            Err(why) if why.fault() == Fault::Overloaded => {
                Ok(self.settle_later(caller, spent, reserved, actual))
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
        self.reset_caller(limits, limit, key).await
    }

    async fn set_override(
        &self,
        limits: &RedisLimits,
        limit: usize,
        key: &Key,
        quota: Option<Quota>,
    ) -> Result<(), Error> {
        self.override_quota(limits, limit, key, quota).await
    }

    /// Redis does not count callers per limit.
    fn usage(&self, _: &RedisLimits, _: usize) -> Option<Usage> {
        None
    }
}

impl<B: Backend> fmt::Debug for RedisStore<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
