use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::Notify;

/// What connections report besides replies.
#[derive(Debug, Default)]
pub(super) struct Signals {
    lost: Notify,
    late: Notify,
    /// Calls that timed out after their callers had given up, not yet reported.
    abandoned: AtomicU32,
}

impl Signals {
    pub(super) fn note_lost(&self) {
        self.lost.notify_one();
    }

    /// Waits until a connection is lost.
    pub(super) async fn lost(&self) {
        self.lost.notified().await;
    }

    /// Notes a timeout that nobody waits for.
    pub(super) fn note_abandoned(&self) {
        // Relaxed: the notification orders it.
        self.abandoned.fetch_add(1, Ordering::Relaxed);
        self.late.notify_one();
    }

    /// Waits for timeouts that nobody waits for, and returns how many.
    pub(super) async fn abandoned(&self) -> u32 {
        loop {
            self.late.notified().await;
            match self.abandoned.swap(0, Ordering::Relaxed) {
                0 => {}
                calls => return calls,
            }
        }
    }
}
