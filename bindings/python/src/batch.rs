//! Several checks in one call.

use std::ops::Range;

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::decision::Decision;
use crate::errors::invalid;
use crate::key::with_key;
use crate::limiter::Limiter;
use crate::tiers::{self, Tier};

/// Keys that were read before the first is decided: a wrong one raises before anything is spent.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    callers: Vec<(Range<usize>, Tier)>,
}

impl Keys {
    fn add(&mut self, limiter: &Limiter, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let tier = limiter.tiers.as_ref().map_or(Ok(None), |tiers| tiers.of(key))?;
        let start = self.bytes.len();
        with_key(key, |key| self.bytes.extend_from_slice(key))?;
        self.callers.push((start..self.bytes.len(), tier));
        Ok(())
    }

    fn key(&self, place: &Range<usize>) -> &[u8] {
        self.bytes.get(place.clone()).unwrap_or_default()
    }
}

pub(crate) fn check_many<'py, T: IntoPyObject<'py>>(
    limiter: &Limiter,
    keys: &Bound<'py, PyAny>,
    shown: impl Fn(spillgate::Decision) -> T,
) -> PyResult<Bound<'py, PyList>> {
    let mut read = Keys::default();
    for key in keys.try_iter()? {
        read.add(limiter, &key?)?;
    }
    let keys_of = |(place, _): &(Range<usize>, Tier)| place.clone();
    let decisions: Vec<_> = match &limiter.tiers {
        None => {
            let places: Vec<_> = read.callers.iter().map(keys_of).collect();
            limiter.inner.check_many(places.iter().map(|place| read.key(place))).collect()
        }
        Some(_) => {
            let check = |(place, tier): &(Range<usize>, Tier)| {
                tiers::enter(*tier);
                limiter.inner.check(read.key(place))
            };
            read.callers.iter().map(check).collect()
        }
    };
    PyList::new(keys.py(), decisions.into_iter().map(shown))
}

/// The result of `check_all`. True if every limiter allowed the call.
#[pyclass(frozen, module = "spillgate")]
pub(crate) struct AllDecision {
    #[pyo3(get)]
    allowed: bool,
    decisions: Vec<spillgate::Decision>,
    /// Seconds until all would allow the same call: 0 if they did, None if waiting does not help.
    #[pyo3(get)]
    retry_after: Option<f64>,
    /// `retry_after` in whole seconds, rounded up.
    #[pyo3(get)]
    retry_after_secs: Option<u64>,
    /// The longest wait of an allowed call.
    #[pyo3(get)]
    wait: f64,
}

#[pymethods]
impl AllDecision {
    /// The decision of each limiter, in order. If the call was denied, those of the others are
    /// peeks.
    #[getter]
    fn decisions(&self) -> Vec<Decision> {
        self.decisions.iter().copied().map(Decision).collect()
    }

    fn __bool__(&self) -> bool {
        self.allowed
    }

    fn __repr__(&self) -> String {
        let allowed = if self.allowed { "True" } else { "False" };
        format!("AllDecision(allowed={allowed}, limiters={})", self.decisions.len())
    }
}

/// Spends on several limiters, or on none if one denies.
///
/// Takes tuples of a limiter, a key and perhaps a cost. Put limiters that many callers share last.
#[pyfunction]
#[pyo3(signature = (spends, /))]
pub(crate) fn check_all(spends: &Bound<'_, PyAny>) -> PyResult<AllDecision> {
    let mut keys = Keys::default();
    let mut limiters = Vec::new();
    for spend in spends.try_iter()? {
        let spend = spend?;
        let spend = spend.cast::<PyTuple>()?;
        let (limiter, key, cost) = match spend.len() {
            2 => spend.extract().map(|(limiter, key)| (limiter, key, 1))?,
            _ => spend.extract::<(Bound<'_, Limiter>, Bound<'_, PyAny>, u64)>()?,
        };
        keys.add(limiter.get(), &key)?;
        limiters.push((limiter, cost));
    }
    expect_one_clock(limiters.iter().map(|(limiter, _)| limiter.get()))?;
    let spends: Vec<_> = limiters
        .iter()
        .zip(&keys.callers)
        .map(|((limiter, cost), (place, tier))| {
            tiers::enter(*tier);
            limiter.get().inner.spend(keys.key(place), *cost)
        })
        .collect();
    let all = spillgate::check_all(spends);
    Ok(AllDecision {
        allowed: all.is_allowed(),
        decisions: all.decisions().collect(),
        retry_after: all.retry_after().map(|time| time.as_secs_f64()),
        retry_after_secs: all.retry_after_secs(),
        wait: all.wait().as_secs_f64(),
    })
}

/// All decide at one time, so they must mean the same by it.
fn expect_one_clock<'l>(limiters: impl IntoIterator<Item = &'l Limiter>) -> PyResult<()> {
    let mut clocks = limiters.into_iter().map(|limiter| limiter.clock.as_ref().map(Py::as_ptr));
    let Some(first) = clocks.next() else { return Ok(()) };
    match clocks.all(|clock| clock == first) {
        true => Ok(()),
        false => Err(invalid("limiters with different clocks; give all of them the same clock")),
    }
}
