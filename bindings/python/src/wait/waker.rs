use std::thread::Thread;

use pyo3::prelude::*;

/// Wakes a call that waits. Waking one that has left is harmless.
pub(crate) enum Waker {
    /// A thread that is parked.
    Thread(Thread),
    /// A function that wakes a task of an event loop from any thread.
    Task(Py<PyAny>),
}

impl Waker {
    pub(super) fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::Thread(thread) => Self::Thread(thread.clone()),
            Self::Task(wake) => Self::Task(wake.clone_ref(py)),
        }
    }

    /// Call it without a lock held: it may run Python code.
    pub(crate) fn wake(self, py: Python<'_>) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            // A loop that is closed runs nobody: there is nothing to do, and nobody to tell.
            Self::Task(wake) => drop(wake.call0(py)),
        }
    }
}
