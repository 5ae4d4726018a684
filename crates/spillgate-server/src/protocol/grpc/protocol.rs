use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;
use spillgate_net::metrics::counters;
use spillgate_net::tls::H2;
use spillgate_net::{Connection, ConnectionCount, Protocol, Shutdown, Threads};

use super::{GrpcServer, serve};

pub(crate) const DEFAULT_PORT: u16 = 8391;

#[derive(Clone, Debug)]
pub(crate) struct GrpcProtocol {
    server: Arc<GrpcServer>,
    connections: Arc<ConnectionCount>,
}

impl GrpcProtocol {
    pub(crate) fn new(server: GrpcServer) -> Self {
        Self { server: Arc::new(server), connections: Arc::default() }
    }
}

impl Protocol for GrpcProtocol {
    fn name(&self) -> &'static str {
        "grpc"
    }

    fn serve<'a>(
        &'a self,
        Connection { io, peer, .. }: Connection,
        shutdown: Shutdown<'a>,
    ) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(serve(io, Some(peer), &self.server, shutdown))
    }

    fn connections(&self) -> &Arc<ConnectionCount> {
        &self.connections
    }

    fn url(&self, address: SocketAddr, has_tls: bool) -> String {
        let scheme = if has_tls { "grpcs" } else { "grpc" };
        format!("{scheme}://{address}")
    }

    fn alpn(&self) -> &'static [&'static [u8]] {
        &[H2]
    }

    /// Measured: a quarter more calls.
    fn threads(&self) -> Threads {
        Threads::PerCore
    }

    fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }
}

impl Collector for GrpcProtocol {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let stats = &self.server.stats;
        let calls = stats.calls().map(|(code, count)| ([("code", code)], count));
        counters(&mut encoder, "grpc_calls", "ShouldRateLimit calls by status code", calls)?;
        let outcomes = stats.descriptors().map(|(outcome, count)| ([("outcome", outcome)], count));
        counters(&mut encoder, "grpc_descriptors", "Descriptors by outcome", outcomes)
    }
}
