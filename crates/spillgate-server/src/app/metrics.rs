//! What a server counts beside what its limits decide.

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
        own.register("build", "Build information", build);
        own.register_collector(Box::new(Server { readiness: Arc::clone(&self.readiness) }));
        if let Some(store) = self.gate().store().shared() {
            own.register_collector(Box::new(StoreMetrics(Arc::clone(store))));
        }
    }
}

/// Asks the parts of a server for their counts whenever metrics are read.
struct Server {
    readiness: Arc<Readiness>,
}

impl Collector for Server {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.life(&mut encoder)
    }
}

impl Server {
    fn life(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (reloads, failed) = self.readiness.reloads();
        let outcomes = [([("outcome", "accepted")], reloads), ([("outcome", "refused")], failed)];
        counters(encoder, "reloads", "Policy reloads by outcome", outcomes)?;
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
