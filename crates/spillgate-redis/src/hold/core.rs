use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use spillgate::{Busy, Decision, Permit, Timestamp};
use tokio::runtime::Handle;

use super::keeper;
use super::limit::HeldLimit;
use super::slice::{CallTerms, Slice, SliceCall};
use crate::Name;
use crate::backend::{Backend, PermitCall, PermitOp, Result};
use crate::flow::inherit_client;
use crate::pending_call::{CallNotifier, PendingCall};
use crate::stats::Counter;
use crate::store::StoreCore;

/// The permits that this node holds in Redis.
pub(crate) struct Holds<B: Backend>(Arc<HoldCore<B>>);

/// What requests share with the background task.
pub(super) struct HoldCore<B: Backend> {
    pub(super) store: Arc<StoreCore<B>>,
    /// By the names of callers, which differ from limit to limit.
    shards: [Mutex<HashMap<Name, Entry>>; SHARDS],
    calls: Counter,
    /// The number of the last call. One for all slices: Redis remembers it for longer than a slice.
    numbers: AtomicU64,
    /// Known after the first call.
    runtime: OnceLock<Handle>,
    /// True after shutdown. Relaxed: it is read and written under the lock of each shard.
    is_closed: AtomicBool,
}

/// A slice, and the limit that it is of.
pub(super) struct Entry {
    pub(super) limit: Arc<HeldLimit>,
    pub(super) slice: Slice,
}

/// A power of two.
const SHARDS: usize = 16;

/// How often a request looks for permits, each time after a call, before it is denied.
const ATTEMPTS: usize = 8;

/// Permits that a request needs.
#[derive(Clone)]
pub(crate) struct HoldRequest {
    pub(crate) limit: Arc<HeldLimit>,
    pub(crate) name: Name,
    pub(crate) count: u32,
    /// How many permits the caller has.
    pub(crate) permits: u32,
    pub(crate) is_shadow: bool,
}

/// What a request got: no permit if it was denied.
pub(crate) struct Taken {
    pub(crate) decision: Decision,
    pub(crate) permit: Option<Permit>,
}

/// The next step of a request.
enum Step {
    Done(Taken),
    /// It waits for the call in flight.
    Wait(PendingCall),
    /// It makes a call, and waits for that.
    Call(PendingCall, CallNotifier, SliceCall),
}

impl<B: Backend> Holds<B> {
    pub(crate) fn new(store: Arc<StoreCore<B>>) -> Self {
        Self(Arc::new(HoldCore {
            store,
            shards: Default::default(),
            calls: Counter::default(),
            numbers: AtomicU64::new(0),
            runtime: OnceLock::new(),
            is_closed: AtomicBool::new(false),
        }))
    }

    /// Takes permits out of a slice, or denies them, if that can be decided here and now.
    pub(crate) fn try_take(&self, request: &HoldRequest) -> Option<Taken> {
        let local = self.0.store.local();
        let mut shard = self.0.shard(&request.name);
        let entry = shard.get_mut(&request.name)?;
        self.0.look(entry, request, local)
    }

    /// Takes permits, out of a larger slice if need be.
    ///
    /// # Errors
    ///
    /// If Redis does not answer.
    pub(crate) async fn take(&self, request: &HoldRequest) -> Result<Taken> {
        self.0.start();
        for _ in 0..ATTEMPTS {
            let pending = match self.0.step(request) {
                Step::Done(taken) => return Ok(taken),
                Step::Wait(pending) => pending,
                Step::Call(pending, notifier, call) => {
                    self.0.send(request.name, call, notifier);
                    pending
                }
            };
            pending.outcome().await?;
        }
        let local = self.0.store.local();
        Ok(denied(request, request.limit.in_flight.in_flight(&request.name), local))
    }

    /// How many permits of a caller are held by all nodes, as far as known.
    pub(crate) fn in_flight(&self, limit: &HeldLimit, name: &Name) -> u32 {
        let others = self.0.shard(name).get(name).map_or(0, |entry| entry.slice.others());
        others.saturating_add(limit.in_flight.in_flight(name))
    }

    /// Gives back what is not in flight, and ends the background task.
    pub(crate) async fn shutdown(&self) {
        keeper::close(&self.0).await;
    }

    /// Callers with a slice, and calls to Redis so far.
    pub(crate) fn stats(&self) -> (u64, u64) {
        let slices = self.0.shards.iter().map(|shard| lock(shard).len() as u64);
        (slices.sum(), self.0.calls.value())
    }
}

impl<B: Backend> HoldCore<B> {
    /// Starts the background task with the first call.
    fn start(self: &Arc<Self>) {
        self.runtime.get_or_init(|| {
            let runtime = Handle::current();
            runtime.spawn(keeper::run(Arc::downgrade(self)));
            runtime
        });
    }

    pub(super) fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, HashMap<Name, Entry>>> {
        self.shards.iter().map(lock)
    }

    pub(super) fn shard(&self, name: &Name) -> MutexGuard<'_, HashMap<Name, Entry>> {
        // Names are hashes.
        lock(&self.shards[usize::from(name.as_bytes()[15]) % SHARDS])
    }

    /// What the next call about a slice of a limit is made with.
    pub(super) fn terms(&self, limit: &HeldLimit, local: Timestamp) -> CallTerms {
        // Relaxed: calls about one slice are made one after the other.
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        CallTerms { number, ttl: limit.ttl(), nodes: self.store.nodes(), local }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    pub(super) fn set_closed(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// What a request gets without a call.
    fn look(&self, entry: &mut Entry, request: &HoldRequest, local: Timestamp) -> Option<Taken> {
        let Entry { limit, slice } = entry;
        slice.set_limit(request.permits, request.is_shadow);
        let granted = slice.granted(local);
        match limit.in_flight.try_acquire_within(&request.name, request.count, granted) {
            Ok(permit) => {
                slice.note(permit.in_flight(), local);
                Some(allowed(request, permit, slice.others(), local))
            }
            Err(busy) if busy.is_full => Some(no_room(request, &busy, local)),
            Err(busy) if slice.is_denied(request.count, local) => {
                Some(denied(request, busy.in_flight.saturating_add(slice.others()), local))
            }
            Err(_) => None,
        }
    }

    fn step(&self, request: &HoldRequest) -> Step {
        let local = self.store.local();
        let mut shard = self.shard(&request.name);
        let entry = shard.entry(request.name).or_insert_with(|| Entry {
            limit: Arc::clone(&request.limit),
            slice: Slice::default(),
        });
        lapse(entry, &request.name, local);
        if let Some(taken) = self.look(entry, request, local) {
            return Step::Done(taken);
        }
        let Entry { limit, slice } = entry;
        if let Some(pending) = slice.pending.clone().filter(PendingCall::is_under_way) {
            slice.wait(request.count);
            return Step::Wait(pending);
        }
        let in_flight = limit.in_flight.in_flight(&request.name);
        let call = slice.take(in_flight, request.count, self.terms(limit, local));
        let (pending, notifier) = PendingCall::begin();
        slice.pending = Some(pending.clone());
        Step::Call(pending, notifier, call)
    }

    /// Makes a call in a task of its own, so that its reply is known also if the request is dropped.
    fn send(self: &Arc<Self>, name: Name, call: SliceCall, notifier: CallNotifier) {
        let core = Arc::clone(self);
        let calling = async move { core.call(name, call, &notifier).await };
        if let Some(runtime) = self.runtime.get() {
            runtime.spawn(inherit_client(calling));
        }
    }

    pub(super) async fn call(&self, name: Name, call: SliceCall, notifier: &CallNotifier) {
        self.calls.add(1);
        let (holder, op) = (self.store.node(), PermitOp::Hold(call.wanted));
        let reply = self.store.backend.permits(&PermitCall { name, holder, op }).await;
        let failure = match reply {
            Ok(reply) => {
                if let Some(entry) = self.shard(&name).get_mut(&name) {
                    let local = self.store.local();
                    lapse(entry, &name, local);
                    let in_flight = entry.limit.in_flight.in_flight(&name);
                    let expired = entry.slice.answered(&call, &reply, in_flight, local);
                    entry.limit.add_expired(expired.saturating_add(reply.expired));
                }
                None
            }
            Err(why) => Some(why),
        };
        notifier.notify(failure);
    }
}

/// Counts what has expired with a slice.
pub(super) fn lapse(entry: &mut Entry, name: &Name, local: Timestamp) {
    let Entry { limit, slice } = entry;
    let expired = slice.lapse(|| limit.in_flight.in_flight(name), local);
    limit.add_expired(expired);
}

fn lock<T>(shard: &Mutex<T>) -> MutexGuard<'_, T> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn allowed(request: &HoldRequest, permit: Permit, others: u32, local: Timestamp) -> Taken {
    let HoldRequest { count, permits, .. } = *request;
    let before = permit.in_flight().saturating_sub(count).saturating_add(others);
    // What others hold is not known to the moment.
    let before = before.min(permits.saturating_sub(count));
    Taken { decision: Decision::of_hold(permits, before, count, local), permit: Some(permit) }
}

fn denied(request: &HoldRequest, in_flight: u32, local: Timestamp) -> Taken {
    let HoldRequest { count, permits, .. } = *request;
    let in_flight = in_flight.max(permits.saturating_add(1).saturating_sub(count));
    let decision = Decision::of_hold(permits, in_flight, count, local);
    Taken { decision, permit: beyond(request) }
}

fn no_room(request: &HoldRequest, busy: &Busy, local: Timestamp) -> Taken {
    let decision = Decision::of_busy(request.permits, busy, request.count, local);
    Taken { decision, permit: beyond(request) }
}

/// In shadow mode a request gets its permits in any case.
fn beyond(request: &HoldRequest) -> Option<Permit> {
    let HoldRequest { limit, name, count, is_shadow, .. } = request;
    is_shadow.then(|| limit.in_flight.acquire_beyond(name, *count))
}
