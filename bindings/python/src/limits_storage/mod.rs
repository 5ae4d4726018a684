//! Counters for a storage of the Python package `limits`.
//!
//! Its strategies differ from the engine's algorithms: fixed windows count denied hits, moving windows
//! log the time of every hit, and sliding windows round down. Time is an argument, in seconds since the
//! epoch, so that the tests of a program that freeze Python's clock work with this storage.

mod record;
mod store;

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use self::record::{Counter, Log, Record, Sliding};
use self::store::{Key, Space, Store};

/// A log of one key fits with room to spare.
const MIN_CAPACITY: usize = 1_000;

/// Longest key that is kept as it is. Of a longer one the hash is kept, so that callers who choose
/// their keys cannot fill the memory with them.
const MAX_KEY: usize = 128;

/// What a hash begins with, and no key: it is no UTF-8.
const HASHED: u8 = 0xFF;

/// A record as it is pickled: kind, key, a time, and times with counts.
type Pickled = (u8, Vec<u8>, f64, Vec<(f64, u64)>);

/// Counts by key for the storages of `spillgate.limits`.
///
/// No method calls into Python while the lock is held, so a fork finds it free.
#[pyclass(frozen, module = "spillgate._spillgate")]
pub(crate) struct WindowStore {
    store: Mutex<Store>,
}

#[pymethods]
impl WindowStore {
    #[new]
    fn new(capacity: usize) -> PyResult<Self> {
        if capacity < MIN_CAPACITY {
            let message = format!("capacity {capacity} is too small; use at least {MIN_CAPACITY}");
            return Err(PyValueError::new_err(message));
        }
        Ok(Self { store: Mutex::new(Store::new(capacity)) })
    }

    /// Adds to a fixed window; returns its count.
    fn incr(&self, key: &Bound<'_, PyString>, expiry: f64, amount: u64, now: f64) -> PyResult<u64> {
        let (key, expiry, now) = (bytes(key)?, positive(expiry)?, finite(now)?);
        Ok(self.lock().incr(&key, expiry, amount, now))
    }

    /// Count of a fixed window.
    fn get(&self, key: &Bound<'_, PyString>, now: f64) -> PyResult<u64> {
        let key = bytes(key)?;
        Ok(self.lock().counter(&key, now).map_or(0, |counter| counter.count))
    }

    /// When a fixed window ends; now if there is none.
    fn get_expiry(&self, key: &Bound<'_, PyString>, now: f64) -> PyResult<f64> {
        let key = bytes(key)?;
        Ok(self.lock().counter(&key, now).map_or(now, |counter| counter.expires))
    }

    /// Adds to a moving window, unless that would exceed the limit.
    fn acquire_entry(
        &self,
        key: &Bound<'_, PyString>,
        limit: u64,
        expiry: f64,
        amount: u64,
        now: f64,
    ) -> PyResult<bool> {
        let (key, expiry, now) = (bytes(key)?, positive(expiry)?, finite(now)?);
        Ok(self.lock().acquire_entry(&key, limit, expiry, amount, now))
    }

    /// Time of the oldest hit in a moving window, and its count.
    fn get_moving_window(
        &self,
        key: &Bound<'_, PyString>,
        expiry: f64,
        now: f64,
    ) -> PyResult<(f64, u64)> {
        let (key, expiry, now) = (bytes(key)?, positive(expiry)?, finite(now)?);
        Ok(self.lock().moving_window(&key, expiry, now))
    }

    /// Adds to a sliding window, unless that would exceed the limit.
    fn acquire_sliding_window_entry(
        &self,
        key: &Bound<'_, PyString>,
        limit: u64,
        expiry: f64,
        amount: u64,
        now: f64,
    ) -> PyResult<bool> {
        let (key, expiry, now) = (bytes(key)?, positive(expiry)?, finite(now)?);
        Ok(self.lock().acquire_sliding(&key, limit, expiry, amount, now))
    }

    /// Count of the previous window and the seconds until it no longer matters; the same for the
    /// current window.
    fn get_sliding_window(
        &self,
        key: &Bound<'_, PyString>,
        expiry: f64,
        now: f64,
    ) -> PyResult<(u64, f64, u64, f64)> {
        let (key, expiry, now) = (bytes(key)?, positive(expiry)?, finite(now)?);
        let window = self.lock().sliding_window(&key, expiry, now);
        let remaining = window.remaining(now) * expiry;
        let previous = if window.previous == 0 { 0.0 } else { remaining };
        Ok((window.previous, previous, window.current, remaining + expiry))
    }

    /// Forgets the fixed and the moving window of a key.
    fn clear(&self, key: &Bound<'_, PyString>) -> PyResult<()> {
        let key = bytes(key)?;
        let mut store = self.lock();
        store.clear(&key, Space::Counter);
        store.clear(&key, Space::Log);
        Ok(())
    }

    /// Forgets the sliding window of a key.
    fn clear_sliding_window(&self, key: &Bound<'_, PyString>, expiry: f64) -> PyResult<()> {
        let (key, space) = (bytes(key)?, Space::Sliding(positive(expiry)?.to_bits()));
        self.lock().clear(&key, space);
        Ok(())
    }

    /// Forgets everything; returns how many windows there were.
    fn reset(&self) -> usize {
        self.lock().reset()
    }

    /// Number of windows kept, perhaps with some that have expired.
    fn __len__(&self) -> usize {
        self.lock().records.len()
    }

    /// The capacity.
    #[getter]
    fn capacity(&self) -> usize {
        self.lock().capacity()
    }

    /// Everything that is counted, to be pickled.
    fn dump(&self) -> Vec<Pickled> {
        self.lock().records.iter().map(|(key, record)| pickled(key, record)).collect()
    }

    /// Puts back what was dumped.
    fn load(&self, dumped: Vec<Pickled>, now: f64) -> PyResult<()> {
        let now = finite(now)?;
        let records = dumped.into_iter().map(unpickled).collect::<PyResult<Vec<_>>>()?;
        let mut store = self.lock();
        records.into_iter().for_each(|(key, record)| store.restore(key, record, now));
        Ok(())
    }
}

impl WindowStore {
    fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes of a key, or their hash.
fn bytes<'k>(key: &'k Bound<'_, PyString>) -> PyResult<Cow<'k, [u8]>> {
    let name = encoded(key)?;
    if name.len() <= MAX_KEY {
        return Ok(name);
    }
    Ok(Cow::Owned([&[HASHED], &blake3::hash(&name).as_bytes()[..]].concat()))
}

/// Python's strings may contain surrogates, which UTF-8 has none for.
fn encoded<'k>(key: &'k Bound<'_, PyString>) -> PyResult<Cow<'k, [u8]>> {
    match key.to_cow() {
        Ok(Cow::Borrowed(text)) => Ok(Cow::Borrowed(text.as_bytes())),
        Ok(Cow::Owned(text)) => Ok(Cow::Owned(text.into_bytes())),
        Err(_) => {
            let encoded = key.call_method1("encode", ("utf-8", "surrogatepass"))?;
            Ok(Cow::Owned(encoded.cast::<PyBytes>()?.as_bytes().to_vec()))
        }
    }
}

fn positive(expiry: f64) -> PyResult<f64> {
    if expiry > 0.0 && expiry.is_finite() {
        return Ok(expiry);
    }
    Err(PyValueError::new_err(format!("expiry {expiry} is invalid; use seconds above 0")))
}

fn finite(now: f64) -> PyResult<f64> {
    if now.is_finite() {
        return Ok(now);
    }
    Err(PyValueError::new_err(format!("time {now} is invalid; use seconds since the epoch")))
}

fn pickled(key: &Key, record: &Record) -> Pickled {
    let name = key.name.to_vec();
    match record {
        Record::Counter(counter) => (0, name, counter.expires, vec![(0.0, counter.count)]),
        Record::Log(log) => (1, name, log.expiry, log.runs.iter().copied().collect()),
        Record::Sliding(Sliding { expiry, index, previous, current }) => {
            (2, name, *expiry, vec![(*index, *previous), (*index, *current)])
        }
    }
}

fn unpickled((kind, name, time, runs): Pickled) -> PyResult<(Key, Record)> {
    let ordered = runs.iter().all(|run| run.0.is_finite()) && runs.is_sorted_by(|a, b| a.0 <= b.0);
    let (space, record) = match (kind, &runs[..]) {
        (0, [(_, count)]) => {
            (Space::Counter, Record::Counter(Counter { count: *count, expires: finite(time)? }))
        }
        (1, _) if ordered => {
            (Space::Log, Record::Log(Box::new(Log::restore(positive(time)?, runs))))
        }
        (2, [(index, previous), (_, current)]) if ordered => {
            let (index, previous, current) = (index.floor(), *previous, *current);
            let sliding = Sliding { expiry: positive(time)?, index, previous, current };
            (Space::Sliding(time.to_bits()), Record::Sliding(sliding))
        }
        _ => return Err(PyValueError::new_err(format!("invalid record of kind {kind}"))),
    };
    Ok((Key { space, name: name.into() }, record))
}
