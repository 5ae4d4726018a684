//! What the child of a `fork` must not use: threads are not copied, so whoever waited in the parent
//! does not wait in the child, and a runtime has nobody who runs it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwapOption;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// How many forks this process is away from the one that imported the module.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// The process, as far as forks tell them apart.
pub(crate) fn generation() -> u64 {
    // Relaxed: written before the child of a fork has a second thread.
    GENERATION.load(Ordering::Relaxed)
}

/// A lock that threads hold while they are detached. The child of a fork has one of its own.
pub(crate) struct PerProcess<T>(ArcSwapOption<Generation<T>>);

struct Generation<T> {
    number: u64,
    lock: Arc<Mutex<T>>,
}

impl<T: Default> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self(ArcSwapOption::const_empty())
    }

    pub(crate) fn get(&self) -> Arc<Mutex<T>> {
        loop {
            let seen = self.0.load_full();
            if let Some(seen) = &seen
                && seen.number == generation()
            {
                return Arc::clone(&seen.lock);
            }
            let made = Generation { number: generation(), lock: Arc::default() };
            self.0.compare_and_swap(&seen, Some(Arc::new(made)));
            // The parent's is never dropped: a thread that is not here may have been changing it.
            std::mem::forget(seen);
        }
    }
}

#[pyfunction]
fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Counts the forks of Python from now on.
pub(crate) fn watch(py: Python<'_>) -> PyResult<()> {
    let os = py.import("os")?;
    // Systems without forks have no such function.
    let Ok(register) = os.getattr("register_at_fork") else { return Ok(()) };
    let arguments = PyDict::new(py);
    arguments.set_item("after_in_child", wrap_pyfunction!(forked, py)?)?;
    register.call((), Some(&arguments))?;
    Ok(())
}
