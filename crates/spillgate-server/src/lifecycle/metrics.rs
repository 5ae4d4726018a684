use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use spillgate::{Clock, SystemClock};

use crate::App;

/// Metrics of snapshots.
#[derive(Clone, Debug, Default)]
pub(super) struct SnapshotMetrics {
    outcomes: Family<[(&'static str, &'static str); 1], Counter>,
    last: Gauge<u64, AtomicU64>,
    size: Gauge<u64, AtomicU64>,
}

const WRITTEN: [(&str, &str); 1] = [("outcome", "written")];
const FAILED: [(&str, &str); 1] = [("outcome", "failed")];

impl SnapshotMetrics {
    /// Registers the metrics, zeros included: alerts rely on them.
    pub(super) fn new(app: &App, every: Duration) -> Self {
        let metrics = Self::default();
        app.register(|registry| metrics.register(registry, every));
        metrics
    }

    fn register(&self, registry: &mut Registry, every: Duration) {
        let metrics = self;
        for outcome in [WRITTEN, FAILED] {
            drop(metrics.outcomes.get_or_create(&outcome));
        }
        let registry = registry.sub_registry_with_prefix("spillgate_snapshot");
        registry.register("writes", "Snapshots, by outcome", metrics.outcomes.clone());
        let help = "Unix time of the last snapshot; 0 if there is none";
        registry.register_with_unit("timestamp", help, Unit::Seconds, metrics.last.clone());
        let help = "Size of the last snapshot";
        registry.register_with_unit("size", help, Unit::Bytes, metrics.size.clone());
        let interval = Gauge::<f64, AtomicU64>::default();
        interval.set(every.as_secs_f64());
        let help = "Configured interval between snapshots";
        registry.register_with_unit("interval", help, Unit::Seconds, interval);
    }

    pub(super) fn written(&self, bytes: u64) {
        self.outcomes.get_or_create(&WRITTEN).inc();
        self.last.set(SystemClock.now().as_nanos() / 1_000_000_000);
        self.size.set(bytes);
    }

    pub(super) fn failed(&self) {
        self.outcomes.get_or_create(&FAILED).inc();
    }
}
