//! The store: limits that many nodes share.

mod agreement;
mod ask;
mod cache;
mod change;
mod core;
mod decide;
mod deposits;
mod given;
mod leased;
mod limits;
mod local;
mod nodes;
mod outage;
mod overrides;
mod report;
mod settings;
mod share;
mod source;
mod stats;
mod throttle;
mod translate;
mod turns;
mod unreported;
mod words;

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
use self::core::{Caller, Core};
pub use self::limits::RedisLimits;
use self::limits::{refused, unanswered};
use self::local::{Local, local_charge};
pub use self::settings::Settings;
pub use self::stats::Stats;
pub use self::throttle::Share;
use self::throttle::Throttled;
use crate::Secret;
use crate::engine::{Engine, Fault, Server};
use crate::flow::of_limit;
use crate::lease::Leases;
use crate::name::Names;

/// Keeps what callers have spent in an engine that many nodes share.
///
/// Capacities, and what happens when there is no room, are the engine's business; they
/// count for the tables that a node goes by while it cannot ask.
pub struct RedisStore<E: Engine = Server> {
    core: Arc<Core<E>>,
    leases: Leases<Core<E>>,
    secret: Secret,
    deposits: Names,
    throttled: Throttled,
    announcing: Option<AbortHandle>,
}

impl<E: Engine> RedisStore<E> {
    /// A store over an engine. It has a task of its own, so it must be made on a runtime.
    ///
    /// # Errors
    ///
    /// If it is not, unless the number of nodes is [known](Settings::nodes): then it goes by that, and
    /// tells nobody of itself.
    pub fn new(engine: E, settings: &Settings) -> Result<Self, Error> {
        let core = Arc::new(Core::new(engine, settings));
        let announcing = match Handle::try_current() {
            Ok(runtime) => Some(announce(&core, &runtime)),
            // It does not have to hear of the others.
            Err(_) if settings.nodes.is_some() => None,
            Err(_) => return Err(Error::store(RUNTIME)),
        };
        let leases = Leases::new(Arc::clone(&core), KeyedState::new(), settings.leases);
        let secret = settings.secret.clone();
        let (deposits, throttled) = (secret.deposits(), Throttled::new(&secret)?);
        Ok(Self { core, leases, secret, deposits, throttled, announcing })
    }

    /// What was done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let nodes = self.core.nodes.known().map_or(0, NonZeroU32::get);
        let Core { nodes: others, unreported, counters, .. } = &*self.core;
        Stats {
            agreement: others.agreement(),
            unreported: unreported.len() as u64,
            forgiven: unreported.forgiven(),
            ..counters.stats(self.leases.stats(), nodes)
        }
    }

    /// The engine.
    pub fn engine(&self) -> &E {
        &self.core.engine
    }

    /// Gives back what is held by leases, spends what was admitted in an outage, and ends what
    /// goes on in the background.
    pub async fn shutdown(&self) {
        self.leases.shutdown().await;
        self.core.report_all().await;
        self.announcing.iter().for_each(AbortHandle::abort);
        self.core.nodes.leave(&self.core.engine).await;
    }

    fn caller(&self, limits: &RedisLimits, limit: usize, key: &Key) -> Caller {
        self.core.caller(limits.limit(limit), key, self.core.local())
    }

    fn charged(&self, limits: &RedisLimits, spend: &Spend) -> Caller {
        self.core.charged(limits.limit(spend.limit), spend, self.core.local())
    }
}

const RUNTIME: &str = "a store that nodes share must be made on a tokio runtime";

fn announce<E: Engine>(core: &Arc<Core<E>>, runtime: &Handle) -> AbortHandle {
    let core = Arc::clone(core);
    let announce = async move { core.nodes.announce(&core.engine).await };
    runtime.spawn(announce).abort_handle()
}

impl<E: Engine> Drop for RedisStore<E> {
    fn drop(&mut self) {
        self.announcing.iter().for_each(AbortHandle::abort);
    }
}

impl<E: Engine> Store for RedisStore<E> {
    type Limits = RedisLimits;

    fn is_in_process(&self) -> bool {
        false
    }

    fn open(&self, limits: &[LimitSpec]) -> Result<RedisLimits, Error> {
        let local = Local::open(limits, &self.core.clock, self.core.assumed_nodes())?;
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
        if let Some(place) = self.lease_of(limit, spend) {
            let (own, local) = (limit.counted(&spend.key), self.core.local());
            if let Some(decision) = self.leases.peek(place, own, spend.cost, local) {
                return Ok(decision);
            }
        }
        let caller = self.charged(limits, spend);
        match of_limit(limit.id(), self.core.peek(caller.clone(), spend.cost)).await {
            Ok(decision) => Ok(decision),
            Err(why) => self.peek_own(limits, spend, &caller, &why).await,
        }
    }

    async fn settle(
        &self,
        limits: &RedisLimits,
        spend: &Spend,
        actual: u64,
    ) -> Result<Settled, Error> {
        let caller = self.charged(limits, spend);
        let (reserved, lease) = (spend.cost, self.lease_of(&caller.limit, spend));
        if let Some(left) = self.charge_lease(&caller, lease, reserved, actual) {
            return Ok(Settled { left, uncharged: 0 });
        }
        let charged = spend.decision.and_then(|decision| decision.spent());
        if let Some(left) = self.give_back_to_lease(&caller, lease, charged, actual) {
            return Ok(Settled { left, uncharged: 0 });
        }
        let settling = self.core.settle(caller.clone(), charged, reserved, actual);
        let settled = of_limit(caller.limit.id(), settling).await;
        lease.into_iter().for_each(|place| self.leases.unlearn(place));
        match settled {
            Ok(settled) => Ok(settled),
            Err(why) if why.fault() == Fault::Overloaded => {
                Ok(self.settle_later(caller, charged, reserved, actual))
            }
            Err(why) => self.settle_own(limits, spend, &caller, actual, &why).await,
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
        let kept = of_limit(limit, self.keep(limits, spend, id, lifetime)).await;
        kept.map_err(unanswered)?;
        Ok(true)
    }

    async fn settle_deposit(
        &self,
        limits: &RedisLimits,
        id: u128,
        actual: u64,
    ) -> Result<Option<Settlement>, Error> {
        self.settle_kept(limits, id, actual).await
    }

    fn cancel(&self, limits: &RedisLimits, spend: Spend) {
        let Some(charged) = spend.decision.and_then(|decision| decision.spent()) else { return };
        let lease = self.lease_of(limits.limit(spend.limit), &spend);
        if lease.is_some_and(|place| self.leases.undo(place, &charged)) {
            return;
        }
        let caller = self.charged(limits, &spend);
        let nodes = self.core.assumed_nodes();
        if let Some(mut own) = local_charge(limits, &spend, nodes) {
            own.decision = spend.decision;
            // Counts may be the same here and there: it is taken back once.
            if limits.local.among(nodes).cancel(own) {
                self.core.unreported.subtract(&caller, spend.cost);
                return;
            }
        }
        if let Ok(runtime) = Handle::try_current() {
            let core = Arc::clone(&self.core);
            let limit = caller.limit.id();
            runtime.spawn(of_limit(limit, async move { core.cancel(&caller, &charged).await }));
        }
    }

    async fn reset(&self, limits: &RedisLimits, limit: usize, key: &Key) -> Result<(), Error> {
        self.core.reset(self.caller(limits, limit, key)).await.map_err(unanswered)?;
        self.forget_lease(limits.limit(limit), key);
        let local = &limits.local;
        match limits.limit(limit).local {
            Some(place) => {
                let nodes = self.core.assumed_nodes();
                local.memory.reset(&local.among(nodes), place, key).await
            }
            None => Ok(()),
        }
    }

    async fn set_override(
        &self,
        limits: &RedisLimits,
        limit: usize,
        key: &Key,
        quota: Option<Quota>,
    ) -> Result<(), Error> {
        let caller = self.caller(limits, limit, key);
        let limit = limits.limit(limit);
        let wanted = match quota {
            Some(quota) => limit.given(quota),
            None => limit.counted_without_override(key),
        };
        let wanted = wanted.map_err(|why| refused(limit.name(), &why))?;
        self.core.give(caller, &wanted).await.map_err(unanswered)?;
        self.forget_lease(limit, key);
        match limit.local {
            Some(place) => {
                let nodes = self.core.assumed_nodes();
                limits.local.set_override(place, key, quota, nodes).await
            }
            None => Ok(()),
        }
    }

    /// How many callers an engine knows, it does not tell.
    fn usage(&self, _: &RedisLimits, _: usize) -> Option<Usage> {
        None
    }
}

impl<E: Engine> fmt::Debug for RedisStore<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
