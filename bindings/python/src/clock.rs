use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use spillgate::{Clock, Timestamp};

use crate::fork;
use crate::seconds::{Moment, Seconds, unix};
use crate::wait::{Ticket, Waker};

/// A clock that the test moves. It wakes calls that wait for its time.
///
/// Starts at 1,700,000,000 seconds of Unix time, unless told otherwise.
#[pyclass(frozen, module = "spillgate")]
pub(crate) struct ManualClock {
    pub(crate) clock: spillgate::ManualClock,
    sleepers: Mutex<Sleepers>,
}

/// Who wants to know that the clock has moved.
#[derive(Default)]
struct Sleepers {
    generation: u64,
    /// In the order in which they came.
    wakers: BTreeMap<Ticket, Waker>,
}

#[pymethods]
impl ManualClock {
    #[new]
    #[pyo3(signature = (start=None))]
    fn new(start: Option<Moment>) -> Self {
        let clock = start.map(|Moment(start)| spillgate::ManualClock::new(start));
        Self { clock: clock.unwrap_or_default(), sleepers: Mutex::default() }
    }

    /// Moves the clock forward by seconds, or a `timedelta`.
    fn advance(&self, py: Python<'_>, by: Seconds) {
        self.clock.advance(by.0);
        self.wake(py);
    }

    fn advance_ns(&self, py: Python<'_>, by: u64) {
        self.clock.advance(Duration::from_nanos(by));
        self.wake(py);
    }

    /// Sets the clock, perhaps back.
    fn set_ns(&self, py: Python<'_>, now: u64) {
        self.clock.set(Timestamp::from_nanos(now));
        self.wake(py);
    }

    /// Unix time in seconds.
    fn now(&self) -> f64 {
        unix(self.clock.now())
    }

    fn now_ns(&self) -> u64 {
        self.clock.now().as_nanos()
    }

    fn __repr__(&self) -> String {
        format!("ManualClock({:?})", self.now())
    }
}

impl ManualClock {
    /// Wakes a waiter once, when the clock next moves.
    pub(crate) fn wake_when_moved(&self, ticket: Ticket, waker: Waker) {
        // What is replaced is dropped outside of the lock: that may run Python code.
        let _replaced = self.with(|wakers| wakers.insert(ticket, waker));
    }

    pub(crate) fn forget(&self, ticket: Ticket) {
        let _forgotten = self.with(|wakers| wakers.remove(&ticket));
    }

    fn wake(&self, py: Python<'_>) {
        let woken = self.with(std::mem::take);
        woken.into_values().for_each(|waker| waker.wake(py));
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<Ticket, Waker>) -> T) -> T {
        let mut sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        if sleepers.generation != fork::generation() {
            // Those who slept in the parent are not here.
            sleepers.generation = fork::generation();
            sleepers.wakers.clear();
        }
        act(&mut sleepers.wakers)
    }
}
