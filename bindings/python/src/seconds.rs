//! Times between Python and Rust: seconds as numbers or `timedelta`, moments as Unix time or
//! `datetime`.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDateTime, PyDelta};
use spillgate::Timestamp;

use crate::errors::invalid;

/// A time span: a number of seconds, or a `timedelta`.
#[derive(Clone, Copy)]
pub(crate) struct Seconds(pub(crate) Duration);

impl<'py> FromPyObject<'_, 'py> for Seconds {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let seconds: f64 = match value.cast::<PyDelta>() {
            Ok(delta) => delta.call_method0("total_seconds")?.extract()?,
            Err(_) => value.extract()?,
        };
        span(seconds).map(Self)
    }
}

/// A moment: Unix time, or a `datetime`.
#[derive(Clone, Copy)]
pub(crate) struct Moment(pub(crate) Timestamp);

impl<'py> FromPyObject<'_, 'py> for Moment {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let seconds: f64 = match value.cast::<PyDateTime>() {
            Ok(moment) => moment.call_method0("timestamp")?.extract()?,
            Err(_) => value.extract()?,
        };
        Ok(Self(Timestamp::ZERO + span(seconds)?))
    }
}

fn span(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| invalid(format!("a time of {seconds} s; use a number of seconds from 0 on")))
}

/// Nanoseconds, as Python counts them exactly.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Unix time.
pub(crate) fn unix(moment: Timestamp) -> f64 {
    Duration::from_nanos(moment.as_nanos()).as_secs_f64()
}
