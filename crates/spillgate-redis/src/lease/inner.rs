use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use spillgate::{KeyedState, Timestamp};
use tokio::runtime::Handle;

use super::bucket::Bucket;
use super::caller_lease::{Lease, Spent};
use super::flight::{Landed, Order};
use super::keeper;
use super::leases::Step;
use super::source::{Source, Taken};
use super::stats::{Counters, LeaseStats};
use super::table::{Place, Shard, Table};
use super::take::Back;
use crate::counted::Counted;
use crate::engine::EngineError;
use crate::flow::inherit_client;

/// What calls share with the tasks that take and give back.
#[derive(Debug)]
pub(super) struct Inner<S: Source> {
    pub(super) source: Arc<S>,
    pub(super) table: Table<S::Caller>,
    pub(super) counters: Counters,
    /// Where tasks run: known once a call has come from there.
    runtime: OnceLock<Handle>,
    /// True once everything is given back. Relaxed: whoever could add to a shard looks at
    /// this while holding its lock, and everything is given back under that lock afterwards.
    is_closed: AtomicBool,
}

impl<S: Source> Inner<S> {
    pub(super) fn new(source: Arc<S>, hasher: KeyedState, capacity: usize) -> Self {
        Self {
            source,
            table: Table::new(hasher, capacity),
            counters: Counters::default(),
            runtime: OnceLock::new(),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Starts the task that gives back what is idle, at the first call.
    pub(super) fn start(self: &Arc<Self>) {
        self.runtime.get_or_init(|| {
            let runtime = Handle::current();
            runtime.spawn(keeper::keep(Arc::downgrade(self)));
            runtime
        });
    }

    /// How many nodes share the buckets; `None` if nothing is to be taken.
    pub(super) fn nodes(&self) -> Option<NonZeroU32> {
        if self.is_closed() { None } else { self.source.nodes() }
    }

    /// What a call does that could not be decided at once.
    pub(super) fn step(
        self: &Arc<Self>,
        place: Place,
        asked: &Counted,
        caller: &S::Caller,
        cost: u64,
        is_first: bool,
    ) -> Step<S::Caller> {
        let local = self.source.local();
        let Some(nodes) = self.nodes().filter(|nodes| cost > 0 && is_leased(asked, *nodes)) else {
            return Step::AskStrictly;
        };
        let mut shard = self.table.shard(place);
        if shard.lease(place).is_none() && (shard.is_reserving(place) || !shard.pays(place, local))
        {
            return Step::AskStrictly;
        }
        let back = self.make_room(&mut shard, place, asked, local);
        let lease = shard.lease_or(place, || Lease::new(caller.clone(), *asked, local));
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
            // What may be settled by another node is better spent where that node will look.
            Spent::Empty if is_first && shard.is_reserving(place) => Step::AskStrictly,
            Spent::Empty => shard
                .lease(place)
                .map_or(Step::AskStrictly, |lease| lease.next_step(cost, nodes, local)),
        };
        drop(shard);
        self.give_back_later(place, back);
        step
    }

    /// Lets go of a lease by other terms or of another tier, and if the shard is full of one that
    /// is idle. Says how they are given back.
    fn make_room(
        &self,
        shard: &mut Shard<S::Caller>,
        place: Place,
        asked: &Counted,
        local: Timestamp,
    ) -> Option<Back> {
        let is_full = shard.len() >= self.table.room();
        let gone = match shard.lease(place).map(|lease| lease.is_of(asked)) {
            Some(true) => None,
            Some(false) => shard.remove(place),
            None if is_full => shard.remove_idle(local),
            None => None,
        };
        gone?.give_back(self.source.margin(), local)
    }

    /// Sends a take on its way.
    pub(super) fn send(self: &Arc<Self>, place: Place, order: Order<S::Caller>) {
        // Without a runtime the order is dropped, and with it the flight.
        if let Some(runtime) = self.runtime.get() {
            // The take is made for whoever calls now.
            runtime.spawn(inherit_client(Arc::clone(self).fly(place, order)));
        }
    }

    async fn fly(self: Arc<Self>, place: Place, order: Order<S::Caller>) {
        let taken = self.source.take(&order.caller, &order.counted, order.least, order.most).await;
        self.counters.takes.add(taken.is_ok().into());
        let (landed, back) = self.land(place, &order, taken);
        // Before anybody hears of it: whoever ends the node waits for that.
        if let Some(back) = back {
            self.give_back(place, back).await;
        }
        order.landing.tell(landed);
    }

    /// Adds what was taken to the lease. If that is gone meanwhile, only the call is decided
    /// for which it was taken, and the rest is given back.
    fn land(
        &self,
        place: Place,
        order: &Order<S::Caller>,
        taken: Result<Taken, EngineError>,
    ) -> (Landed, Option<Back>) {
        let local = self.source.local();
        let mut shard = self.table.shard(place);
        match shard.lease(place).filter(|lease| lease.expects(order)) {
            Some(lease) if !self.is_closed() => (lease.land(order, taken, local), None),
            _ => {
                let mut nobodys = Lease::new(order.caller.clone(), order.counted, local);
                let landed = nobodys.land(order, taken, local);
                (landed, nobodys.give_back(self.source.margin(), local))
            }
        }
    }

    fn give_back_later(self: &Arc<Self>, place: Place, back: Option<Back>) {
        if let (Some(runtime), Some(back)) = (self.runtime.get(), back) {
            let inner = Arc::clone(self);
            runtime.spawn(inherit_client(async move { inner.give_back(place, back).await }));
        }
    }

    /// Gives a slice back. If the engine says that it cannot, the lease goes on holding it; if
    /// the engine says nothing, it may have happened, and the slice is lost.
    pub(super) async fn give_back(&self, place: Place, back: Back) {
        match self.source.exchange(&back.exchange).await {
            Ok(true) => self.counters.given_back.add(1),
            Ok(false) if !self.is_closed() => {
                if !self.table.shard(place).keep(place, &back) {
                    self.counters.lost.add(1);
                }
            }
            _ => self.counters.lost.add(1),
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
        for shard in self.table.shards() {
            stats.callers += shard.len() as u64;
            stats.allowed += shard.allowed;
            stats.denied += shard.denied;
        }
        stats
    }
}

fn is_leased(counted: &Counted, nodes: NonZeroU32) -> bool {
    Bucket::of(counted).is_some_and(|bucket| bucket.most_held(nodes).is_some())
}
