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

/// Where a server is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// It does not answer yet.
    #[default]
    Starting,
    /// It answers.
    Ready,
    /// It tells clients to leave, answers what it has received, and ends.
    Draining,
}

impl Readiness {
    /// The server answers from now on.
    pub fn start(&self) {
        self.phase.send_replace(Phase::Ready);
    }

    /// The server is about to end.
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

    /// A new policy was refused for this reason, and the old one stays.
    pub fn reload_failed(&self, why: impl Into<String>) {
        *self.lock() = Some(why.into());
        self.failed_reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// A new policy was refused, and whoever sent it was told why.
    pub fn refused(&self) {
        self.failed_reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// Where the server is in its life.
    #[must_use]
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// True if clients are to leave.
    pub(crate) fn is_draining(&self) -> bool {
        self.drain.is_draining()
    }

    /// Announces the graceful shutdown to connections.
    pub(crate) fn drain_signal(&self) -> &Arc<DrainSignal> {
        &self.drain
    }

    /// Where the server is in its life, and how that goes on.
    pub(crate) fn watch(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Why the last reload was refused, if it was.
    #[must_use]
    pub fn reload_failure(&self) -> Option<String> {
        self.lock().clone()
    }

    /// How many reloads went well, and how many were refused.
    #[must_use]
    pub fn reloads(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.reloads), read(&self.failed_reloads))
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.reload_failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
