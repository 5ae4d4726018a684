use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::Notify;

/// What connections tell of themselves besides answers.
#[derive(Debug, Default)]
pub(super) struct Signals {
    lost: Notify,
    late: Notify,
    /// Calls that were late after those who made them had left, and of which nobody was told yet.
    abandoned: AtomicU32,
}

impl Signals {
    pub(super) fn note_lost(&self) {
        self.lost.notify_one();
    }

    /// Waits until a connection has ended.
    pub(super) async fn lost(&self) {
        self.lost.notified().await;
    }

    /// Notes a call that is late, and that nobody waits for any more.
    pub(super) fn note_abandoned(&self) {
        // Relaxed: the notification orders it.
        self.abandoned.fetch_add(1, Ordering::Relaxed);
        self.late.notify_one();
    }

    /// Waits for calls that are late and that nobody waits for any more, and tells how many.
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
