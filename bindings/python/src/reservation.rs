use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;

use crate::decision::{Decision, Settled};
use crate::errors::{RateLimited, invalid};

/// A cost spent in advance. False if it was denied; entering it then raises `RateLimited`.
///
/// As a context manager: if the block raises, what has not been refilled since is returned.
#[pyclass(frozen, module = "spillgate")]
pub(crate) struct Reservation {
    decision: spillgate::Decision,
    open: Mutex<Option<spillgate_bindings::Reservation>>,
}

impl Reservation {
    pub(crate) fn new(limiter: &Arc<spillgate_bindings::Limiter>, key: &[u8], cost: u64) -> Self {
        match spillgate_bindings::Reservation::new(Arc::clone(limiter), key, cost) {
            Ok(open) => Self { decision: open.decision(), open: Mutex::new(Some(open)) },
            Err(decision) => Self { decision, open: Mutex::new(None) },
        }
    }

    fn take(&self) -> Option<spillgate_bindings::Reservation> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn expect(&self) -> PyResult<spillgate_bindings::Reservation> {
        self.take().ok_or_else(|| {
            invalid(match self.decision.is_allowed() {
                true => "the reservation is settled or cancelled already; settle it once",
                false => "the reservation was denied; settle only what was allowed",
            })
        })
    }
}

#[pymethods]
impl Reservation {
    #[getter]
    fn decision(&self) -> Decision {
        Decision(self.decision)
    }

    /// The estimate.
    #[getter]
    fn reserved(&self) -> u64 {
        self.decision.cost()
    }

    /// Allowed, and neither settled nor cancelled yet.
    #[getter]
    fn open(&self) -> bool {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Replaces the estimate with the actual cost, once.
    fn settle(&self, actual: u64) -> PyResult<Settled> {
        Ok(Settled(self.expect()?.settle(actual)))
    }

    /// Undoes the reservation if nothing has been spent since. Returns whether it did.
    fn cancel(&self) -> PyResult<bool> {
        Ok(self.expect()?.cancel())
    }

    fn __bool__(&self) -> bool {
        self.decision.is_allowed()
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        match slf.get().decision {
            decision if decision.is_denied() => Err(RateLimited::new_err((Decision(decision),))),
            _ => Ok(slf),
        }
    }

    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) {
        if !kind.is_none()
            && let Some(open) = self.take()
        {
            open.settle(0);
        }
    }

    fn __repr__(&self) -> String {
        let (allowed, open) = (self.decision.is_allowed(), self.open());
        let shown = |is: bool| if is { "True" } else { "False" };
        let reserved = self.reserved();
        format!("Reservation({reserved}, allowed={}, open={})", shown(allowed), shown(open))
    }
}
