use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;
use spillgate_net::metrics::{counters, gauges};
use spillgate_net::{Connection, ConnectionCount, Protocol, Shutdown};

use super::{Endpoint, serve};

pub(crate) const DEFAULT_PORT: u16 = 6390;

#[derive(Clone, Debug)]
pub(crate) struct RespProtocol(Arc<Endpoint>);

impl RespProtocol {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self(Arc::new(endpoint))
    }
}

impl Protocol for RespProtocol {
    fn name(&self) -> &'static str {
        "resp"
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

    fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }
}

impl Collector for RespProtocol {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let counts = self.0.stats().counts();
        let calls =
            [([("outcome", "allowed")], counts.allowed), ([("outcome", "denied")], counts.limited)];
        let help = "CL.THROTTLE and SG.CHECK calls by outcome";
        counters(&mut encoder, "resp_calls", help, calls)?;
        let commands = [([], counts.commands)];
        counters(&mut encoder, "resp_commands", "RESP commands received", commands)?;
        let errors = [
            ([("kind", "command")], counts.errors),
            ([("kind", "protocol")], counts.protocol_errors),
            ([("kind", "foreign")], counts.foreign),
            ([("kind", "evicted")], counts.evicted),
        ];
        counters(&mut encoder, "resp_errors", "RESP errors by kind", errors)?;
        let help = "Bytes buffered for incomplete requests and unread replies";
        gauges(&mut encoder, "resp_buffered_bytes", help, [([], self.0.buffered() as u64)])
    }
}
