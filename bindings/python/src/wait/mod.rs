//! Waiting for an allowance, first come, first served per key: in an event loop or a thread.
//!
//! Whoever waits asks again and again for its next step. It leaves word with the queue and the clock
//! *before* it looks, so that nothing that happens afterwards is missed.

mod queue;
mod waiter;
mod waker;

use std::time::Duration;

use pyo3::prelude::*;

pub(crate) use self::queue::{Queues, Ticket};
pub(crate) use self::waiter::{Step, Waiter};
pub(crate) use self::waker::Waker;
use crate::aio;
use crate::decision::Decision;
use crate::errors::RateLimited;

/// How long a thread sleeps before it looks for signals, such as Ctrl-C.
const SLICE: Duration = Duration::from_millis(100);

/// The coroutine that waits.
pub(crate) fn in_loop(waiter: Waiter, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    aio::function(py, "wait")?.call1((waiter,))
}

/// Waits in this thread, without holding up others.
pub(crate) fn in_thread(waiter: &Waiter, py: Python<'_>) -> PyResult<Decision> {
    let _leaves = Leaves(waiter, py);
    let thread = std::thread::current();
    loop {
        match waiter.advance(py, Waker::Thread(thread.clone())) {
            Step::Ready(decision) => return Ok(Decision(decision)),
            Step::GaveUp(decision) => return Err(RateLimited::new_err((Decision(decision),))),
            Step::Sleep(time) => {
                let slice = time.unwrap_or(SLICE).min(SLICE);
                py.detach(|| std::thread::park_timeout(slice));
                py.check_signals()?;
            }
        }
    }
}

/// Leaves the queue, however the wait ends.
struct Leaves<'w, 'py>(&'w Waiter, Python<'py>);

impl Drop for Leaves<'_, '_> {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}
