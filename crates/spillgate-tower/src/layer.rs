use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::Extensions;
use spillgate_policy::Gate;
use spillgate_policy::store::{Memory, Store};
use tower_layer::Layer;

use crate::metrics::Meter;
use crate::settings::Settings;
use crate::{Headers, Metrics, OnStoreError, ProblemJson, Spillgate};

/// Puts a [`Gate`] in front of a service.
///
/// ```
/// use spillgate_policy::{Gate, Limit, Policy};
/// use spillgate_tower::{Headers, Metrics, SpillgateLayer};
///
/// let policy = Policy::builder().limit(Limit::new("api", "10/s burst 20")).build()?;
/// let layer = SpillgateLayer::new(Gate::new(policy)?)
///     .headers(Headers::default().retry_after_ms(true))
///     .metrics(Metrics::new());
///
/// let stricter = Policy::builder().limit(Limit::new("api", "5/s burst 10")).build()?;
/// layer.gate().replace(stricter)?;
/// # Ok::<(), spillgate_policy::Error>(())
/// ```
///
/// Clones, and the services that they make, share the gate.
pub struct SpillgateLayer<S: Store = Memory, R = ProblemJson> {
    pub(crate) settings: Arc<Settings<S, R>>,
}

impl<S: Store> SpillgateLayer<S> {
    /// A layer that refuses with [`ProblemJson`], and logs what it refuses.
    pub fn new(gate: impl Into<Arc<Gate<S>>>) -> Self {
        Self { settings: Arc::new(Settings::new(gate.into())) }
    }
}

impl<S: Store, R> SpillgateLayer<S, R> {
    /// The gate, through which the policy and the lists can be changed.
    #[must_use]
    pub fn gate(&self) -> &Arc<Gate<S>> {
        &self.settings.gate
    }

    /// Chooses the headers of responses.
    #[must_use]
    pub fn headers(self, headers: Headers) -> Self {
        self.with(|settings| settings.headers = headers)
    }

    /// Refuses requests in another way: [`GrpcStatus`](crate::GrpcStatus), or a closure
    /// from `&Refusal<'_>` to a response. See [`Refuse`](crate::Refuse).
    #[must_use]
    pub fn respond_with<T>(self, responder: T) -> SpillgateLayer<S, T> {
        let settings = Arc::unwrap_or_clone(self.settings).respond_with(responder);
        SpillgateLayer { settings: Arc::new(settings) }
    }

    /// Asks a closure for the address at the other end of the connection, and nothing
    /// else. It must not believe what a client can invent: proxies that may speak for
    /// their clients are named in the policy.
    #[must_use]
    pub fn peer_from(
        self,
        peer: impl Fn(&Extensions) -> Option<IpAddr> + Send + Sync + 'static,
    ) -> Self {
        self.with(|settings| settings.peers.ask(peer))
    }

    /// Counts what is decided. Several layers can share their metrics.
    #[must_use]
    pub fn metrics(self, metrics: Metrics) -> Self {
        metrics.watch(&self.settings.gate);
        self.with(|settings| settings.meter = Some(Arc::new(Meter::new(metrics))))
    }

    /// Chooses what becomes of a request about which the store could not decide. It is
    /// [refused](OnStoreError::Refuse) unless told otherwise.
    #[must_use]
    pub fn on_store_error(self, then: OnStoreError) -> Self {
        self.with(|settings| settings.on_store_error = then)
    }

    /// Says whether refused requests are logged. They are, unless told otherwise. What is
    /// wrong with the store or the set-up is always logged.
    #[must_use]
    pub fn log(self, log: bool) -> Self {
        self.with(|settings| settings.logs_refusals = log)
    }

    fn with(mut self, change: impl FnOnce(&mut Settings<S, R>)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

impl<I, S: Store, R> Layer<I> for SpillgateLayer<S, R> {
    type Service = Spillgate<I, S, R>;

    fn layer(&self, inner: I) -> Self::Service {
        Spillgate::new(inner, Arc::clone(&self.settings))
    }
}

impl<S: Store, R> Clone for SpillgateLayer<S, R> {
    fn clone(&self) -> Self {
        Self { settings: Arc::clone(&self.settings) }
    }
}

impl<S: Store, R> fmt::Debug for SpillgateLayer<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpillgateLayer").field("settings", &self.settings).finish()
    }
}
