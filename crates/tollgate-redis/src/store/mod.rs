//! The store: limits that many nodes share.

mod ask;
mod cache;
mod change;
mod core;
mod decide;
mod denials;
mod limits;
mod local;
mod nodes;
mod outage;
mod overrides;
mod settings;
mod share;
mod stats;
mod terms;
mod turns;

use std::fmt;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tollgate::{Decision, Quota};
use tollgate_policy::store::{Charge, LimitSpec, Store, Usage};
use tollgate_policy::{Error, Key};

use self::core::{Caller, Core};
use self::limits::refused;
pub use self::limits::RedisLimits;
use self::local::Local;
pub use self::settings::Settings;
pub use self::stats::Stats;
use crate::Secret;
use crate::engine::{Engine, EngineError};

/// Keeps what callers have spent in an engine that many nodes share.
///
/// Capacities, and what happens when there is no room, are the engine's business; they
/// count for the tables that a node goes by while it cannot ask.
pub struct RedisStore<E: Engine> {
    core: Arc<Core<E>>,
    secret: Secret,
    announcing: Option<AbortHandle>,
}

impl<E: Engine> RedisStore<E> {
    /// A store over an engine. It has a task of its own, so it must be made on a runtime.
    ///
    /// # Errors
    ///
    /// If it is not.
    pub fn new(engine: E, settings: &Settings) -> Result<Self, Error> {
        let core = Arc::new(Core::new(engine, settings));
        let announcing = if settings.nodes.is_none() { Some(announce(&core)?) } else { None };
        Ok(Self { core, secret: settings.secret.clone(), announcing })
    }

    /// What was done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// The engine.
    pub fn engine(&self) -> &E {
        &self.core.engine
    }

    /// Ends what goes on in the background.
    pub async fn shutdown(&self) {
        self.announcing.iter().for_each(AbortHandle::abort);
    }

    fn caller(&self, limits: &RedisLimits, limit: usize, key: &Key) -> Caller {
        self.core.caller(limits.limit(limit), key, self.core.local())
    }
}

fn announce<E: Engine>(core: &Arc<Core<E>>) -> Result<AbortHandle, Error> {
    let runtime = Handle::try_current()
        .map_err(|_| Error::store("a store that nodes share must be made on a tokio runtime"))?;
    let core = Arc::clone(core);
    let announce = async move { core.nodes.announce(&core.engine).await };
    Ok(runtime.spawn(announce).abort_handle())
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
        RedisLimits::new(limits, &self.secret, local)
    }

    fn reopen(&self, old: &RedisLimits, limits: &[LimitSpec]) -> Result<RedisLimits, Error> {
        RedisLimits::new(limits, &self.secret, old.local.reopen(limits)?)
    }

    async fn decide(&self, limits: &RedisLimits, charges: &mut [Charge]) -> Result<(), Error> {
        self.decide_call(limits, charges).await
    }

    fn decide_now(
        &self,
        limits: &RedisLimits,
        charges: &mut [Charge],
    ) -> Option<Result<(), Error>> {
        self.deny_at_once(limits, charges).then_some(Ok(()))
    }

    async fn peek(&self, limits: &RedisLimits, charge: &Charge) -> Result<Decision, Error> {
        let caller = self.caller(limits, charge.limit, &charge.key);
        match self.core.peek(caller, charge.cost).await {
            Ok(decision) => Ok(decision),
            Err(why) => {
                let (own, local) = (own_charge(limits, charge, &why)?, &limits.local);
                local.memory.peek(&local.among(self.core.assumed_nodes()), &own).await
            }
        }
    }

    async fn settle(
        &self,
        limits: &RedisLimits,
        charge: &Charge,
        reserved: u64,
    ) -> Result<Decision, Error> {
        let caller = self.caller(limits, charge.limit, &charge.key);
        match self.core.settle(caller, reserved, charge.cost).await {
            Ok(decision) => Ok(decision),
            Err(why) => {
                let (own, local) = (own_charge(limits, charge, &why)?, &limits.local);
                local.memory.settle(&local.among(self.core.assumed_nodes()), &own, reserved).await
            }
        }
    }

    fn cancel(&self, limits: &RedisLimits, charge: &Charge) {
        let Some(decision) = charge.decision else { return };
        let local = &limits.local;
        if let Some(mut own) = local_charge(limits, charge) {
            // Nothing happens if it was not decided there.
            own.decision = Some(decision);
            local.memory.cancel(&local.among(self.core.assumed_nodes()), &own);
        }
        if let Ok(runtime) = Handle::try_current() {
            let caller = self.caller(limits, charge.limit, &charge.key);
            let core = Arc::clone(&self.core);
            runtime.spawn(async move { core.cancel(&caller, &decision).await });
        }
    }

    async fn reset(&self, limits: &RedisLimits, limit: usize, key: &Key) -> Result<(), Error> {
        self.core.reset(self.caller(limits, limit, key)).await.map_err(Error::store)?;
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
        self.core.give(caller, &wanted).await.map_err(Error::store)?;
        match limit.local {
            Some(place) => {
                let nodes = self.core.assumed_nodes();
                limits.local.set_override(place, key, quota, nodes).await
            }
            None => Ok(()),
        }
    }

    /// How many callers an engine knows, it does not tell.
    fn usage(&self, _: &RedisLimits, _: usize) -> Usage {
        Usage::default()
    }
}

/// A charge under this node's own share, if its limit goes on by that.
fn local_charge(limits: &RedisLimits, charge: &Charge) -> Option<Charge> {
    let place = limits.limit(charge.limit).local?;
    Some(Charge::new(place, charge.key.clone(), charge.cost))
}

/// The same, or why there is no answer.
fn own_charge(limits: &RedisLimits, charge: &Charge, why: &EngineError) -> Result<Charge, Error> {
    let limit = limits.limit(charge.limit);
    local_charge(limits, charge).ok_or_else(|| refused(limit.name(), why))
}

impl<E: Engine> fmt::Debug for RedisStore<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
