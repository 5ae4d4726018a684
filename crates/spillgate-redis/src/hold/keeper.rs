//! Renews slices, and gives back what is not needed.

use std::sync::{Arc, Weak};

use tokio::task::JoinSet;

use super::core::{HoldCore, lapse};
use super::slice::{PERIOD, SliceCall};
use crate::Name;
use crate::backend::Backend;
use crate::pending_call::{CallNotifier, PendingCall};

/// How many calls are made concurrently.
const AT_ONCE: usize = 128;

type KeepCall = (Name, SliceCall, CallNotifier);

/// Sweeps until the holds are dropped or shut down.
pub(super) async fn run<B: Backend>(core: Weak<HoldCore<B>>) {
    loop {
        tokio::time::sleep(PERIOD).await;
        let Some(core) = core.upgrade().filter(|core| !core.is_closed()) else { return };
        let calls = core.sweep(false);
        core.call_all(calls).await;
    }
}

/// Gives back what is not in flight, also what calls in flight bring.
pub(super) async fn close<B: Backend>(core: &Arc<HoldCore<B>>) {
    core.set_closed();
    let pending: Vec<_> = core
        .shards()
        .flat_map(|shard| {
            shard.values().filter_map(|entry| entry.slice.pending.clone()).collect::<Vec<_>>()
        })
        .collect();
    for pending in pending {
        let _ = pending.outcome().await;
    }
    let calls = core.sweep(true);
    core.call_all(calls).await;
}

impl<B: Backend> HoldCore<B> {
    /// Begins the calls that are due, and forgets slices that hold nothing.
    fn sweep(&self, is_last: bool) -> Vec<KeepCall> {
        let local = self.store.local();
        let mut calls = Vec::new();
        for mut shard in self.shards() {
            shard.retain(|name, entry| {
                if local < entry.slice.look_at && !is_last {
                    return true;
                }
                lapse(entry, name, local);
                let in_flight = entry.limit.in_flight.in_flight(name);
                let slice = &mut entry.slice;
                if slice.pending.as_ref().is_some_and(PendingCall::is_under_way) {
                    return true;
                }
                if is_last {
                    slice.give_up();
                }
                if let Some(call) = slice.keep(in_flight, self.terms(&entry.limit, local)) {
                    let (pending, notifier) = PendingCall::begin();
                    slice.pending = Some(pending);
                    calls.push((*name, call, notifier));
                    return true;
                }
                !slice.is_idle(in_flight, local)
            });
        }
        // In a stable order, so that simulations can be replayed.
        calls.sort_by_key(|(name, ..)| *name);
        calls
    }

    async fn call_all(self: &Arc<Self>, calls: Vec<KeepCall>) {
        let mut under_way = JoinSet::new();
        for (name, call, notifier) in calls {
            if under_way.len() >= AT_ONCE {
                under_way.join_next().await;
            }
            let core = Arc::clone(self);
            under_way.spawn(async move { core.call(name, call, &notifier).await });
        }
        under_way.join_all().await;
    }
}
