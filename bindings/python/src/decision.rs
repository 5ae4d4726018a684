use pyo3::prelude::*;
use spillgate::Verdict;

use crate::seconds::nanos;

/// What a check has decided. True if the call may proceed.
#[pyclass(frozen, freelist = 64, module = "spillgate")]
pub(crate) struct Decision(pub(crate) spillgate::Decision);

#[pymethods]
impl Decision {
    #[getter]
    fn allowed(&self) -> bool {
        self.0.is_allowed()
    }

    #[getter]
    fn denied(&self) -> bool {
        self.0.is_denied()
    }

    /// Denied, and waiting does not help.
    #[getter]
    fn never(&self) -> bool {
        self.0.verdict() == Verdict::Never
    }

    /// Denied, since there was no room for a new caller.
    #[getter]
    fn table_full(&self) -> bool {
        self.0.is_table_full()
    }

    #[getter]
    fn cost(&self) -> u64 {
        self.0.cost()
    }

    /// The most that can be spent at once.
    #[getter]
    fn limit(&self) -> u64 {
        self.0.limit()
    }

    /// What can be spent now.
    #[getter]
    fn remaining(&self) -> u64 {
        self.0.remaining()
    }

    /// What is spent, rounded up; more than `limit` in debt.
    #[getter]
    fn owed(&self) -> u64 {
        self.0.owed()
    }

    /// Seconds until the same call would be allowed: 0 if it was, None if never.
    #[getter]
    fn retry_after(&self) -> Option<f64> {
        self.0.retry_after().map(|time| time.as_secs_f64())
    }

    /// `retry_after` in nanoseconds, exactly.
    #[getter]
    fn retry_after_ns(&self) -> Option<u64> {
        self.0.retry_after().map(nanos)
    }

    /// `retry_after` in whole seconds, rounded up, as a `Retry-After` header has it.
    #[getter]
    fn retry_after_secs(&self) -> Option<u64> {
        self.0.retry_after_secs()
    }

    /// Seconds until the whole limit is available; None if it never refills.
    #[getter]
    fn reset_after(&self) -> Option<f64> {
        self.0.reset_after().map(|time| time.as_secs_f64())
    }

    /// `reset_after` in nanoseconds, exactly.
    #[getter]
    fn reset_after_ns(&self) -> Option<u64> {
        self.0.reset_after().map(nanos)
    }

    /// Nanoseconds until the whole limit is available, to the nanosecond: `reset_after` is as the
    /// quota states it.
    #[getter]
    fn idle_after_ns(&self) -> Option<u64> {
        self.0.idle_after().map(nanos)
    }

    /// Seconds in which the whole limit refills; None if it never does.
    #[getter]
    fn window(&self) -> Option<f64> {
        self.0.window().map(|time| time.as_secs_f64())
    }

    /// Seconds that an allowed call should wait before it proceeds: 0 unless a shaper decided.
    #[getter]
    fn wait(&self) -> f64 {
        self.0.wait().as_secs_f64()
    }

    /// `wait` in nanoseconds, exactly.
    #[getter]
    fn wait_ns(&self) -> u64 {
        nanos(self.0.wait())
    }

    fn __bool__(&self) -> bool {
        self.0.is_allowed()
    }

    fn __repr__(&self) -> String {
        let allowed = if self.0.is_allowed() { "True" } else { "False" };
        let (limit, remaining) = (self.0.limit(), self.0.remaining());
        let retry_after = match self.retry_after() {
            Some(seconds) => format!("{seconds:?}"),
            None => "None".to_owned(),
        };
        format!(
            "Decision(allowed={allowed}, limit={limit}, remaining={remaining}, \
             retry_after={retry_after})"
        )
    }
}

/// The result of a debit or a settlement.
#[pyclass(frozen, module = "spillgate")]
pub(crate) struct Settled(pub(crate) spillgate::Settled);

#[pymethods]
impl Settled {
    /// What is available now.
    #[getter]
    fn left(&self) -> Decision {
        Decision(self.0.left)
    }

    /// What was not debited, since the debt would have exceeded `max_debt`.
    #[getter]
    fn uncharged(&self) -> u64 {
        self.0.uncharged
    }

    fn __repr__(&self) -> String {
        let (remaining, uncharged) = (self.0.left.remaining(), self.0.uncharged);
        format!("Settled(remaining={remaining}, uncharged={uncharged})")
    }
}

/// Decisions of a limiter since it was built.
#[pyclass(frozen, module = "spillgate")]
pub(crate) struct Counts(pub(crate) spillgate::Counts);

#[pymethods]
impl Counts {
    /// Allowed calls, except those of cost 0.
    #[getter]
    fn allowed(&self) -> u64 {
        self.0.allowed
    }

    #[getter]
    fn denied(&self) -> u64 {
        self.0.denied
    }

    /// Callers evicted while they had something spent.
    #[getter]
    fn evictions(&self) -> u64 {
        self.0.evictions
    }

    /// Spends of a denied `check_all` that could not be undone.
    #[getter]
    fn kept_spends(&self) -> u64 {
        self.0.kept_spends
    }

    fn __repr__(&self) -> String {
        let spillgate::Counts { allowed, denied, evictions, kept_spends, .. } = self.0;
        format!(
            "Counts(allowed={allowed}, denied={denied}, evictions={evictions}, \
             kept_spends={kept_spends})"
        )
    }
}
