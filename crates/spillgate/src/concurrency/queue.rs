//! Waiting for permits: first come, first served.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::busy::{Busy, BusyCause};
use super::shard::{Call, Shard, State};
use super::{Concurrency, Permit};
use crate::Fingerprint;
use crate::sync::MutexGuard;

impl<K: Hash + ?Sized, S: BuildHasher> Concurrency<K, S> {
    /// Shorthand for [`acquire_n`](Self::acquire_n) with one permit.
    ///
    /// # Errors
    ///
    /// As for [`acquire_n`](Self::acquire_n).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use spillgate::Concurrency;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), spillgate::Busy> {
    /// let exports = Concurrency::<str>::builder(2).queue(100).build();
    /// let permit = exports.acquire("alice", Duration::from_secs(5)).await?;
    /// println!("{} in flight", permit.in_flight());
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire(
        &self,
        key: &K,
        timeout: Duration,
    ) -> impl Future<Output = Result<Permit, Busy>> + Send + use<K, S> {
        self.acquire_n(key, 1, timeout)
    }

    /// Waits until `count` permits are free and all earlier calls for the key have theirs, and
    /// acquires them.
    ///
    /// The wait begins when the future is first polled. The future borrows nothing.
    ///
    /// # Errors
    ///
    /// At once, if the [queue](super::ConcurrencyBuilder::queue) of the key is full, if the
    /// count is above the limit, or if there is no room for another key. After `timeout`, if
    /// others still hold the permits.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the queue. If a permit was granted meanwhile, it is released.
    pub fn acquire_n(
        &self,
        key: &K,
        count: u32,
        timeout: Duration,
    ) -> impl Future<Output = Result<Permit, Busy>> + Send + use<K, S> {
        self.wait(Call { key: self.fingerprint(key), count, limit: None }, timeout)
    }

    /// The same under another limit, as a tier or a single key may have. Later calls under a
    /// higher limit wait behind it all the same.
    ///
    /// # Errors
    ///
    /// As for [`acquire_n`](Self::acquire_n).
    pub fn acquire_within(
        &self,
        key: &K,
        count: u32,
        limit: u32,
        timeout: Duration,
    ) -> impl Future<Output = Result<Permit, Busy>> + Send + use<K, S> {
        self.wait(Call { key: self.fingerprint(key), count, limit: Some(limit) }, timeout)
    }

    fn wait(
        &self,
        call: Call,
        timeout: Duration,
    ) -> impl Future<Output = Result<Permit, Busy>> + Send + use<K, S> {
        // `Duration::MAX` would overflow.
        const YEARS: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
        let shard = Arc::clone(self.shard(call.key));
        async move {
            let deadline = Instant::now() + timeout.min(YEARS);
            let mut place = match shard.hold_or_queue(&call)? {
                Held::Now(permit) => return Ok(permit),
                Held::Later(place) => place,
            };
            match timeout_at(deadline, &mut place.answer).await {
                Ok(Ok(answer)) => {
                    place.is_answered = true;
                    answer
                }
                _ => place.give_up(),
            }
        }
    }
}

/// What a call that may wait gets.
enum Held {
    Now(Permit),
    Later(QueuePlace),
}

/// The calls that wait for a key: a word, since most keys have none.
#[derive(Default)]
pub(super) struct Waiters(Option<Box<Line>>);

#[derive(Default)]
struct Line {
    calls: VecDeque<Waiter>,
}

struct Waiter {
    id: u64,
    call: Call,
    /// A permit that nobody takes from here releases itself.
    answer: oneshot::Sender<Result<Permit, Busy>>,
}

/// A call's own end of its place in a queue.
struct QueuePlace {
    shard: Arc<Shard>,
    key: Fingerprint,
    id: u64,
    answer: oneshot::Receiver<Result<Permit, Busy>>,
    is_answered: bool,
}

impl QueuePlace {
    /// Leaves the queue, unless the answer has come by now.
    fn give_up(mut self) -> Result<Permit, Busy> {
        self.is_answered = true;
        let held = self.shard.leave(self.key, self.id);
        // An answer that is sent from now on comes back to its sender.
        self.answer.close();
        self.answer.try_recv().unwrap_or(Err(Busy::new(BusyCause::TimedOut, held)))
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        if !self.is_answered {
            self.shard.leave(self.key, self.id);
        }
    }
}

impl Waiters {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |line| line.calls.len())
    }

    fn push(&mut self, waiter: Waiter) {
        self.0.get_or_insert_default().calls.push_back(waiter);
    }

    fn first(&self) -> Option<&Waiter> {
        self.0.as_ref()?.calls.front()
    }

    fn remove(&mut self, index: usize) -> Option<Waiter> {
        let calls = &mut self.0.as_mut()?.calls;
        let removed = calls.remove(index);
        if calls.is_empty() {
            self.0 = None;
        }
        removed
    }

    fn remove_id(&mut self, id: u64) -> Option<Waiter> {
        // Ids grow along the queue.
        let index = self.0.as_ref()?.calls.binary_search_by_key(&id, |waiter| waiter.id).ok()?;
        self.remove(index)
    }
}

impl Shard {
    fn hold_or_queue(self: &Arc<Self>, call: &Call) -> Result<Held, Busy> {
        if call.count == 0 {
            return Ok(Held::Now(Permit::uncounted(call.key, 0, self.in_flight(call.key))));
        }
        let mut state = self.lock();
        match self.try_hold_in(&mut state, call) {
            Ok(held) => Ok(Held::Now(Permit::counted(self, call.key, call.count, held))),
            Err(busy) if matches!(busy.cause, BusyCause::Held | BusyCause::Queued) => {
                let place = self.join(&mut state, call);
                place.map(Held::Later).ok_or(Busy { cause: BusyCause::QueueFull, ..busy })
            }
            Err(busy) => Err(busy),
        }
    }

    /// Joins the queue of a key, if it is not full.
    fn join(self: &Arc<Self>, state: &mut State, call: &Call) -> Option<QueuePlace> {
        let entry = state.entries.get_mut(&call.key)?;
        if entry.waiters.len() >= self.shared.queue {
            return None;
        }
        let (id, key, shard) = (state.next_waiter, call.key, Arc::clone(self));
        let (sender, answer) = oneshot::channel();
        entry.waiters.push(Waiter { id, call: *call, answer: sender });
        state.next_waiter += 1;
        state.waiting += 1;
        Some(QueuePlace { shard, key, id, answer, is_answered: false })
    }

    /// Leaves a queue, and returns how many permits are held.
    fn leave(self: &Arc<Self>, key: Fingerprint, id: u64) -> u64 {
        let mut state = self.lock();
        let Some(entry) = state.entries.get_mut(&key) else { return 0 };
        let held = entry.held;
        let left = entry.waiters.remove_id(id);
        if left.is_some() {
            state.waiting -= 1;
            // The next may need less than the one that leaves.
            self.admit(state, key);
        }
        held
    }

    /// Grants permits in the order of the queue, for as long as the first in it can have its.
    #[cold]
    #[inline(never)]
    pub(super) fn admit<'s>(
        self: &'s Arc<Self>,
        mut state: MutexGuard<'s, State>,
        key: Fingerprint,
    ) {
        loop {
            let answers = self.grant(&mut state, key);
            self.remove_idle(&mut state, key);
            // Waking a task runs code of others, which may use this shard.
            drop(state);
            // A call that left since then does not take its permit: for the next one.
            let returned = answers.into_iter().filter_map(|(to, answer)| to.send(answer).err());
            let returned = returned.flatten().map(|permit| u64::from(permit.into_count()));
            let returned: u64 = returned.sum();
            if returned == 0 {
                return;
            }
            state = self.lock();
            state.subtract(key, returned);
        }
    }

    fn grant(self: &Arc<Self>, state: &mut State, key: Fingerprint) -> Vec<Answer> {
        let mut answers = Vec::new();
        let mut granted = 0;
        let Some(entry) = state.entries.get_mut(&key) else { return answers };
        while let Some(call) = entry.waiters.first().map(|waiter| waiter.call) {
            let limit = u64::from(call.limit.unwrap_or_else(|| self.shared.limit()));
            let count = u64::from(call.count);
            let answer = if count > limit {
                Err(Busy::new(BusyCause::AboveLimit, entry.held))
            } else if entry.held + count <= limit {
                entry.held += count;
                granted += count;
                Ok(Permit::counted(self, key, call.count, entry.held))
            } else {
                break;
            };
            let waiter = entry.waiters.remove(0);
            answers.extend(waiter.map(|waiter| (waiter.answer, answer)));
        }
        state.waiting -= answers.len();
        state.add(granted);
        answers
    }

    /// Grants what a changed limit allows.
    pub(super) fn admit_waiting(self: &Arc<Self>) {
        let state = self.lock();
        let is_waited_for = |key: &Fingerprint| !state.entries[key].waiters.is_empty();
        let keys: Vec<_> = match state.waiting {
            0 => Vec::new(),
            _ => state.entries.keys().copied().filter(is_waited_for).collect(),
        };
        drop(state);
        keys.into_iter().for_each(|key| self.admit(self.lock(), key));
    }
}

type Answer = (oneshot::Sender<Result<Permit, Busy>>, Result<Permit, Busy>);
