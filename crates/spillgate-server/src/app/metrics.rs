//! Metrics of the server itself.

use std::fmt;
use std::sync::{Arc, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use spillgate_enforce::MetricsFormat;
use spillgate_net::metrics::{counters, gauges};

use super::store_metrics::StoreMetrics;
use super::{App, Phase, Readiness};

impl App {
    /// All metrics.
    pub fn metrics(&self, format: MetricsFormat) -> String {
        format.encode(&self.registry.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn register_own(&self, registry: &mut Registry) {
        let own = registry.sub_registry_with_prefix("spillgate");
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        own.register("build", "Build information", build);
        own.register_collector(Box::new(ServerMetrics(Arc::clone(&self.readiness))));
        if let Some(store) = self.gate().store().shared() {
            own.register_collector(Box::new(StoreMetrics(Arc::clone(store))));
        }
    }
}

#[derive(Debug)]
struct ServerMetrics(Arc<Readiness>);

impl Collector for ServerMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (reloads, failed) = self.0.reloads();
        let outcomes = [([("outcome", "accepted")], reloads), ([("outcome", "refused")], failed)];
        counters(&mut encoder, "reloads", "Policy reloads by outcome", outcomes)?;
        let last_failed = u64::from(self.0.reload_failure().is_some());
        let help = "Whether the last reload was refused";
        gauges(&mut encoder, "reload_failed", help, [([], last_failed)])?;
        let is_ready = u64::from(self.0.phase() == Phase::Ready);
        gauges(&mut encoder, "ready", "Whether the server is ready", [([], is_ready)])
    }
}
