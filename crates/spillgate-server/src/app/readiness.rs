use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use spillgate_net::DrainSignal;

/// Whether a server is ready, and how its last reload went.
#[derive(Debug, Default)]
pub struct Readiness {
    phase: watch::Sender<Phase>,
    drain: Arc<DrainSignal>,
    reload_failure: Mutex<Option<String>>,
    reloads: AtomicU64,
    failed_reloads: AtomicU64,
}

/// The lifecycle phase of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Not listening yet.
    #[default]
    Starting,
    /// Serving.
    Ready,
    /// Shutting down gracefully.
    Draining,
}

impl Readiness {
    /// The server is ready.
    pub fn start(&self) {
        self.phase.send_replace(Phase::Ready);
    }

    /// The server shuts down.
    pub fn drain(&self) {
        self.drain.start();
        self.phase.send_replace(Phase::Draining);
    }

    /// A new policy is in force.
    pub fn reloaded(&self) {
        *self.lock() = None;
        // Relaxed: counts order nothing.
        self.reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// A reload was refused for this reason; the old policy stays.
    pub fn reload_failed(&self, why: impl Into<String>) {
        *self.lock() = Some(why.into());
        self.failed_reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// A policy sent to `/v1/policy` was refused, as its response says.
    pub fn refused(&self) {
        self.failed_reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// The current phase.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.drain.is_draining()
    }

    /// Announces the graceful shutdown to connections.
    pub(crate) fn drain_signal(&self) -> &Arc<DrainSignal> {
        &self.drain
    }

    /// The current phase, and its changes.
    pub(crate) fn watch(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Why the last reload was refused, if it was.
    pub fn reload_failure(&self) -> Option<String> {
        self.lock().clone()
    }

    /// Reloads accepted and refused.
    pub fn reloads(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.reloads), read(&self.failed_reloads))
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.reload_failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
