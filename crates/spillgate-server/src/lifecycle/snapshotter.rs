use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use spillgate::{Clock, SystemClock};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{debug, error};

use crate::App;
use crate::snapshot::{SnapshotFile, save};

#[derive(Clone, Debug)]
pub(super) struct Snapshotter {
    /// Held while a snapshot is written.
    file: Arc<Mutex<SnapshotFile>>,
    app: Arc<App>,
    metrics: SnapshotMetrics,
}

impl Snapshotter {
    pub(super) fn new(file: SnapshotFile, app: Arc<App>, metrics: SnapshotMetrics) -> Self {
        Self { file: Arc::new(Mutex::new(file)), app, metrics }
    }

    pub(super) async fn run(self, every: Duration) {
        let mut ticks = interval(every);
        // A slow disk gets no backlog.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            // It was logged, and the next one may succeed.
            let _ = self.save().await;
        }
    }

    /// Writes one on a thread that serves no clients.
    pub(super) async fn save(&self) -> io::Result<()> {
        let own = self.clone();
        spawn_blocking(move || own.save_now()).await?
    }

    fn save_now(&self) -> io::Result<()> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (gate, begin) = (self.app.gate(), SystemClock.now());
        let written = file.write(|out| save(gate, &SystemClock, gate.store().seed(), out));
        let path = file.path().display();
        match written {
            Ok(bytes) => {
                self.metrics.written(bytes);
                let took = SystemClock.now().since(begin);
                debug!(%path, bytes, ?took, "wrote snapshot");
                Ok(())
            }
            Err(error) => {
                self.metrics.failed();
                error!(%path, %error, "cannot write snapshot; the last one stays");
                Err(io::Error::new(error.kind(), format!("cannot write {path}: {error}")))
            }
        }
    }
}

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
        for outcome in [WRITTEN, FAILED] {
            drop(self.outcomes.get_or_create(&outcome));
        }
        let registry = registry.sub_registry_with_prefix("spillgate_snapshot");
        registry.register("writes", "Snapshots, by outcome", self.outcomes.clone());
        let help = "Unix time of the last snapshot; 0 if there is none";
        registry.register_with_unit("timestamp", help, Unit::Seconds, self.last.clone());
        let help = "Size of the last snapshot";
        registry.register_with_unit("size", help, Unit::Bytes, self.size.clone());
        let interval = Gauge::<f64, AtomicU64>::default();
        interval.set(every.as_secs_f64());
        let help = "Configured interval between snapshots";
        registry.register_with_unit("interval", help, Unit::Seconds, interval);
    }

    fn written(&self, bytes: u64) {
        self.outcomes.get_or_create(&WRITTEN).inc();
        self.last.set(SystemClock.now().as_nanos() / 1_000_000_000);
        self.size.set(bytes);
    }

    fn failed(&self) {
        self.outcomes.get_or_create(&FAILED).inc();
    }
}
