//! Backpressure: calls queue here for a permit to be in flight.
//!
//! What a server cannot take yet waits here, so that clients and limits take turns, and so that
//! queueing does not look like a slow server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::Id;
use tokio::time::{Instant, timeout};
use tracing::warn;

use self::flows::Flows;
use self::window::Window;
use super::health::CallCounters;
use super::options::Options;
use crate::Name;
use crate::backend::{BackendError, Fault, Result};
use crate::flow::Flow;

mod flows;
mod window;

/// The longest wait, shorter than the timeout of most clients.
const LONGEST: Duration = Duration::from_secs(1);

/// Admits as many calls as keep the server busy. Others wait, bounded in number and time.
#[derive(Debug)]
pub(super) struct Queue {
    /// Calls in flight, and in the upper half those queued. Changed without the lock only while
    /// none is queued.
    load: AtomicU64,
    window: Window,
    waiting: Mutex<Flows<Option<Name>, Option<Id>, Waiter>>,
    most_waiting: usize,
    /// Numbers calls.
    next: AtomicU64,
    counters: Arc<CallCounters>,
}

/// Permission to be in flight, released on drop.
#[derive(Debug)]
pub(super) struct Permit {
    queue: Arc<Queue>,
}

/// A queued call.
#[derive(Debug)]
struct Waiter {
    number: u64,
    turn: oneshot::Sender<Turn>,
}

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// It has a permit.
    Begin,
    /// It was evicted.
    GiveWay,
}

/// The waiting side of a queued call. It leaves the queue on drop.
#[derive(Debug)]
struct Waiting<'q> {
    queue: &'q Queue,
    flow: Flow,
    number: u64,
    turn: oneshot::Receiver<Turn>,
    is_over: bool,
}

/// One queued call, in the upper half.
const WAITING: u64 = 1 << 32;

impl Queue {
    pub(super) fn new(options: &Options, counters: Arc<CallCounters>) -> Self {
        Self {
            load: AtomicU64::new(0),
            window: Window::new(options.in_flight, options.command_time_out),
            waiting: Mutex::default(),
            most_waiting: options.waiting,
            next: AtomicU64::new(0),
            counters,
        }
    }

    /// Takes a permit, if one is free and no call is queued.
    pub(super) fn enter_now(self: &Arc<Self>) -> Option<Permit> {
        // Acquire, as below: it orders reads of the queue.
        let enter = |load| (load < u64::from(self.window.size())).then_some(load + 1);
        let entered = self.load.fetch_update(Ordering::AcqRel, Ordering::Acquire, enter);
        entered.is_ok().then(|| Permit { queue: self.clone() })
    }

    /// Waits for a permit.
    ///
    /// # Errors
    ///
    /// If too many calls are queued, or it takes too long.
    pub(super) async fn wait(self: &Arc<Self>) -> Result<Permit> {
        let began = Instant::now();
        let entered = self.wait_in_line().await;
        self.counters.waited(began.elapsed());
        entered.inspect_err(|error| self.note_overload(error))
    }

    /// Calls in flight, and queued.
    pub(super) fn load(&self) -> (u64, u64) {
        let load = self.load.load(Ordering::Relaxed);
        (load % WAITING, load / WAITING)
    }

    /// Notes a reply time.
    pub(super) fn answered(&self, after: Duration) {
        self.window.answered(after, self.load.load(Ordering::Relaxed) >= WAITING);
    }

    async fn wait_in_line(self: &Arc<Self>) -> Result<Permit> {
        let mut waiting = self.queue_up()?;
        match timeout(LONGEST, &mut waiting.turn).await {
            Ok(Ok(Turn::Begin)) => {
                waiting.is_over = true;
                Ok(Permit { queue: self.clone() })
            }
            Ok(_) => {
                waiting.is_over = true;
                Err(self.full())
            }
            Err(_) => {
                let text = format!("a call was queued for {} ms", LONGEST.as_millis());
                Err(overloaded(&text))
            }
        }
    }

    fn queue_up(&self) -> Result<Waiting<'_>> {
        let flow = Flow::current();
        let (sender, turn) = oneshot::channel();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut waiting = self.lock();
        if waiting.len() >= self.most_waiting {
            let given_way =
                waiting.make_room(flow.limit, flow.client).ok_or_else(|| self.full())?;
            self.load.fetch_sub(WAITING, Ordering::AcqRel);
            let _ = given_way.turn.send(Turn::GiveWay);
        }
        waiting.push(flow.limit, flow.client, Waiter { number, turn: sender });
        self.load.fetch_add(WAITING, Ordering::AcqRel);
        // A permit may have become free just before.
        self.fill(&mut waiting);
        Ok(Waiting { queue: self, flow, number, turn, is_over: false })
    }

    /// Hands free permits to the next calls.
    fn fill(&self, waiting: &mut Flows<Option<Name>, Option<Id>, Waiter>) {
        while self.load.load(Ordering::Acquire) % WAITING < u64::from(self.window.size())
            && let Some(waiter) = waiting.pop()
        {
            // From queued to in flight.
            self.load.fetch_sub(WAITING - 1, Ordering::AcqRel);
            // Waiters leave under the lock, so it is still there.
            let _ = waiter.turn.send(Turn::Begin);
        }
    }

    fn leave(&self) {
        let leave = |load| (load < WAITING).then(|| load - 1);
        if self.load.fetch_update(Ordering::AcqRel, Ordering::Acquire, leave).is_err() {
            let mut waiting = self.lock();
            self.load.fetch_sub(1, Ordering::AcqRel);
            self.fill(&mut waiting);
        }
    }

    fn note_overload(&self, error: &BackendError) {
        if self.counters.refused() {
            let (in_flight, waiting) = self.load();
            warn!(
                %error, in_flight, waiting,
                "Redis is overloaded: rejecting queued calls, those of the busiest clients first"
            );
        }
    }

    fn full(&self) -> BackendError {
        overloaded(&format!("{} calls are queued", self.most_waiting))
    }

    fn lock(&self) -> MutexGuard<'_, Flows<Option<Name>, Option<Id>, Waiter>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.queue.leave();
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut waiting = self.queue.lock();
        let own = |waiter: &Waiter| waiter.number == self.number;
        if waiting.remove(self.flow.limit, self.flow.client, own).is_some() {
            self.queue.load.fetch_sub(WAITING, Ordering::AcqRel);
            return;
        }
        drop(waiting);
        // Its turn has come meanwhile: pass it on.
        if self.turn.try_recv() == Ok(Turn::Begin) {
            self.queue.leave();
        }
    }
}

fn overloaded(why: &str) -> BackendError {
    let text = format!("Redis is overloaded: {why}; retry later");
    BackendError::new(Fault::Overloaded, text)
}

#[cfg(test)]
mod tests;
