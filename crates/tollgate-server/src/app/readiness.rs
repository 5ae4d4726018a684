use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whether a server is ready, and how its last reload went.
#[derive(Debug, Default)]
pub struct Readiness {
    state: Mutex<State>,
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
    /// It answers what it has received, and ends.
    Draining,
}

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    reload_failure: Option<String>,
}

impl Readiness {
    /// The server answers from now on.
    pub fn start(&self) {
        self.lock().phase = Phase::Ready;
    }

    /// The server is about to end.
    pub fn drain(&self) {
        self.lock().phase = Phase::Draining;
    }

    /// A new policy is in force.
    pub fn reloaded(&self) {
        self.lock().reload_failure = None;
        // Relaxed: counts order nothing.
        self.reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// A new policy was refused for this reason, and the old one stays.
    pub fn reload_failed(&self, why: impl Into<String>) {
        self.lock().reload_failure = Some(why.into());
        self.failed_reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// A new policy was refused, and whoever sent it was told why.
    pub fn refused(&self) {
        self.failed_reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// Where the server is in its life.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.lock().phase
    }

    /// Why the last reload was refused, if it was.
    #[must_use]
    pub fn reload_failure(&self) -> Option<String> {
        self.lock().reload_failure.clone()
    }

    /// How many reloads went well, and how many were refused.
    #[must_use]
    pub fn reloads(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.reloads), read(&self.failed_reloads))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
