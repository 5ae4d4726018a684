//! Calls that a coroutine makes: nothing happens before it is awaited.

use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, StatusCode};
use pyo3::prelude::*;

use super::Gate;
use super::backend::Backend;
use super::decided::Decided;
use super::outcome::Outcome;
use super::question::Question;
use crate::errors::invalid;

/// A call that is made when it is awaited.
pub(super) enum Pending {
    Decide { gate: Py<Gate>, question: Arc<Question> },
    Settle { outcome: Py<Outcome>, status: StatusCode, headers: HeaderMap },
}

/// What `_aio.result` calls.
#[pyclass(frozen, module = "spillgate")]
pub(super) struct Start(Mutex<Option<Pending>>);

impl<'py> IntoPyObject<'py> for Pending {
    type Target = Start;
    type Output = Bound<'py, Start>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, Start>> {
        Bound::new(py, Start(Mutex::new(Some(self))))
    }
}

#[pymethods]
impl Start {
    /// Starts the call. Returns its result if there is one at once; otherwise `deliver` is called
    /// with the result, or an error, from another thread.
    fn __call__(&self, py: Python<'_>, deliver: Py<PyAny>) -> PyResult<Option<Py<PyAny>>> {
        let pending = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        match pending {
            None => Err(invalid("the call was made already; await it once")),
            Some(Pending::Decide { gate, question }) => match gate.get().backend(py) {
                Ok(backend) => decide(py, backend, question, deliver),
                Err(error) => {
                    let outcome = gate.get().undecided(py, &question, error)?;
                    Ok(Some(Py::new(py, outcome)?.into_any()))
                }
            },
            Some(Pending::Settle { outcome, status, headers }) => {
                let done = move || hand_over(&deliver, |py| Ok(py.None()));
                let is_done = outcome.get().settle_later(status, headers, done);
                // None would mean that there is more to wait for.
                Ok(is_done.then(|| py.Ellipsis()))
            }
        }
    }
}

fn decide(
    py: Python<'_>,
    backend: Backend,
    question: Arc<Question>,
    deliver: Py<PyAny>,
) -> PyResult<Option<Py<PyAny>>> {
    let live = match (backend.try_decide(&question), &backend) {
        (Some(decided), _) => return shown(py, backend, decided).map(Some),
        (None, Backend::Redis(live)) => Arc::clone(live),
        (None, Backend::Memory(_)) => return Err(invalid("the store did not answer")),
    };
    let on = Arc::clone(&live);
    live.spawn(async move {
        let decided = question.decide(on.enforcer()).await;
        let decided = Decided::of(on.enforcer(), &question, decided);
        hand_over(&deliver, |py| shown(py, backend, decided));
    });
    Ok(None)
}

fn shown(
    py: Python<'_>,
    backend: Backend,
    decided: Result<Decided, spillgate_policy::Error>,
) -> PyResult<Py<PyAny>> {
    let decided = decided.map_err(invalid)?;
    Ok(Py::new(py, Outcome::new(backend, decided))?.into_any())
}

/// Gives a result to the event loop. An interpreter that is shutting down has none.
fn hand_over(deliver: &Py<PyAny>, result: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>) {
    Python::try_attach(|py| {
        let arguments = match result(py) {
            Ok(value) => (value, py.None()),
            Err(error) => (py.None(), error.into_value(py).into_any()),
        };
        // A loop that is closed has nobody who waits.
        drop(deliver.call1(py, arguments));
    });
}
