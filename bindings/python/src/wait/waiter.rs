use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use spillgate::{Clock, Decision, Timestamp};

use super::{Ticket, Waker};
use crate::errors::RateLimited;
use crate::key::with_key;
use crate::limiter::Limiter;
use crate::seconds::Seconds;
use crate::tiers::{self, Tier};

/// A call that waits for its allowance.
#[pyclass(frozen, module = "spillgate")]
pub(crate) struct Waiter {
    limiter: Py<Limiter>,
    key: Box<[u8]>,
    tier: Tier,
    cost: u64,
    timeout: Option<Duration>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Its place in the queue.
    ticket: Option<Ticket>,
    deadline: Option<Timestamp>,
    /// A slot of a shaper, and when it begins.
    slot: Option<(spillgate_bindings::Reservation, Timestamp)>,
}

/// What a call that waits does next.
pub(crate) enum Step {
    /// It goes ahead.
    Ready(Decision),
    /// It would have to wait for longer than it may.
    GaveUp(Decision),
    /// It sleeps for this time, or until it is woken.
    Sleep(Option<Duration>),
}

#[pymethods]
impl Waiter {
    /// The decision, or how long to sleep: None is until `wake` is called.
    fn step<'py>(&self, py: Python<'py>, wake: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match self.advance(py, Waker::Task(wake)) {
            Step::Ready(decision) => {
                Ok(Bound::new(py, crate::decision::Decision(decision))?.into_any())
            }
            Step::GaveUp(decision) => {
                Err(RateLimited::new_err((crate::decision::Decision(decision),)))
            }
            Step::Sleep(time) => {
                Ok(time.map(|time| time.as_secs_f64()).into_pyobject(py)?.into_any())
            }
        }
    }

    /// Leaves the queue. What was spent for a slot that has not begun is returned, if possible.
    pub(crate) fn leave(&self, py: Python<'_>) {
        let State { ticket, slot, .. } = std::mem::take(&mut *self.state());
        if let Some((reservation, _)) = slot {
            self.enter();
            let _ = reservation.cancel();
        }
        let Some(ticket) = ticket else { return };
        let limiter = self.limiter.get();
        limiter.clock.iter().for_each(|clock| clock.get().forget(ticket));
        limiter.queues.leave(&self.key, ticket, py);
    }
}

impl Waiter {
    pub(crate) fn new(
        limiter: &Bound<'_, Limiter>,
        key: &Bound<'_, PyAny>,
        cost: u64,
        timeout: Option<Seconds>,
    ) -> PyResult<Self> {
        let tier = limiter.get().tiers.as_ref().map_or(Ok(None), |tiers| tiers.of(key))?;
        Ok(Self {
            limiter: limiter.clone().unbind(),
            key: with_key(key, |key| key.into())?,
            tier,
            cost,
            timeout: timeout.map(|Seconds(timeout)| timeout),
            state: Mutex::default(),
        })
    }

    /// Takes a place in the queue, if it has none, and goes as far as it can.
    pub(crate) fn advance(&self, py: Python<'_>, waker: Waker) -> Step {
        let limiter = self.limiter.get();
        let mut state = self.state();
        let now = limiter.inner.clock().now();
        let ticket = match state.ticket {
            Some(ticket) => ticket,
            None => {
                let Some(ticket) = limiter.queues.join(&self.key) else {
                    return self.give_up(self.peek());
                };
                state.ticket = Some(ticket);
                state.deadline = self.timeout.map(|timeout| now + timeout);
                ticket
            }
        };
        let is_first = limiter.queues.is_first(&self.key, ticket, waker.clone_ref(py));
        // Time means nothing to those who wait for others alone.
        if let Some(clock) = &limiter.clock
            && (is_first || state.deadline.is_some())
        {
            clock.get().wake_when_moved(ticket, waker);
        }
        // Read again, after word was left: what it was may be over.
        let now = limiter.inner.clock().now();
        let step =
            if is_first { self.decide(&mut state, now) } else { self.wait_for_others(&state, now) };
        match step {
            // Only the manual clock knows when its time comes, and wakes.
            Step::Sleep(_) if limiter.clock.is_some() => Step::Sleep(None),
            step => step,
        }
    }

    /// Waits for those before it.
    fn wait_for_others(&self, state: &State, now: Timestamp) -> Step {
        match state.deadline {
            Some(deadline) if deadline <= now => self.give_up(self.peek()),
            deadline => Step::Sleep(deadline.map(|deadline| deadline.since(now))),
        }
    }

    /// Spends, if it is allowed.
    fn decide(&self, state: &mut State, now: Timestamp) -> Step {
        let in_time = |due: Timestamp| state.deadline.is_none_or(|deadline| due <= deadline);
        if let Some((slot, begins)) = state.slot.take() {
            if begins <= now {
                return Step::Ready(slot.decision());
            }
            state.slot = Some((slot, begins));
            return Step::Sleep(Some(begins.since(now)));
        }
        // Attempts are not counted, only how the wait ends.
        let mut decision = self.peek();
        if decision.is_allowed() && in_time(now + decision.wait()) {
            match self.reserve() {
                Ok(slot) if slot.decision().wait().is_zero() => {
                    return Step::Ready(slot.decision());
                }
                Ok(slot) => {
                    let wait = slot.decision().wait();
                    state.slot = Some((slot, now + wait));
                    return Step::Sleep(Some(wait));
                }
                Err(denied) => decision = denied,
            }
        }
        match decision.retry_after() {
            Some(after) if decision.is_denied() && in_time(now + after) => Step::Sleep(Some(after)),
            _ => self.give_up(decision),
        }
    }

    fn give_up(&self, decision: Decision) -> Step {
        // Counts a denial and spends nothing: no limit is that high.
        let _ = self.limiter.get().inner.check_n(self.entered(), u64::MAX);
        Step::GaveUp(decision)
    }

    fn peek(&self) -> Decision {
        self.limiter.get().inner.peek_n(self.entered(), self.cost)
    }

    fn reserve(&self) -> Result<spillgate_bindings::Reservation, Decision> {
        let limiter = self.limiter.get().inner.clone();
        spillgate_bindings::Reservation::new(limiter, self.entered(), self.cost)
    }

    /// The key, for a decision in the caller's tier.
    fn entered(&self) -> &[u8] {
        self.enter();
        &self.key
    }

    fn enter(&self) {
        tiers::enter(self.tier);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
