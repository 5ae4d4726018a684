use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spillgate::{Clock, SystemClock};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{debug, error};

use super::metrics::SnapshotMetrics;
use crate::App;
use crate::snapshot::{SnapshotFile, save};

/// Writes snapshots.
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

    /// Writes one per interval, forever.
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
