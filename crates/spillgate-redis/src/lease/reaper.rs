//! Gives idle slices back.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::JoinSet;

use super::core::LeaseCore;
use super::source::LeaseSource;
use super::table::LeaseId;
use super::take::SliceReturn;

/// How often leases are swept.
const PERIOD: Duration = Duration::from_millis(50);

/// How long a slice is held unused.
const IDLE: Duration = Duration::from_millis(250);

/// How long an idle caller is remembered.
const FORGOTTEN: Duration = Duration::from_secs(2);

/// How many slices are given back concurrently.
const AT_ONCE: usize = 128;

/// Sweeps until the leases are dropped or shut down.
pub(super) async fn run<S: LeaseSource>(inner: Weak<LeaseCore<S>>) {
    loop {
        tokio::time::sleep(PERIOD).await;
        let Some(inner) = inner.upgrade().filter(|inner| !inner.is_closed()) else { return };
        let back = inner.sweep();
        inner.give_back_all(back).await;
    }
}

impl<S: LeaseSource> LeaseCore<S> {
    /// Removes idle slices, and callers idle for longer.
    fn sweep(&self) -> Vec<(LeaseId, SliceReturn)> {
        let (local, margin) = (self.source.local(), self.source.margin());
        let mut back = Vec::new();
        for mut shard in self.table.shards() {
            shard.retain(|id, lease| {
                let idle = lease.idle(local);
                if idle >= IDLE && local >= lease.back_after {
                    back.extend(lease.give_back(margin, local).map(|back| (id, back)));
                }
                idle < FORGOTTEN
            });
        }
        // In a stable order, so that simulations can be replayed.
        back.sort_by_key(|(_, back)| back.exchange.name);
        back
    }

    /// Gives everything back, including what takes in flight bring.
    pub(super) async fn close(self: &Arc<Self>) {
        self.set_closed();
        let (local, margin) = (self.source.local(), self.source.margin());
        let (mut back, mut pending) = (Vec::new(), Vec::new());
        for mut shard in self.table.shards() {
            shard.retain(|id, lease| {
                back.extend(lease.give_back(margin, local).map(|back| (id, back)));
                pending.extend(lease.pending().cloned());
                false
            });
        }
        self.give_back_all(back).await;
        for pending in pending {
            pending.outcome().await;
        }
    }

    pub(super) async fn give_back_all(self: &Arc<Self>, back: Vec<(LeaseId, SliceReturn)>) {
        let mut under_way = JoinSet::new();
        for (id, back) in back {
            if under_way.len() >= AT_ONCE {
                under_way.join_next().await;
            }
            let inner = Arc::clone(self);
            under_way.spawn(async move { inner.give_back(id, back).await });
        }
        under_way.join_all().await;
    }
}
