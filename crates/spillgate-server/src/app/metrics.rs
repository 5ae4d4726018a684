//! What a server counts beside what its limits decide.

use std::fmt;
use std::sync::{Arc, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use spillgate_net::metrics::{counters, gauges};
use spillgate_tower::{MetricsFormat, SpillgateLayer};

use super::store_metrics::StoreMetrics;
use super::{App, Phase, Readiness, Reservations};
use crate::AnyStore;
use crate::protocol::grpc;
use crate::protocol::http::Stats;
use crate::protocol::resp::Endpoint;

impl App {
    /// Everything that is counted.
    #[must_use]
    pub fn metrics(&self, format: MetricsFormat) -> String {
        format.encode(&self.registry.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts what this server does.
    pub(super) fn register_own(&self) {
        self.register(|registry| self.add_own(registry.sub_registry_with_prefix("spillgate")));
    }

    fn add_own(&self, own: &mut Registry) {
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        own.register("build", "The server that is running", build);
        own.register_collector(Box::new(Server {
            resp: Arc::clone(&self.resp),
            http: Arc::clone(&self.stats),
            grpc: Arc::clone(&self.grpc),
            readiness: Arc::clone(&self.readiness),
            reservations: Arc::clone(&self.reservations),
        }));
        if let Some(store) = self.gate.store().shared() {
            own.register_collector(Box::new(StoreMetrics(Arc::clone(store))));
        }
    }
}

/// Asks the parts of a server for their counts whenever metrics are read.
struct Server {
    resp: Arc<Endpoint<SpillgateLayer<AnyStore>>>,
    http: Arc<Stats>,
    grpc: Arc<grpc::Stats>,
    readiness: Arc<Readiness>,
    reservations: Arc<Reservations>,
}

impl Collector for Server {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.http(&mut encoder)?;
        self.resp(&mut encoder)?;
        self.grpc(&mut encoder)?;
        self.life(&mut encoder)
    }
}

impl Server {
    fn http(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let requests = self.http.requests();
        let requests =
            requests.map(|(route, status, count)| ([("route", route), ("status", status)], count));
        counters(encoder, "http_requests", "Requests over HTTP", requests)?;
        let help = "Reservations that are not settled, expired ones among them";
        gauges(encoder, "reservations", help, [([], self.reservations.len() as u64)])
    }

    fn resp(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let counts = self.resp.stats().counts();
        let calls =
            [([("outcome", "allowed")], counts.allowed), ([("outcome", "denied")], counts.limited)];
        counters(encoder, "resp_calls", "Calls of CL.THROTTLE and SG.CHECK", calls)?;
        counters(
            encoder,
            "resp_commands",
            "Commands of the Redis protocol",
            [([], counts.commands)],
        )?;
        let errors = [
            ([("kind", "command")], counts.errors),
            ([("kind", "protocol")], counts.protocol_errors),
            ([("kind", "foreign")], counts.foreign),
            ([("kind", "evicted")], counts.evicted),
        ];
        counters(encoder, "resp_errors", "Errors of clients of the Redis protocol", errors)?;
        let help = "Bytes of requests that are not whole and of replies that are not read";
        gauges(encoder, "resp_buffered_bytes", help, [([], self.resp.buffered() as u64)])?;
        let Some(table) = self.resp.throttle().table() else { return Ok(()) };
        let help = "Keys of CL.THROTTLE for which there is room";
        gauges(encoder, "throttle_capacity", help, [([], table.capacity() as u64)])?;
        let help = "Keys of CL.THROTTLE forgotten although they had something spent";
        counters(encoder, "throttle_evictions", help, [([], table.evictions())])
    }

    fn grpc(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let calls = self.grpc.calls().map(|(code, count)| ([("code", code)], count));
        counters(encoder, "grpc_calls", "Calls of ShouldRateLimit", calls)?;
        let descriptors = self.grpc.descriptors();
        let descriptors = descriptors.map(|(outcome, count)| ([("outcome", outcome)], count));
        let help = "Descriptors of calls, by what became of them";
        counters(encoder, "grpc_descriptors", help, descriptors)
    }

    fn life(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (reloads, failed) = self.readiness.reloads();
        let outcomes = [([("outcome", "accepted")], reloads), ([("outcome", "refused")], failed)];
        counters(encoder, "reloads", "Reloads of the policy", outcomes)?;
        let last_failed = u64::from(self.readiness.reload_failure().is_some());
        let help = "1 if the last reload was refused";
        gauges(encoder, "reload_failed", help, [([], last_failed)])?;
        let is_ready = u64::from(self.readiness.phase() == Phase::Ready);
        gauges(encoder, "ready", "1 if the server is ready", [([], is_ready)])
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}
