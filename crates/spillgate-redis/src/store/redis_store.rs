use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use spillgate::KeyedState;
use spillgate_policy::Error;
use spillgate_policy::store::Spend;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::Settings;
use super::core::{Caller, StoreCore};
use super::limits::RedisLimits;
use crate::backend::Backend;
use crate::client::Client;
use crate::hold::{HeldLimits, Holds};
use crate::lease::Leases;
use crate::name::Names;
use crate::seal::EditSeal;
use crate::{PermitStats, Secret, Stats};

/// Keeps what callers have spent in Redis, where many nodes share it.
///
/// `capacity` and `when-full` of a limit apply only to the tables that a node uses during an outage.
pub struct RedisStore<B: Backend = Client> {
    pub(super) core: Arc<StoreCore<B>>,
    pub(super) leases: Leases<StoreCore<B>>,
    pub(super) holds: Holds<B>,
    pub(super) held: HeldLimits,
    pub(super) secret: Secret,
    pub(super) deposits: Names,
    pub(super) seal: EditSeal,
    /// The history of the server that edits were last read from.
    pub(super) edit_history: AtomicU64,
    pub(super) announcing: Option<AbortHandle>,
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
        let (deposits, seal) = (secret.deposits(), EditSeal::new(&secret)?);
        let holds = Holds::new(Arc::clone(&core));
        let held = HeldLimits::default();
        let edit_history = AtomicU64::new(0);
        Ok(Self { core, leases, holds, held, secret, deposits, seal, edit_history, announcing })
    }

    /// What was done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let StoreCore { nodes, unreported, refunds, counters, .. } = &*self.core;
        Stats {
            unreported: unreported.len() as u64,
            forgiven: unreported.forgiven(),
            dropped_refunds: refunds.dropped(),
            leases: self.leases.stats(),
            permits: self.permit_stats(),
            nodes: nodes.known().map_or(0, NonZeroU32::get),
            agreement: nodes.agreement(),
            ..counters.stats()
        }
    }

    /// The backend, usually a [`Client`].
    pub fn backend(&self) -> &B {
        &self.core.backend
    }

    /// Gives leases back, debits in Redis what was admitted during an outage, makes the refunds that
    /// still wait, and ends the background tasks.
    pub async fn shutdown(&self) {
        self.core.claims.close().await;
        self.holds.shutdown().await;
        self.leases.shutdown().await;
        let reported = self.core.report_all().await;
        if reported.is_err() {
            self.core.refunds.drop_all();
        }
        self.announcing.iter().for_each(AbortHandle::abort);
        self.core.nodes.leave(&self.core.backend).await;
    }

    fn permit_stats(&self) -> PermitStats {
        let ((held, expired), (callers, calls)) = (self.held.totals(), self.holds.stats());
        PermitStats { callers, held, expired, calls }
    }

    pub(super) fn caller_of(&self, limits: &RedisLimits, spend: &Spend) -> Caller {
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

impl<B: Backend> fmt::Debug for RedisStore<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
