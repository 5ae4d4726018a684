use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::protocol::http::Pulse;

/// Whether a server is ready, and how its last reload went.
#[derive(Debug, Default)]
pub struct Readiness {
    phase: watch::Sender<Phase>,
    /// The last phase has begun: it is looked at for every response.
    is_draining: AtomicBool,
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
        // Relaxed: whoever sees it late is told with the next response.
        self.is_draining.store(true, Ordering::Relaxed);
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
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Ends when a connection over HTTP/2 is to be sent `GOAWAY`: when the server is draining, and
    /// the client has made its first request, since one that has just connected would be sent away
    /// unserved.
    pub(crate) async fn goaway(&self, pulse: &Pulse) {
        let _ = self.watch().wait_for(|phase| *phase == Phase::Draining).await;
        pulse.first_request().await;
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
