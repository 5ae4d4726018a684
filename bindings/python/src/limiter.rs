use std::sync::Arc;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping};
use spillgate::Clock;
use spillgate_bindings::Settings;

use crate::batch;
use crate::clock::ManualClock;
use crate::decision::{Counts, Decision, Settled};
use crate::errors::invalid;
use crate::key::with_key;
use crate::reservation::Reservation;
use crate::seconds::{Moment, Seconds, unix};
use crate::tiers::{self, Tiers};
use crate::wait::{self, Queues, Waiter};

/// A rate limiter: one quota, any number of callers, each identified by a key.
#[pyclass(frozen, module = "spillgate")]
pub(crate) struct Limiter {
    pub(crate) inner: Arc<spillgate_bindings::Limiter>,
    pub(crate) tiers: Option<Tiers>,
    pub(crate) clock: Option<Py<ManualClock>>,
    pub(crate) queues: Queues,
}

#[pymethods]
impl Limiter {
    #[new]
    #[pyo3(signature = (
        quota, *, algorithm="token-bucket", start="full", capacity=100_000, when_full="evict",
        max_debt=None, tiers=None, tier_of=None, clock=None, max_waiting=65_536,
    ))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn new(
        quota: &str,
        algorithm: &str,
        start: &str,
        capacity: usize,
        when_full: &str,
        max_debt: Option<u64>,
        tiers: Option<&Bound<'_, PyMapping>>,
        tier_of: Option<Py<PyAny>>,
        clock: Option<Py<ManualClock>>,
        max_waiting: usize,
    ) -> PyResult<Self> {
        let tiers = tiers.map_or_else(|| Ok(Vec::new()), named_quotas)?;
        let settings = Settings {
            quota: Some(quota),
            algorithm: Some(algorithm),
            start: Some(start),
            when_full: Some(when_full),
            max_callers: Some(capacity),
            max_debt,
            tiers: tiers.iter().map(|(name, quota)| (name.as_str(), quota.as_str())).collect(),
            tier_of: tier_of.is_some().then(tiers::entered),
            clock: clock.as_ref().map(|clock| clock.get().clock.clone()),
            ..Settings::default()
        };
        let inner = settings.build().map_err(invalid)?;
        let names = tiers.into_iter().map(|(name, _)| name).collect();
        let tiers = tier_of.map(|tier_of| Tiers { names, tier_of });
        Ok(Self { inner, tiers, clock, queues: Queues::new(max_waiting) })
    }

    /// Spends `cost` if all of it is available now.
    #[pyo3(signature = (key, cost=1))]
    fn check(&self, key: &Bound<'_, PyAny>, cost: u64) -> PyResult<Decision> {
        self.for_caller(key, |key| Decision(self.inner.check_n(key, cost)))
    }

    /// `check` without a `Decision`: the fastest call.
    #[pyo3(signature = (key, cost=1))]
    fn allow(&self, key: &Bound<'_, PyAny>, cost: u64) -> PyResult<bool> {
        self.for_caller(key, |key| self.inner.check_n(key, cost).is_allowed())
    }

    /// What `check` would answer, without spending.
    #[pyo3(signature = (key, cost=1))]
    fn peek(&self, key: &Bound<'_, PyAny>, cost: u64) -> PyResult<Decision> {
        self.for_caller(key, |key| Decision(self.inner.peek_n(key, cost)))
    }

    /// Spends unconditionally, into debt up to `max_debt`.
    #[pyo3(signature = (key, amount=1))]
    fn debit(&self, key: &Bound<'_, PyAny>, amount: u64) -> PyResult<Settled> {
        self.for_caller(key, |key| Settled(self.inner.debit_n(key, amount)))
    }

    /// Returns an amount, but never more than was spent.
    #[pyo3(signature = (key, amount=1))]
    fn refund(&self, key: &Bound<'_, PyAny>, amount: u64) -> PyResult<()> {
        self.for_caller(key, |key| self.inner.refund_n(key, amount))
    }

    /// Spends an estimate in advance, to be settled once the actual cost is known.
    #[pyo3(signature = (key, cost=1))]
    fn reserve(&self, key: &Bound<'_, PyAny>, cost: u64) -> PyResult<Reservation> {
        self.for_caller(key, |key| Reservation::new(&self.inner, key, cost))
    }

    /// Forgets what a caller has spent.
    fn reset(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.for_caller(key, |key| self.inner.reset(key))
    }

    /// One check of cost 1 per key, in order. A wrong key raises before anything is spent.
    fn check_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        batch::check_many(self, keys, Decision)
    }

    /// `check_many` without `Decision`s.
    fn allow_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        batch::check_many(self, keys, |decision| decision.is_allowed())
    }

    /// Waits until `cost` is allowed, first come, first served per key, and spends it.
    #[pyo3(signature = (key, cost=1, timeout=None))]
    fn wait<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        cost: u64,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        wait::in_loop(Waiter::new(slf, key, cost, timeout)?, slf.py())
    }

    /// `wait` for threads.
    #[pyo3(signature = (key, cost=1, timeout=None))]
    fn wait_blocking(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        cost: u64,
        timeout: Option<Seconds>,
    ) -> PyResult<Decision> {
        wait::in_thread(&Waiter::new(slf, key, cost, timeout)?, slf.py())
    }

    /// How many calls are waiting.
    #[getter]
    fn waiting(&self) -> usize {
        self.queues.len()
    }

    /// Gives one caller its own quota, perhaps for some time.
    #[pyo3(signature = (key, quota, *, until=None, ttl=None))]
    fn set_override(
        &self,
        key: &Bound<'_, PyAny>,
        quota: &str,
        until: Option<Moment>,
        ttl: Option<Seconds>,
    ) -> PyResult<()> {
        let until = match (until, ttl) {
            (Some(_), Some(_)) => return Err(invalid("an override has until or ttl, not both")),
            (Some(Moment(until)), None) => Some(until),
            (None, ttl) => ttl.map(|Seconds(ttl)| self.inner.clock().now() + ttl),
        };
        let set = self.for_caller(key, |key| match until {
            Some(until) => self.inner.set_override_until(key, quota, until),
            None => self.inner.set_override(key, quota),
        })?;
        set.map_err(invalid_quota)
    }

    /// Removes a caller's own quota, and returns it.
    fn remove_override(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        self.for_caller(key, |key| self.inner.remove_override(key).map(|quota| quota.to_string()))
    }

    /// When a caller's own quota ends, as Unix time; None if it does not.
    fn override_until(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        self.for_caller(key, |key| self.inner.override_until(key).map(unix))
    }

    /// The quota of a caller: its own, its tier's or the limiter's.
    fn quota_of(&self, key: &Bound<'_, PyAny>) -> PyResult<String> {
        self.for_caller(key, |key| self.inner.quota_of(key).to_string())
    }

    #[getter]
    fn quota(&self) -> String {
        self.inner.quota().to_string()
    }

    /// Changes the quota. What was spent stays spent.
    fn set_quota(&self, quota: &str) -> PyResult<()> {
        self.inner.set_quota(quota).map_err(invalid_quota)
    }

    fn set_tier_quota(&self, tier: &str, quota: &str) -> PyResult<()> {
        self.inner.set_tier_quota(tier, quota).map_err(invalid_quota)
    }

    /// How many callers are below their full quota.
    fn active_callers(&self) -> usize {
        self.inner.active_callers()
    }

    /// Clears the slots of idle callers. Never necessary.
    fn purge_idle(&self) -> usize {
        self.inner.purge_idle()
    }

    fn counts(&self) -> Counts {
        Counts(self.inner.counts())
    }

    fn __repr__(&self) -> String {
        format!("Limiter(\"{}\")", self.inner.quota())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.tiers.iter().try_for_each(|tiers| visit.call(&tiers.tier_of))
    }
}

impl Limiter {
    /// Calls the limiter for the caller of a key, in its tier.
    #[inline(always)]
    fn for_caller<T>(&self, key: &Bound<'_, PyAny>, call: impl FnOnce(&[u8]) -> T) -> PyResult<T> {
        if let Some(tiers) = &self.tiers {
            let tier = tiers.of(key)?;
            return with_key(key, |key| {
                tiers::enter(tier);
                call(key)
            });
        }
        with_key(key, call)
    }
}

fn named_quotas(tiers: &Bound<'_, PyMapping>) -> PyResult<Vec<(String, String)>> {
    let items = PyDict::from_sequence(tiers.items()?.as_any())?;
    items.iter().map(|(name, quota)| Ok((name.extract()?, quota.extract()?))).collect()
}

fn invalid_quota(error: spillgate::Error) -> PyErr {
    invalid(spillgate_bindings::Error::from(error))
}
