use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, StatusCode};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use spillgate_policy::RequestPermits;

use super::backend::{Backend, with_enforcer};
use super::decided::{Decided, Limit, Refused, limits};
use super::pending::Pending;
use super::request::read_headers;
use crate::aio;
use crate::decision::Decision;
use crate::errors::invalid;

/// What a gate has decided about a request. True if it may go ahead.
///
/// It holds the permits of concurrency limits until `release`, the end of a `with` block, or until
/// it is dropped.
#[pyclass(frozen, module = "spillgate")]
pub(crate) struct Outcome {
    backend: Backend,
    refused: Option<Box<Refused>>,
    pub(super) passed: Arc<Mutex<Passed>>,
}

/// What is left to do for a request that goes ahead.
#[derive(Default)]
pub(super) struct Passed {
    outcome: Option<spillgate_policy::Outcome<'static>>,
    permits: RequestPermits,
    /// The response is known, or that there is none.
    has_ended: bool,
}

impl Outcome {
    pub(super) fn new(backend: Backend, decided: Decided) -> Self {
        let (refused, outcome) = match decided {
            Decided::Allowed(outcome) => (None, outcome),
            Decided::Refused(refused) => (Some(refused), None),
        };
        let mut passed = Passed { outcome, ..Passed::default() };
        if let Some(outcome) = &mut passed.outcome {
            passed.permits = outcome.take_permits();
        }
        Self { backend, refused, passed: Arc::new(Mutex::new(passed)) }
    }

    fn passed(&self) -> MutexGuard<'_, Passed> {
        lock(&self.passed)
    }

    /// What is left to do, by this process. In the child of a fork, what is held in Redis is still
    /// the parent's.
    fn to_do(&self) -> Option<MutexGuard<'_, Passed>> {
        match &self.backend {
            Backend::Redis(live) if !live.is_of_this_process() => None,
            _ => Some(self.passed()),
        }
    }

    fn header_map(&self) -> HeaderMap {
        if let Some(refused) = &self.refused {
            return refused.headers.clone();
        }
        let mut headers = HeaderMap::new();
        if let Some(outcome) = &self.passed().outcome {
            let told =
                with_enforcer!(&self.backend, enforcer => enforcer.rate_limit_headers(outcome));
            told.into_iter().for_each(|told| told.write(&mut headers));
        }
        headers
    }

    /// What is to be settled, the first time. Put it back with [`settled`].
    fn begin_to_settle(&self) -> Option<spillgate_policy::Outcome<'static>> {
        let mut passed = self.to_do()?;
        if std::mem::replace(&mut passed.has_ended, true) {
            return None;
        }
        passed.outcome.take_if(|outcome| outcome.needs_settling())
    }
}

pub(super) fn lock(passed: &Mutex<Passed>) -> MutexGuard<'_, Passed> {
    passed.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the outcome after it was settled, for its headers.
fn settled(passed: &Mutex<Passed>, outcome: spillgate_policy::Outcome<'static>) {
    lock(passed).outcome = Some(outcome);
}

#[pymethods]
impl Outcome {
    #[getter]
    fn allowed(&self) -> bool {
        self.refused.is_none()
    }

    #[getter]
    fn answer(&self) -> &'static str {
        self.refused.as_ref().map_or("allowed", |refused| refused.why.answer)
    }

    /// 200, or that of the refusal: 429, 403, 400 or 503.
    #[getter]
    fn status(&self) -> u16 {
        self.refused.as_ref().map_or(200, |refused| refused.status.as_u16())
    }

    /// For the response, refused or not. Names are in lower case.
    #[getter]
    fn headers(&self) -> Vec<(String, String)> {
        let latin = |value: &[u8]| value.iter().map(|byte| char::from(*byte)).collect();
        let headers = self.header_map();
        headers.iter().map(|(name, value)| (name.to_string(), latin(value.as_bytes()))).collect()
    }

    /// `headers` as ASGI has them.
    #[getter]
    fn raw_headers<'py>(&self, py: Python<'py>) -> Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
        let headers = self.header_map();
        headers
            .iter()
            .map(|(name, value)| (bytes(name.as_str().as_bytes()), bytes(value.as_bytes())))
            .collect()
    }

    /// The problem document of a refusal (RFC 9457); empty if the request may go ahead.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.refused.as_ref().map_or(&[], |refused| &refused.body))
    }

    /// Who was refused, secrets as fingerprints; None if the request may go ahead.
    #[getter]
    fn caller(&self) -> Option<&str> {
        self.refused.as_ref()?.why.caller.as_deref()
    }

    /// The limits that the request met.
    #[getter]
    fn limits(&self) -> Vec<LimitState> {
        let met = match &self.refused {
            Some(refused) => refused.why.limits.clone(),
            None => self.passed().outcome.as_ref().map(limits).unwrap_or_default(),
        };
        met.into_iter().map(LimitState).collect()
    }

    /// The name of the limit that refused the request.
    #[getter]
    fn denied_by(&self) -> Option<&str> {
        self.refused.as_ref()?.why.denied_by.as_deref()
    }

    /// Seconds until the same request would pass: 0 if it did, None if waiting does not help.
    #[getter]
    fn retry_after(&self) -> Option<f64> {
        match &self.refused {
            Some(refused) => refused.why.retry_after.map(|time| time.as_secs_f64()),
            None => Some(0.0),
        }
    }

    /// Seconds to wait before the request goes ahead: 0 unless a shaper decided.
    #[getter]
    fn wait(&self) -> f64 {
        self.passed().outcome.as_ref().map_or(0.0, |outcome| outcome.wait().as_secs_f64())
    }

    /// How many concurrency limits something is held of.
    #[getter]
    fn permits(&self) -> usize {
        self.passed().permits.len()
    }

    /// Call it after `wait`: adaptive limits measure latency from here.
    fn start(&self) {
        let Some(mut passed) = self.to_do() else { return };
        if let Some(outcome) = &mut passed.outcome {
            with_enforcer!(&self.backend, enforcer => enforcer.gate().start(outcome));
        }
    }

    /// Takes back a request that did not go ahead, since its client did not `wait`.
    fn cancel(&self) {
        let outcome = self.to_do().and_then(|mut passed| passed.outcome.take());
        if let Some(outcome) = outcome {
            with_enforcer!(&self.backend, enforcer => enforcer.gate().cancel(outcome));
        }
        self.release();
    }

    /// Corrects the cost by the response, once. Blocks if the store is in Redis.
    #[pyo3(signature = (status, headers=None))]
    fn settle(
        &self,
        py: Python<'_>,
        status: u16,
        headers: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (status, headers) = read_response(status, headers)?;
        let Some(mut outcome) = self.begin_to_settle() else { return Ok(()) };
        match &self.backend {
            Backend::Memory(enforcer) => enforcer.try_settle(&mut outcome, status, &headers),
            Backend::Redis(live) => py.detach(|| {
                live.block_on(live.enforcer().settle(&mut outcome, status, &headers));
            }),
        }
        settled(&self.passed, outcome);
        Ok(())
    }

    /// `settle` for event loops.
    #[pyo3(signature = (status, headers=None))]
    fn settle_async<'py>(
        slf: &Bound<'py, Self>,
        status: u16,
        headers: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (status, headers) = read_response(status, headers)?;
        let pending = Pending::Settle { outcome: slf.clone().unbind(), status, headers };
        aio::function(slf.py(), "result")?.call1((pending,))
    }

    /// The service failed to answer at all, once.
    fn fail(&self) {
        let Some(mut passed) = self.to_do() else { return };
        if std::mem::replace(&mut passed.has_ended, true) {
            return;
        }
        if let Some(outcome) = &mut passed.outcome {
            with_enforcer!(&self.backend, enforcer => enforcer.fail(outcome));
        }
    }

    /// Gives permits back. Safe to call twice, and from any thread.
    fn release(&self) {
        let Some(mut passed) = self.to_do() else { return };
        let permits = std::mem::take(&mut passed.permits);
        drop(passed);
        with_enforcer!(&self.backend, _enforcer => drop(permits));
    }

    fn __bool__(&self) -> bool {
        self.allowed()
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) {
        if !kind.is_none() {
            self.fail();
        }
        self.release();
    }

    fn __repr__(&self) -> String {
        format!("Outcome({}, status={})", self.answer(), self.status())
    }
}

impl Outcome {
    /// Settles in the background, if the store is not in this process. Returns whether it is done.
    pub(super) fn settle_later(
        &self,
        status: StatusCode,
        headers: HeaderMap,
        done: impl FnOnce() + Send + 'static,
    ) -> bool {
        let Some(mut outcome) = self.begin_to_settle() else { return true };
        match &self.backend {
            Backend::Memory(enforcer) => {
                enforcer.try_settle(&mut outcome, status, &headers);
                settled(&self.passed, outcome);
                true
            }
            Backend::Redis(live) => {
                let (passed, on) = (Arc::clone(&self.passed), Arc::clone(live));
                live.spawn(async move {
                    on.enforcer().settle(&mut outcome, status, &headers).await;
                    settled(&passed, outcome);
                    done();
                });
                false
            }
        }
    }
}

impl Drop for Outcome {
    fn drop(&mut self) {
        let passed = std::mem::take(&mut *self.passed());
        match &self.backend {
            // See `to_do`.
            Backend::Redis(live) if !live.is_of_this_process() => std::mem::forget(passed),
            backend => with_enforcer!(backend, _enforcer => drop(passed)),
        }
    }
}

fn read_response(
    status: u16,
    headers: Option<&Bound<'_, PyAny>>,
) -> PyResult<(StatusCode, HeaderMap)> {
    let status = StatusCode::from_u16(status)
        .map_err(|_| invalid(format!("invalid status {status}; use one from 100 to 999")))?;
    Ok((status, headers.map_or_else(|| Ok(HeaderMap::new()), read_headers)?))
}

/// One limit that a request met.
#[pyclass(frozen, module = "spillgate")]
pub(crate) struct LimitState(Limit);

#[pymethods]
impl LimitState {
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// True if the limit only counts.
    #[getter]
    fn shadow(&self) -> bool {
        self.0.is_shadow
    }

    #[getter]
    fn decision(&self) -> Decision {
        Decision(self.0.decision)
    }

    fn __repr__(&self) -> String {
        format!("LimitState({:?}, remaining={})", self.0.name, self.0.decision.remaining())
    }
}
