use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use spillgate_net::{Connection, ConnectionCount, Protocol, Shutdown};
use spillgate_tower::SpillgateLayer;

use super::{Endpoint, serve};
use crate::{AnyStore, App};

pub(crate) const DEFAULT_PORT: u16 = 6390;

/// The Redis protocol.
#[derive(Debug)]
pub(crate) struct RespProtocol(Arc<Endpoint<SpillgateLayer<AnyStore>>>);

impl RespProtocol {
    pub(crate) fn new(app: &App) -> Self {
        Self(Arc::clone(app.resp()))
    }
}

impl Protocol for RespProtocol {
    fn name(&self) -> &'static str {
        "resp"
    }

    fn default_port(&self) -> Option<u16> {
        Some(DEFAULT_PORT)
    }

    // On the shared threads. Measured: one thread per connection gains nothing, and a single client
    // with a pipeline loses.
    fn serve<'a>(
        &'a self,
        Connection { io, peer, .. }: Connection,
        shutdown: Shutdown<'a>,
    ) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(serve(io, Some(peer), &self.0, shutdown))
    }

    fn connections(&self) -> &Arc<ConnectionCount> {
        self.0.stats().connections()
    }

    fn url(&self, address: SocketAddr, has_tls: bool) -> String {
        let scheme = if has_tls { "rediss" } else { "redis" };
        format!("{scheme}://{address}")
    }
}
