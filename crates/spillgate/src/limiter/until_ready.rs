use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::Limiter;
use super::tiers::Caller;
use crate::sync::lock_plain;
use crate::{Clock, Decision, Fingerprint};

impl<K: Hash + ?Sized, C: Clock, S: BuildHasher> Limiter<K, C, S> {
    /// Shorthand for [`until_ready_n`](Self::until_ready_n) with a cost of 1.
    ///
    /// # Errors
    ///
    /// The last decision, if the wait would exceed the timeout.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use spillgate::Limiter;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), spillgate::Error> {
    /// let pace: Limiter<str> = Limiter::new("50/s burst 1")?;
    /// for _page in 0..3 {
    ///     if let Err(denied) = pace.until_ready("crawler", Duration::from_secs(1)).await {
    ///         println!("busy: {denied:?}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn until_ready(
        &self,
        key: &K,
        timeout: Duration,
    ) -> impl Future<Output = Result<Decision, Decision>> + use<'_, K, C, S> {
        self.until_ready_n(key, 1, timeout)
    }

    /// Waits until `cost` is allowed, and spends it. Fails at once if the wait would exceed the
    /// timeout, or when the timeout expires in the queue behind other calls.
    ///
    /// Calls that wait for the same caller are served first come, first served; a plain
    /// [`check`](Self::check) may pass in between. With a
    /// [shaper](crate::AlgorithmKind::LeakyShaper) the call also waits for its slot.
    ///
    /// tokio's timer has a resolution of one millisecond, and what refills beyond the burst
    /// while it is late is lost: at hundreds per second and more, use a burst of a few
    /// milliseconds' worth.
    ///
    /// # Errors
    ///
    /// The last decision, if the wait would exceed the timeout. It may be an allowing one, if
    /// the queue or a shaper took too long; nothing is spent.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future spends nothing, except with a shaper once other calls have queued
    /// behind it.
    pub fn until_ready_n(
        &self,
        key: &K,
        cost: u64,
        timeout: Duration,
    ) -> impl Future<Output = Result<Decision, Decision>> + use<'_, K, C, S> {
        let caller = self.caller(key);
        async move {
            // `Duration::MAX` would overflow.
            const YEARS: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
            let deadline = Instant::now() + timeout.min(YEARS);
            let result = self.wait(caller, cost, deadline).await;
            match &result {
                Ok(decision) => self.counters.count(decision),
                Err(_) => self.counters.count_denied(),
            }
            result
        }
    }

    /// How many callers have calls waiting.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queues.len()
    }

    async fn wait(
        &self,
        caller: Caller,
        cost: u64,
        deadline: Instant,
    ) -> Result<Decision, Decision> {
        let waiter = self.queues.join(caller.fingerprint);
        let Ok(_turn) = timeout_at(deadline, waiter.turn.lock()).await else {
            return Err(self.look(caller, None, cost, self.clock.now()));
        };
        loop {
            let decision = self.try_spend(caller, None, cost, self.clock.now());
            if decision.is_allowed() {
                return self.wait_for_turn(caller, decision, deadline).await;
            }
            match decision.retry_after() {
                Some(after) if in_time(after, deadline) => sleep(after).await,
                _ => return Err(decision),
            }
        }
    }

    /// Waits for a shaper's slot, which is released if the wait is too long or cancelled.
    async fn wait_for_turn(
        &self,
        caller: Caller,
        decision: Decision,
        deadline: Instant,
    ) -> Result<Decision, Decision> {
        if decision.wait().is_zero() {
            return Ok(decision);
        }
        let slot = ShaperSlot { limiter: self, caller, decision };
        if !in_time(decision.wait(), deadline) {
            return Err(decision);
        }
        sleep(decision.wait()).await;
        std::mem::forget(slot);
        Ok(decision)
    }
}

fn in_time(wait: Duration, deadline: Instant) -> bool {
    Instant::now().checked_add(wait).is_some_and(|ready| ready <= deadline)
}

/// A slot in a shaper's queue, released on drop.
struct ShaperSlot<'l, K: ?Sized, C: Clock, S> {
    limiter: &'l Limiter<K, C, S>,
    caller: Caller,
    decision: Decision,
}

impl<K: ?Sized, C: Clock, S> Drop for ShaperSlot<'_, K, C, S> {
    fn drop(&mut self) {
        // Only the last in the queue can leave without a gap that no other call may fill.
        if let Some(spent) = self.decision.spent() {
            self.limiter.undo_last(self.caller, None, &spent, self.limiter.clock.now());
        }
    }
}

type Turns = HashMap<Fingerprint, Arc<tokio::sync::Mutex<()>>>;

/// Nobody joins a queue or leaves it while this is held.
pub(super) type HeldQueues<'q> = MutexGuard<'q, Turns>;

/// A queue per caller with waiting calls. An entry exists only while calls wait.
#[derive(Default)]
pub(super) struct Queues {
    waiting: Mutex<Turns>,
}

/// A call's place in a queue.
struct Waiter<'q> {
    queues: &'q Queues,
    caller: Fingerprint,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Queues {
    pub(super) fn hold(&self) -> HeldQueues<'_> {
        lock_plain(&self.waiting)
    }

    fn len(&self) -> usize {
        lock_plain(&self.waiting).len()
    }

    fn join(&self, caller: Fingerprint) -> Waiter<'_> {
        let mut waiting = lock_plain(&self.waiting);
        let turn = Arc::clone(waiting.entry(caller).or_default());
        Waiter { queues: self, caller, turn }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut waiting = lock_plain(&self.queues.waiting);
        // Two are left, the map's and this one: the queue is empty.
        if Arc::strong_count(&self.turn) == 2 {
            waiting.remove(&self.caller);
        }
    }
}
