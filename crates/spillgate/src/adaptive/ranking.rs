//! Whether priorities count, and what they mean at present.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::priority::{Shedding, Standing};
use super::{Priority, Window};

/// Ranks calls by their priority, if that was asked for.
pub(super) struct Ranking {
    by_priority: AtomicBool,
    shedding: Shedding,
    /// Calls that arrived in this window.
    arrived: AtomicU64,
}

// Relaxed: a setting and counts, which order nothing.
impl Ranking {
    pub(super) fn new(by_priority: bool) -> Self {
        Self {
            by_priority: AtomicBool::new(by_priority),
            shedding: Shedding::new(),
            arrived: AtomicU64::new(0),
        }
    }

    pub(super) fn set_by_priority(&self, by_priority: bool) {
        self.by_priority.store(by_priority, Ordering::Relaxed);
    }

    /// Counts a call, and says where it stands; `None` if priorities do not count.
    #[inline]
    pub(super) fn arrive(&self, priority: Priority) -> Option<Standing> {
        self.by_priority.load(Ordering::Relaxed).then(|| {
            self.arrived.fetch_add(1, Ordering::Relaxed);
            self.shedding.arrive(priority)
        })
    }

    /// What [`arrive`](Self::arrive) would answer. Counts nothing.
    #[inline]
    pub(super) fn peek(&self, priority: Priority) -> Option<Standing> {
        self.by_priority.load(Ordering::Relaxed).then(|| self.shedding.peek(priority))
    }

    /// Forgets how many calls arrived.
    pub(super) fn begin_anew(&self) {
        self.arrived.store(0, Ordering::Relaxed);
    }

    /// Finds who is refused first in the next window: the same share of calls as in the last one,
    /// unless the share that can be served is known.
    pub(super) fn end_window(&self, window: &Window, share: Option<f64>) {
        if self.by_priority.load(Ordering::Relaxed) {
            let arrived = self.arrived.swap(0, Ordering::Relaxed).max(window.refused).max(1);
            let served = (arrived - window.refused) as f64 / arrived as f64;
            self.shedding.step(share.unwrap_or(served));
        }
    }
}
