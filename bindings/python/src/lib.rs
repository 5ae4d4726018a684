//! The native module of the Python package `spillgate`.
//!
//! It converts: arguments, keys, results and errors. Decisions are those of the library. A lock of
//! this module is taken by a thread that is attached to the interpreter and released before it
//! detaches, so that a `fork` by Python never copies it locked; others are a `fork::PerProcess`.

mod aio;
mod batch;
mod clock;
mod decision;
mod errors;
mod fast_calls;
mod fork;
mod gate;
mod key;
mod limiter;
mod limits_storage;
mod reservation;
mod seconds;
mod tiers;
mod wait;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _spillgate {
    #[pymodule_export]
    use super::batch::{AllDecision, check_all};
    #[pymodule_export]
    use super::clock::ManualClock;
    #[pymodule_export]
    use super::decision::{Counts, Decision, Settled};
    #[pymodule_export]
    use super::errors::{InvalidRequest, SpillgateError};
    #[pymodule_export]
    use super::gate::{Gate, LimitState, Outcome, Policy};
    #[pymodule_export]
    use super::limiter::Limiter;
    #[pymodule_export]
    use super::limits_storage::WindowStore;
    #[pymodule_export]
    use super::reservation::Reservation;
    use super::*;

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        spillgate_bindings::fork::watch();
        fork::watch(py)?;
        fast_calls::install(py)?;
        let close_all = wrap_pyfunction!(gate::close_all, py)?;
        py.import("atexit")?.call_method1("register", (close_all,))?;
        Ok(())
    }
}
