use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use spillgate::{KeyedState, Timestamp};
use tokio::runtime::Handle;
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use super::bucket::Bucket;
use super::caller_lease::{Lease, Spent};
use super::leases::Step;
use super::reaper;
use super::single_flight::{TakeOutcome, TakeRequest};
use super::slice_return::{SliceReturn, Tokens};
use super::source::{LeaseSource, Taken};
use super::table::{LeaseId, Shard, Table};
use crate::backend::Result;
use crate::effective_quota::EffectiveQuota;
use crate::flow::inherit_client;
use crate::stats::{Counter, LeaseCounters, LeaseStats};

/// What calls share with the background tasks.
#[derive(Debug)]
pub(super) struct LeaseCore<S: LeaseSource> {
    pub(super) source: Arc<S>,
    pub(super) table: Table<S::Caller>,
    pub(super) counters: LeaseCounters,
    /// What was neither spent nor given back.
    lost: Counter,
    /// Known after the first call.
    runtime: OnceLock<Handle>,
    /// True after shutdown. Relaxed: it is read under the lock of a shard, and everything is given
    /// back under that lock afterwards.
    is_closed: AtomicBool,
    /// Read while slices are given back, so that a shutdown waits for it.
    giving_back: Arc<RwLock<()>>,
}

impl<S: LeaseSource> LeaseCore<S> {
    pub(super) fn new(source: Arc<S>, hasher: KeyedState, capacity: usize) -> Self {
        Self {
            source,
            table: Table::new(hasher, capacity),
            counters: LeaseCounters::default(),
            lost: Counter::default(),
            runtime: OnceLock::new(),
            is_closed: AtomicBool::new(false),
            giving_back: Arc::default(),
        }
    }

    /// Starts the reaper at the first call.
    pub(super) fn start(self: &Arc<Self>) {
        self.runtime.get_or_init(|| {
            let runtime = Handle::current();
            runtime.spawn(reaper::run(Arc::downgrade(self)));
            runtime
        });
    }

    /// The number of nodes; `None` if nothing may be taken.
    pub(super) fn nodes(&self) -> Option<NonZeroU32> {
        if self.is_closed() { None } else { self.source.nodes() }
    }

    /// The next step of a call that could not be decided at once.
    pub(super) fn step(
        self: &Arc<Self>,
        id: LeaseId,
        asked: &EffectiveQuota,
        caller: &S::Caller,
        cost: u64,
        is_first: bool,
    ) -> Step<S::Caller> {
        let local = self.source.local();
        let Some(nodes) = self.nodes().filter(|nodes| cost > 0 && is_leased(asked, *nodes)) else {
            return Step::AskStrictly;
        };
        let mut shard = self.table.shard(id);
        if shard.lease(id).is_none()
            && (shard.recent.is_reserving(id.0) || !shard.recent.pays(id.0, local))
        {
            return Step::AskStrictly;
        }
        let back = self.make_room(&mut shard, id, asked, local);
        let lease = shard.lease_or(id, || Lease::new(caller.clone(), *asked, local));
        if is_first {
            lease.count(cost, local);
        } else {
            lease.wake(cost);
        }
        let step = match lease.spend(cost, local) {
            Spent::Allowed(decision) | Spent::Denied(decision) => {
                shard.answered(&decision);
                Step::Answer(decision)
            }
            // What another node may settle is better spent in Redis.
            Spent::Empty if is_first && shard.recent.is_reserving(id.0) => Step::AskStrictly,
            Spent::Empty => shard
                .lease(id)
                .map_or(Step::AskStrictly, |lease| lease.next_step(cost, nodes, local)),
        };
        drop(shard);
        self.give_back_later(id, back);
        step
    }

    /// Removes a lease with other terms or of another tier, or an idle one if the shard is full.
    /// Returns what to give back.
    fn make_room(
        &self,
        shard: &mut Shard<S::Caller>,
        id: LeaseId,
        asked: &EffectiveQuota,
        local: Timestamp,
    ) -> Option<SliceReturn<S::Caller>> {
        let is_full = shard.len() >= self.table.room;
        let gone = match shard.lease(id).map(|lease| lease.is_of(asked)) {
            Some(true) => None,
            Some(false) => shard.remove(id),
            None if is_full => shard.remove_idle(local),
            None => None,
        };
        gone?.give_back(local)
    }

    /// Runs a take in the background.
    pub(super) fn send(self: &Arc<Self>, id: LeaseId, request: TakeRequest<S::Caller>) {
        // Without a runtime the request is dropped, which wakes those who wait.
        if let Some(runtime) = self.runtime.get() {
            // On behalf of the current client.
            runtime.spawn(inherit_client(Arc::clone(self).run_take(id, request)));
        }
    }

    async fn run_take(self: Arc<Self>, id: LeaseId, request: TakeRequest<S::Caller>) {
        let taken = self
            .source
            .take(&request.caller, &request.effective, request.least, request.most)
            .await;
        self.counters.takes.add(taken.is_ok().into());
        if taken.as_ref().is_err_and(|why| !why.is_unmade()) {
            // It may have been made.
            self.lose(Tokens::whole(request.most));
        }
        let (outcome, back) = self.complete(id, &request, taken);
        // Before anybody is notified: a shutdown waits for that.
        if let Some(back) = back {
            self.give_back(id, back).await;
        }
        request.notifier.notify(outcome);
    }

    /// Adds what was taken to the lease. If the lease is gone, only the call is decided for which
    /// it was taken, and the rest is given back.
    fn complete(
        &self,
        id: LeaseId,
        request: &TakeRequest<S::Caller>,
        taken: Result<Taken>,
    ) -> (TakeOutcome, Option<SliceReturn<S::Caller>>) {
        let local = self.source.local();
        let mut shard = self.table.shard(id);
        match shard.lease(id).filter(|lease| lease.expects(request)) {
            Some(lease) if !self.is_closed() => (lease.complete(request, taken, local), None),
            _ => {
                let mut nobodys = Lease::new(request.caller.clone(), request.effective, local);
                let outcome = nobodys.complete(request, taken, local);
                (outcome, nobodys.give_back(local))
            }
        }
    }

    fn give_back_later(self: &Arc<Self>, id: LeaseId, back: Option<SliceReturn<S::Caller>>) {
        if let (Some(runtime), Some(back)) = (self.runtime.get(), back) {
            let (inner, shutdown_waits) = (Arc::clone(self), self.begin_giving_back());
            runtime.spawn(inherit_client(async move {
                inner.give_back(id, back).await;
                drop(shutdown_waits);
            }));
        }
    }

    /// Lets a shutdown wait until this is dropped; `None` if there is one already.
    pub(super) fn begin_giving_back(&self) -> Option<OwnedRwLockReadGuard<()>> {
        Arc::clone(&self.giving_back).try_read_owned().ok()
    }

    /// Waits for all that is being given back.
    pub(super) async fn all_given_back(&self) {
        drop(self.giving_back.write().await);
    }

    /// Gives slices back. What Redis does not take, the lease keeps for as long as it can be spent.
    pub(super) async fn give_back(&self, id: LeaseId, mut back: SliceReturn<S::Caller>) {
        back.send(&*self.source, &self.counters).await;
        let local = self.source.local();
        let is_kept = !self.is_closed() && self.table.shard(id).keep(id, &back, local);
        if !is_kept {
            back.lose_rest();
        }
        self.lose(back.lost);
    }

    fn lose(&self, tokens: Tokens) {
        if tokens > Tokens::default() {
            self.counters.lost.add(1);
            self.lost.add(tokens.thousandths());
        }
    }

    pub(super) fn set_closed(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    pub(super) fn stats(&self) -> LeaseStats {
        let mut stats = self.counters.stats();
        stats.lost_tokens = (self.lost.value() + 500) / 1000;
        for shard in self.table.shards() {
            stats.callers += shard.len() as u64;
            stats.allowed += shard.allowed;
            stats.denied += shard.denied;
        }
        stats
    }
}

fn is_leased(effective: &EffectiveQuota, nodes: NonZeroU32) -> bool {
    Bucket::of(effective).is_some_and(|bucket| bucket.most_held(nodes).is_some())
}
