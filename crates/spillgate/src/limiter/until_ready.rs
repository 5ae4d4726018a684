use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::Limiter;
use super::tiers::Client;
use crate::sync::lock_plain;
use crate::{Clock, Decision, Fingerprint};

impl<K: Hash + ?Sized, C: Clock, S: BuildHasher> Limiter<K, C, S> {
    /// Waits until 1 passes for a client, and spends it; gives up if that would take
    /// longer than `patience`: at once, or when it has run out for a caller who stands
    /// in line behind others.
    ///
    /// Callers who wait for the same client are served in the order in which they
    /// came; a plain [`check`](Self::check) may pass in between. With a
    /// [shaper](crate::AlgorithmKind::LeakyShaper) the call also waits for its
    /// turn.
    ///
    /// tokio's timer is fine to a millisecond, and what is refilled beyond the burst
    /// while it is late is lost: at rates of hundreds a second and more, allow for it
    /// with a burst of some milliseconds' worth.
    ///
    /// # Errors
    ///
    /// The decision that stood in the way, if the wait would have been too long. It may
    /// be one that would pass, if it was the line or a shaper that took too long;
    /// nothing is spent.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future spends nothing. (With a shaper: unless others have
    /// queued behind it by then; its place is passed on to nobody.)
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
        patience: Duration,
    ) -> impl Future<Output = Result<Decision, Decision>> + use<'_, K, C, S> {
        self.until_ready_n(key, 1, patience)
    }

    /// Waits until `cost` passes for a client, and spends it; otherwise as
    /// [`until_ready`](Self::until_ready).
    ///
    /// # Errors
    ///
    /// The decision that stood in the way, if the wait would have been too long.
    pub fn until_ready_n(
        &self,
        key: &K,
        cost: u64,
        patience: Duration,
    ) -> impl Future<Output = Result<Decision, Decision>> + use<'_, K, C, S> {
        let client = self.client(key);
        async move {
            // Added to the present, an endless patience would overflow.
            const YEARS: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
            let deadline = Instant::now() + patience.min(YEARS);
            let answer = self.wait(client, cost, deadline).await;
            match &answer {
                Ok(decision) => self.counters.count(decision),
                Err(_) => self.counters.count_denied(),
            }
            answer
        }
    }

    /// How many clients somebody waits for.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queues.len()
    }

    async fn wait(
        &self,
        client: Client,
        cost: u64,
        deadline: Instant,
    ) -> Result<Decision, Decision> {
        let line = self.queues.join(client.fingerprint);
        let Ok(_turn) = timeout_at(deadline, line.turn.lock()).await else {
            return Err(self.look(client, None, cost, self.clock.now()));
        };
        loop {
            let decision = self.try_spend(client, None, cost, self.clock.now());
            if decision.is_allowed() {
                return self.wait_for_turn(client, decision, deadline).await;
            }
            match decision.retry_after() {
                Some(after) if in_time(after, deadline) => sleep(after).await,
                _ => return Err(decision),
            }
        }
    }

    /// Waits as a shaper asks, holding a place that is given back if the wait is
    /// too long or cancelled.
    async fn wait_for_turn(
        &self,
        client: Client,
        decision: Decision,
        deadline: Instant,
    ) -> Result<Decision, Decision> {
        if decision.wait().is_zero() {
            return Ok(decision);
        }
        let place = Place { limiter: self, client, decision };
        if !in_time(decision.wait(), deadline) {
            return Err(decision);
        }
        sleep(decision.wait()).await;
        std::mem::forget(place);
        Ok(decision)
    }
}

fn in_time(wait: Duration, deadline: Instant) -> bool {
    Instant::now().checked_add(wait).is_some_and(|ready| ready <= deadline)
}

/// A place in a shaper's queue, given back when dropped.
struct Place<'l, K: ?Sized, C: Clock, S> {
    limiter: &'l Limiter<K, C, S>,
    client: Client,
    decision: Decision,
}

impl<K: ?Sized, C: Clock, S> Drop for Place<'_, K, C, S> {
    fn drop(&mut self) {
        // Only the last in line can leave without a gap that nobody may fill.
        if let Some(charged) = self.decision.charged() {
            self.limiter.uncharge(self.client, None, &charged, self.limiter.clock.now());
        }
    }
}

/// Where callers who wait for one client stand in line. There is an entry for a
/// client only while somebody waits, so the map is as large as the waiting are many.
#[derive(Default)]
pub(super) struct Queues {
    waiting: Mutex<HashMap<Fingerprint, Arc<tokio::sync::Mutex<()>>>>,
}

/// A caller's stay in a line.
struct Line<'q> {
    queues: &'q Queues,
    client: Fingerprint,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Queues {
    fn len(&self) -> usize {
        lock_plain(&self.waiting).len()
    }

    fn join(&self, client: Fingerprint) -> Line<'_> {
        let mut waiting = lock_plain(&self.waiting);
        let turn = Arc::clone(waiting.entry(client).or_default());
        Line { queues: self, client, turn }
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let mut waiting = lock_plain(&self.queues.waiting);
        // Two are left, the map's and this one: the line is empty.
        if Arc::strong_count(&self.turn) == 2 {
            waiting.remove(&self.client);
        }
    }
}
