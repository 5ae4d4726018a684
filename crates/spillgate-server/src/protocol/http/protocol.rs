use std::io;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use prometheus_client::registry::Registry;
use spillgate_net::{Connection, ConnectionCount, Protocol, Shutdown};

use super::{HttpServer, serve};

pub(crate) const DEFAULT_PORT: u16 = 8390;

/// HTTP/1.1, for programs, or for probes and operators alone.
#[derive(Clone, Debug)]
pub(crate) struct HttpProtocol {
    server: Arc<HttpServer>,
    connections: Arc<ConnectionCount>,
    is_admin: bool,
}

impl HttpProtocol {
    pub(crate) fn new(server: &Arc<HttpServer>) -> Self {
        Self { server: Arc::clone(server), connections: Arc::default(), is_admin: false }
    }

    /// A listener of its own for probes and operators, whom clients cannot lock out.
    pub(crate) fn admin(server: &Arc<HttpServer>) -> Self {
        Self { is_admin: true, ..Self::new(server) }
    }
}

impl Protocol for HttpProtocol {
    fn name(&self) -> &'static str {
        if self.is_admin { "admin" } else { "http" }
    }

    // On the shared threads: a policy can be replaced, and every caller be counted, which would
    // hold up others on the same thread.
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

    fn max_connections(&self) -> usize {
        if self.is_admin { 256 } else { usize::MAX }
    }

    fn files_per_connection(&self) -> usize {
        usize::from(!self.is_admin)
    }

    fn register(&self, registry: &mut Registry) {
        self.server.register(registry);
    }
}
