//! Gives idle slices back.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::JoinSet;

use super::core::LeaseCore;
use super::slice_return::SliceReturn;
use super::source::LeaseSource;
use super::table::LeaseId;

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
        let shutdown_waits = inner.begin_giving_back();
        let back = inner.sweep();
        inner.give_back_all(back).await;
        drop(shutdown_waits);
    }
}

impl<S: LeaseSource> LeaseCore<S> {
    /// Removes idle and old slices, and callers idle for longer.
    fn sweep(&self) -> Vec<(LeaseId, SliceReturn<S::Caller>)> {
        let local = self.source.local();
        let mut back = Vec::new();
        for mut shard in self.table.shards() {
            shard.retain(|id, lease| {
                let idle = lease.idle(local);
                let is_known = idle < FORGOTTEN;
                let due = match is_known {
                    true => lease.give_back_due(idle >= IDLE, local),
                    false => lease.give_back(local),
                };
                back.extend(due.map(|back| (id, back)));
                is_known
            });
        }
        // In a stable order, so that simulations can be replayed.
        back.sort_by_key(|(_, back)| back.name());
        back
    }

    /// Gives everything back, including what takes in flight bring.
    pub(super) async fn close(self: &Arc<Self>) {
        self.set_closed();
        let local = self.source.local();
        let (mut back, mut pending) = (Vec::new(), Vec::new());
        for mut shard in self.table.shards() {
            shard.retain(|id, lease| {
                back.extend(lease.give_back(local).map(|back| (id, back)));
                pending.extend(lease.pending().cloned());
                false
            });
        }
        self.give_back_all(back).await;
        for pending in pending {
            pending.outcome().await;
        }
        self.all_given_back().await;
    }

    async fn give_back_all(self: &Arc<Self>, back: Vec<(LeaseId, SliceReturn<S::Caller>)>) {
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
