use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use spillgate_net::tls::H2;
use spillgate_net::{Connection, ConnectionCount, Protocol, Shutdown, Threads};

use super::serve;
use crate::App;

pub(crate) const DEFAULT_PORT: u16 = 8391;

/// gRPC, over HTTP/2.
#[derive(Debug)]
pub(crate) struct GrpcProtocol {
    app: Arc<App>,
    connections: Arc<ConnectionCount>,
}

impl GrpcProtocol {
    pub(crate) fn new(app: &Arc<App>) -> Self {
        Self { app: Arc::clone(app), connections: Arc::default() }
    }
}

impl Protocol for GrpcProtocol {
    fn name(&self) -> &'static str {
        "grpc"
    }

    fn default_port(&self) -> Option<u16> {
        Some(DEFAULT_PORT)
    }

    fn serve<'a>(
        &'a self,
        Connection { io, peer, .. }: Connection,
        shutdown: Shutdown<'a>,
    ) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(serve(io, Some(peer), &self.app, shutdown))
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
}
