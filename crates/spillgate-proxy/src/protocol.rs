use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use prometheus_client::registry::Registry;
use spillgate_net::tls::{H2, HTTP1};
use spillgate_net::{Connection, ConnectionCount, DrainSignal, Protocol, Shutdown, Threads};
use spillgate_policy::store::Store;
use spillgate_tower::SpillgateLayer;

use crate::metrics::ProxyMetrics;
use crate::{ClientLimits, Proxy, Spawn, TokioSpawn, client};

/// HTTP/1.1 and HTTP/2, forwarded to upstreams.
pub struct ProxyProtocol<S: Store, X = TokioSpawn> {
    pub(super) proxy: Arc<Proxy>,
    pub(super) layer: SpillgateLayer<S>,
    pub(super) limits: ClientLimits,
    pub(super) drain: Arc<DrainSignal>,
    pub(super) spawn: X,
    connections: Arc<ConnectionCount>,
}

impl<S: Store> ProxyProtocol<S> {
    /// Forwards what the layer lets through.
    #[must_use]
    pub fn new(
        proxy: Arc<Proxy>,
        layer: SpillgateLayer<S>,
        limits: ClientLimits,
        drain: Arc<DrainSignal>,
    ) -> Self {
        let connections = Arc::default();
        Self { proxy, layer, limits, drain, spawn: TokioSpawn, connections }
    }
}

impl<S: Store, X> ProxyProtocol<S, X> {
    /// Spawns the requests of a connection over HTTP/2 in another way.
    #[must_use]
    pub fn spawn_with<Y: Spawn>(self, spawn: Y) -> ProxyProtocol<S, Y> {
        let Self { proxy, layer, limits, drain, spawn: _, connections } = self;
        ProxyProtocol { proxy, layer, limits, drain, spawn, connections }
    }
}

impl<S: Store, X: Spawn> Protocol for ProxyProtocol<S, X> {
    fn name(&self) -> &'static str {
        "proxy"
    }

    fn serve<'a>(
        &'a self,
        connection: Connection,
        shutdown: Shutdown<'a>,
    ) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(client::serve(self, connection, shutdown))
    }

    fn connections(&self) -> &Arc<ConnectionCount> {
        &self.connections
    }

    fn flag(&self) -> &'static str {
        "listen"
    }

    fn url(&self, address: SocketAddr, has_tls: bool) -> String {
        let scheme = if has_tls { "https" } else { "http" };
        format!("{scheme}://{address} to {}", self.proxy.state.load().settings.upstream_list())
    }

    fn alpn(&self) -> &'static [&'static [u8]] {
        &[H2, HTTP1]
    }

    /// Measured: a sixth more requests.
    fn threads(&self) -> Threads {
        Threads::PerCore
    }

    /// A connection of a client has another one behind it, to an upstream.
    fn files_per_connection(&self) -> usize {
        2
    }

    fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(ProxyMetrics(Arc::clone(&self.proxy))));
    }

    fn background(&self) -> Option<BoxFuture<'static, ()>> {
        let proxy = Arc::clone(&self.proxy);
        Some(Box::pin(async move { proxy.maintain().await }))
    }
}

impl<S: Store, X> fmt::Debug for ProxyProtocol<S, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyProtocol").field("proxy", &self.proxy).finish_non_exhaustive()
    }
}
