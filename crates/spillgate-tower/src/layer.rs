use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::Extensions;
use spillgate_policy::store::{Memory, Store};
use spillgate_policy::{Error, Gate, Limit, Policy};
use tower_layer::Layer;

use crate::peer::Peers;
use crate::{Enforcer, Headers, Metrics, OnStoreError, ProblemJson, Spillgate};

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
#[must_use]
pub struct SpillgateLayer<S: Store = Memory, R = ProblemJson> {
    shared: Arc<Shared<S, R>>,
}

/// What a layer and its services share, behind one reference count: services are cloned per
/// request.
pub(crate) struct Shared<S: Store, R> {
    pub(crate) enforcer: Arc<Enforcer<S, R>>,
    pub(crate) peers: Peers,
}

impl SpillgateLayer {
    /// A layer with one limit per client address, kept in memory.
    ///
    /// ```
    /// use spillgate_tower::SpillgateLayer;
    ///
    /// let layer = SpillgateLayer::per_ip("10/s burst 20")?;
    /// # Ok::<(), spillgate_policy::Error>(())
    /// ```
    ///
    /// IPv6 addresses count by their /64 prefix. Behind a proxy, build a policy that names it
    /// instead: [`Identity::trusted_proxies`](spillgate_policy::Identity::trusted_proxies).
    ///
    /// # Errors
    ///
    /// If the quota cannot be parsed.
    pub fn per_ip(quota: &str) -> Result<Self, Error> {
        let limit = Limit::new("per-ip", quota).per(["ip"]);
        Ok(Self::new(Gate::new(Policy::builder().limit(limit).build()?)?))
    }
}

impl<S: Store> SpillgateLayer<S> {
    /// A layer that refuses with [`ProblemJson`], and logs denials.
    pub fn new(gate: impl Into<Arc<Gate<S>>>) -> Self {
        Self::from(Enforcer::new(gate))
    }
}

impl<S: Store, R> SpillgateLayer<S, R> {
    /// The gate: to change the policy and the lists.
    #[must_use]
    pub fn gate(&self) -> &Arc<Gate<S>> {
        self.shared.enforcer.gate()
    }

    /// The enforcer, through which programs decide other questions than requests.
    #[must_use]
    pub fn enforcer(&self) -> &Arc<Enforcer<S, R>> {
        &self.shared.enforcer
    }

    /// Chooses the headers of responses.
    pub fn headers(self, headers: Headers) -> Self {
        self.with(|enforcer| enforcer.headers(headers))
    }

    /// Refuses requests in another way: [`GrpcStatus`](crate::GrpcStatus), or a closure
    /// from `&Refusal<'_>` to a response. See [`Refuse`](crate::Refuse).
    pub fn respond_with<T>(self, responder: T) -> SpillgateLayer<S, T> {
        self.with(|enforcer| enforcer.respond_with(responder))
    }

    /// Reads the peer's address with a closure, and from nowhere else. It must not trust what a
    /// client can forge: proxies that may speak for their clients are named in the policy.
    pub fn peer_from(
        self,
        peer: impl Fn(&Extensions) -> Option<IpAddr> + Send + Sync + 'static,
    ) -> Self {
        let Shared { enforcer, mut peers } = Arc::unwrap_or_clone(self.shared);
        peers.ask(peer);
        Self { shared: Arc::new(Shared { enforcer, peers }) }
    }

    /// Counts what is decided. Several layers can share their metrics.
    pub fn metrics(self, metrics: Metrics) -> Self {
        self.with(|enforcer| enforcer.metrics(metrics))
    }

    /// Chooses what becomes of a request about which the store could not decide. Default:
    /// [refuse](OnStoreError::Refuse).
    pub fn on_store_error(self, then: OnStoreError) -> Self {
        self.with(|enforcer| enforcer.on_store_error(then))
    }

    /// Turns the log of denials on or off. Default: on. Store failures and a missing peer address
    /// are always logged.
    pub fn log(self, log: bool) -> Self {
        self.with(|enforcer| enforcer.log(log))
    }

    fn with<T>(
        self,
        change: impl FnOnce(Enforcer<S, R>) -> Enforcer<S, T>,
    ) -> SpillgateLayer<S, T> {
        let Shared { enforcer, peers } = Arc::unwrap_or_clone(self.shared);
        let enforcer = Arc::new(change(Arc::unwrap_or_clone(enforcer)));
        SpillgateLayer { shared: Arc::new(Shared { enforcer, peers }) }
    }
}

impl<S: Store, R> From<Arc<Enforcer<S, R>>> for SpillgateLayer<S, R> {
    fn from(enforcer: Arc<Enforcer<S, R>>) -> Self {
        Self { shared: Arc::new(Shared { enforcer, peers: Peers::default() }) }
    }
}

impl<S: Store, R> From<Enforcer<S, R>> for SpillgateLayer<S, R> {
    fn from(enforcer: Enforcer<S, R>) -> Self {
        Self::from(Arc::new(enforcer))
    }
}

impl<S: Store, R> Shared<S, R> {
    /// The address at the other end of the connection.
    pub(crate) fn peer<B>(&self, request: &mut http::Request<B>) -> Option<IpAddr> {
        let peer = self.peers.find(request.extensions_mut());
        if peer.is_none() {
            self.peers.report_missing();
            self.enforcer.count_missing_peer();
        }
        peer
    }
}

impl<I, S: Store, R> Layer<I> for SpillgateLayer<S, R> {
    type Service = Spillgate<I, S, R>;

    fn layer(&self, inner: I) -> Self::Service {
        Spillgate::new(inner, Arc::clone(&self.shared))
    }
}

impl<S: Store, R> Clone for SpillgateLayer<S, R> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S: Store, R> fmt::Debug for SpillgateLayer<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpillgateLayer")
            .field("enforcer", &self.shared.enforcer)
            .finish_non_exhaustive()
    }
}

impl<S: Store, R> Clone for Shared<S, R> {
    fn clone(&self) -> Self {
        Self { enforcer: Arc::clone(&self.enforcer), peers: self.peers.clone() }
    }
}
