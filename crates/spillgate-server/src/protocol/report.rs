//! Reports of how calls ended, from any protocol.

use std::ops::RangeInclusive;
use std::time::Duration;

use spillgate::adaptive::Window;
use spillgate_enforce::Enforcer;
use spillgate_policy::store::Store;
use spillgate_policy::{CallReport, Error};

/// Calls that one request may report: more is a mistake, or an attack on what a limit has seen.
const CALLS: RangeInclusive<u64> = 1..=10_000;

/// Longer calls are a mistake in the unit.
const LONGEST: Duration = Window::LONGEST_LATENCY;

/// Why reports are refused: what the gate says of a limit, or what is wrong with them.
pub(super) type Refused<'a> = Result<(&'a str, Error), String>;

/// Notes all of them, or none if any is refused.
pub(super) fn note_all<'a, S: Store, R>(
    enforcer: &Enforcer<S, R>,
    reports: &[CallReport<'a>],
) -> Result<(), Refused<'a>> {
    let mut calls = 0_u64;
    for report in reports {
        calls = calls.saturating_add(report.count);
        if !CALLS.contains(&report.count) || !CALLS.contains(&calls) {
            let (least, most) = (CALLS.start(), CALLS.end());
            let wrong = if report.count == 0 { 0 } else { calls };
            return Err(Err(format!(
                "{wrong} calls cannot be reported at once; use a count from {least} to {most}"
            )));
        }
    }
    enforcer.report_all(reports).map_err(Ok)
}

/// A latency in seconds, from 0 to an hour.
pub(super) fn latency(seconds: f64) -> Result<Duration, String> {
    let latency = Duration::try_from_secs_f64(seconds).ok();
    latency.filter(|latency| *latency <= LONGEST).ok_or_else(|| {
        format!("a call cannot take {seconds} s; use seconds from 0 to {}", LONGEST.as_secs())
    })
}
