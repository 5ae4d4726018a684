//! What the surfaces of a server share.

mod access;
mod metrics;
mod readiness;
mod replace;
mod reservations;
mod store_metrics;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use arc_swap::ArcSwap;
use prometheus_client::registry::Registry;
use spillgate_policy::Gate;
use spillgate_tower::{Metrics, SpillgateLayer};

pub use self::access::Access;
pub use self::readiness::{Phase, Readiness};
use self::replace::Source;
pub(crate) use self::reservations::{Pending, Reservations};
use crate::AnyStore;
use crate::protocol::grpc::{self, SideServices};
use crate::protocol::http::{Bounds, Stats};
use crate::protocol::resp::Endpoint;
use crate::settings::Additions;

/// Everything that a server asks and tells, whatever protocol it speaks.
///
/// ```
/// use std::sync::Arc;
/// use spillgate_policy::{Gate, Policy};
/// use spillgate_server::protocol::resp::{Endpoint, Throttle};
/// use spillgate_server::{Access, AnyStore, App, Secret};
///
/// let text = "[[limit]]\nname = 'api'\nquota = '10/s burst 20'";
/// let gate = Arc::new(Gate::with_store(Policy::from_toml(text)?, AnyStore::default())?);
/// let resp = Endpoint::new(Throttle::new(1000)?, Arc::clone(&gate));
/// let app = App::new(gate, text, resp).with_access(Access::loopback(Secret::new("token")));
///
/// let stricter = "[[limit]]\nname = 'api'\nquota = '5/s burst 10'";
/// app.replace(stricter)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct App {
    gate: Arc<Gate<AnyStore>>,
    resp: Arc<Endpoint<SpillgateLayer<AnyStore>>>,
    layer: SpillgateLayer<AnyStore>,
    readiness: Arc<Readiness>,
    access: ArcSwap<Access>,
    /// What the policy in force was made from. Held while that changes.
    source: Mutex<Source>,
    folder: PathBuf,
    registry: RwLock<Registry>,
    pub(crate) reservations: Arc<Reservations>,
    pub(crate) bounds: Bounds,
    pub(crate) stats: Arc<Stats>,
    pub(crate) grpc: Arc<grpc::Stats>,
    pub(crate) side_services: SideServices,
    has_tls: bool,
}

impl App {
    /// An application that decides by this gate, whose policy has this text. Nobody has a
    /// token, so admin routes are closed. What the Redis protocol decides by the gate is
    /// counted with the rest.
    pub fn new(
        gate: Arc<Gate<AnyStore>>,
        policy: impl Into<Arc<str>>,
        resp: Endpoint<Arc<Gate<AnyStore>>>,
    ) -> Self {
        let metrics = Metrics::new();
        let layer = SpillgateLayer::new(Arc::clone(&gate)).metrics(metrics.clone());
        let readiness: Arc<Readiness> = Arc::default();
        let app = Self {
            gate,
            resp: Arc::new(resp.asking(layer.clone())),
            layer,
            side_services: SideServices::new(Arc::clone(&readiness)),
            readiness,
            access: ArcSwap::from_pointee(Access::loopback(None)),
            source: Mutex::new(Source { text: policy.into(), additions: Additions::default() }),
            folder: PathBuf::new(),
            registry: RwLock::default(),
            reservations: Arc::default(),
            bounds: Bounds::default(),
            stats: Arc::default(),
            grpc: Arc::default(),
            has_tls: false,
        };
        app.register(|registry| metrics.register(registry));
        app.register_own();
        app
    }

    /// Says who may ask what.
    #[must_use]
    pub fn with_access(self, access: Access) -> Self {
        self.set_access(access);
        self
    }

    /// Bounds what a client may send, and how long it may take.
    #[must_use]
    pub fn with_bounds(self, bounds: Bounds) -> Self {
        Self { bounds, ..self }
    }

    /// Remembers at most so many reservations that are not settled. If there are more, those
    /// are forgotten that would expire next: what they reserved stays spent.
    #[must_use]
    pub fn with_reservations(self, most: usize) -> Self {
        self.reservations.set_most(most);
        self
    }

    /// Says what the policy has that its text does not tell.
    pub(crate) fn with_additions(mut self, additions: Additions) -> Self {
        let source = self.source.get_mut().unwrap_or_else(PoisonError::into_inner);
        source.additions = additions;
        self
    }

    /// Looks here for files that a [new](Self::replace) policy names: where the policy's own
    /// file is. It is the working directory unless told otherwise.
    #[must_use]
    pub fn with_folder(self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), ..self }
    }

    /// Says whether clients have to speak TLS, for pages that say how to ask.
    pub(crate) fn with_tls(self, has_tls: bool) -> Self {
        Self { has_tls, ..self }
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.has_tls
    }

    /// Adds metrics to those that are shown.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Changes who may ask what, from the next request on.
    pub fn set_access(&self, access: Access) {
        self.access.store(Arc::new(access));
    }

    /// The gate.
    #[must_use]
    pub fn gate(&self) -> &Arc<Gate<AnyStore>> {
        &self.gate
    }

    /// What the Redis protocol serves.
    #[must_use]
    pub fn resp(&self) -> &Arc<Endpoint<SpillgateLayer<AnyStore>>> {
        &self.resp
    }

    /// Whether the server is ready, and how its last reload went.
    #[must_use]
    pub fn readiness(&self) -> &Arc<Readiness> {
        &self.readiness
    }

    pub(crate) fn layer(&self) -> &SpillgateLayer<AnyStore> {
        &self.layer
    }

    pub(crate) fn access(&self) -> arc_swap::Guard<Arc<Access>> {
        self.access.load()
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("gate", &self.gate)
            .field("access", &self.access.load())
            .field("readiness", &self.readiness)
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}
