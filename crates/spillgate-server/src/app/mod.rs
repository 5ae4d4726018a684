//! What the protocols of a server share.

mod access;
mod metrics;
mod readiness;
mod replace;
mod store_metrics;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use arc_swap::ArcSwap;
use prometheus_client::registry::Registry;
use spillgate_enforce::{Enforcer, Metrics};
use spillgate_policy::Gate;

pub use self::access::Access;
pub use self::readiness::{Phase, Readiness};
use self::replace::Source;
use crate::AnyStore;
use crate::live::Live;
use crate::settings::Additions;

/// What a server decides with, whatever protocol it speaks.
///
/// ```
/// use std::sync::Arc;
/// use spillgate_policy::{Gate, Policy};
/// use spillgate_server::{Access, AnyStore, App, Secret};
///
/// let text = "[[limit]]\nname = 'api'\nquota = '10/s burst 20'";
/// let gate = Arc::new(Gate::with_store(Policy::from_toml(text)?, AnyStore::default())?);
/// let app = App::new(gate, text).with_access(Access::loopback(Secret::new("token")));
///
/// let stricter = "[[limit]]\nname = 'api'\nquota = '5/s burst 10'";
/// app.replace(stricter)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct App {
    enforcer: Arc<Enforcer<AnyStore>>,
    readiness: Arc<Readiness>,
    access: Arc<ArcSwap<Access>>,
    /// What the policy in force was built from. Locked while that changes.
    source: Mutex<Source>,
    folder: PathBuf,
    registry: RwLock<Registry>,
    metrics: Metrics,
    live: Live,
}

impl App {
    /// An application with this gate, whose policy has this text. There is no token, so admin
    /// routes are closed.
    pub fn new(gate: Arc<Gate<AnyStore>>, policy: impl Into<Arc<str>>) -> Self {
        let metrics = Metrics::new();
        let app = Self {
            enforcer: Arc::new(Enforcer::new(gate).metrics(metrics.clone())),
            readiness: Arc::default(),
            access: Arc::new(ArcSwap::from_pointee(Access::loopback(None))),
            source: Mutex::new(Source { text: policy.into(), additions: Additions::default() }),
            folder: PathBuf::new(),
            registry: RwLock::default(),
            metrics: metrics.clone(),
            live: Live::new(),
        };
        app.register(|registry| metrics.register(registry));
        app.register(|registry| app.register_own(registry));
        app
    }

    /// Sets the access rules.
    #[must_use]
    pub fn with_access(self, access: Access) -> Self {
        self.set_access(access);
        self
    }

    /// Sets what the policy has besides its text.
    pub(crate) fn with_additions(mut self, additions: Additions) -> Self {
        let source = self.source.get_mut().unwrap_or_else(PoisonError::into_inner);
        source.additions = additions;
        self
    }

    /// Sets the folder that relative paths in a [new](Self::replace) policy refer to. Default: the
    /// working directory.
    #[must_use]
    pub fn with_folder(self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), ..self }
    }

    /// Adds metrics.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Changes the access rules, from the next request on.
    pub fn set_access(&self, access: Access) {
        self.access.store(Arc::new(access));
    }

    /// The gate.
    pub fn gate(&self) -> &Arc<Gate<AnyStore>> {
        self.enforcer.gate()
    }

    /// What was counted of decisions.
    pub(crate) fn counted(&self) -> &Metrics {
        &self.metrics
    }

    /// What people see of the server.
    pub(crate) fn live(&self) -> &Live {
        &self.live
    }

    /// Whether the server is ready, and how its last reload went.
    pub fn readiness(&self) -> &Arc<Readiness> {
        &self.readiness
    }

    /// Decides, counts and logs.
    pub fn enforcer(&self) -> &Arc<Enforcer<AnyStore>> {
        &self.enforcer
    }

    /// The access rules, for a protocol that has no [`App`].
    pub(crate) fn shared_access(&self) -> Arc<ArcSwap<Access>> {
        Arc::clone(&self.access)
    }

    pub(crate) fn access(&self) -> arc_swap::Guard<Arc<Access>> {
        self.access.load()
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("gate", self.gate())
            .field("access", &self.access.load())
            .field("readiness", &self.readiness)
            .finish_non_exhaustive()
    }
}
