//! What a replay found.

mod csv;
mod html;
mod terminal;

use serde::Serialize;
use spillgate_policy::{Mode, printable, rfc3339};

use crate::compare::Differences;
use crate::engine::Engine;
use crate::input::InputSummary;
use crate::series::Series;
use crate::tally::{ANSWERS, Tally};

/// How many callers and endpoints a report has.
const KEPT: usize = 1000;

/// How many of them are shown to people.
const SHOWN: usize = 20;

/// What a policy would have done with a log. Serialized, it is the JSON report.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Report {
    /// All lines of all logs.
    pub lines: u64,
    /// Lines that were replayed.
    pub requests: u64,
    /// Requests that would have been allowed.
    pub allowed: u64,
    /// Requests that would have been refused, for any reason.
    pub refused: u64,
    /// How many requests got which answer.
    pub answers: Vec<Count>,
    /// Allowed requests that a limit in shadow mode would have denied.
    pub shadow_denied: u64,
    /// Requests with status 429 in the log.
    pub refused_in_log: u64,
    /// Time of the first request.
    pub first: Option<String>,
    /// Time of the last request.
    pub last: Option<String>,
    /// Every log and its format.
    pub logs: Vec<LogReport>,
    /// Lines that were not replayed, by reason.
    pub skipped: Vec<SkippedLines>,
    /// Every limit.
    pub limits: Vec<LimitReport>,
    /// The callers with the most refusals.
    pub callers: Vec<NamedCounts>,
    /// By how much the refusals of a caller may be too low.
    pub callers_error: u64,
    /// The endpoints with the most refusals.
    pub endpoints: Vec<NamedCounts>,
    /// By how much the refusals of an endpoint may be too low.
    pub endpoints_error: u64,
    /// The longest times in which a caller was refused without interruption.
    pub lockouts: Vec<LockoutReport>,
    /// Requests by hour, or by longer intervals if the log is long.
    pub hours: Vec<Interval>,
    /// Requests by shorter intervals.
    pub intervals: Vec<Interval>,
    /// What limits the report.
    pub notes: Vec<String>,
    /// The same for another policy, and who is treated differently.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

/// How often something was counted.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "named by what they are")]
pub struct Count {
    pub name: &'static str,
    pub count: u64,
}

/// A log.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "named by what they are")]
pub struct LogReport {
    pub name: String,
    pub format: &'static str,
}

/// Lines that were not replayed.
#[derive(Clone, Debug, Serialize)]
pub struct SkippedLines {
    /// Why.
    pub reason: &'static str,
    /// How many.
    pub lines: u64,
    /// The first of them.
    pub samples: Vec<String>,
}

/// What one limit did.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LimitReport {
    /// Its name.
    pub name: String,
    /// Its quota.
    pub quota: String,
    /// What it counts by.
    pub per: String,
    /// Whether it refuses.
    pub mode: Mode,
    /// Requests that met it.
    pub met: u64,
    /// Requests that it denied.
    pub denied: u64,
    /// Requests that it would have denied in shadow mode.
    pub shadow_denied: u64,
    /// The most callers that were below their full quota at one time, as far as it was seen.
    pub peak_callers: u64,
    /// The callers for which there is room.
    pub capacity: u64,
    /// Callers that were evicted for want of room.
    pub evictions: u64,
    /// Bytes that a table for the peak takes.
    pub peak_bytes: u64,
    /// Bytes that the table takes as configured.
    pub capacity_bytes: u64,
}

/// Requests by caller or endpoint.
#[derive(Clone, Debug, Serialize)]
pub struct NamedCounts {
    /// The caller or endpoint.
    pub name: String,
    /// Requests that were refused.
    pub refused: u64,
    /// Requests that were allowed since the first refusal.
    pub allowed: u64,
}

/// A time in which a caller got nothing.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "named by what they are")]
pub struct LockoutReport {
    pub caller: String,
    pub since: String,
    pub until: String,
    pub seconds: f64,
    pub refused: u64,
}

/// Requests of an interval.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "named by what they are")]
pub struct Interval {
    pub start: String,
    pub seconds: u64,
    pub allowed: u64,
    pub refused: u64,
}

/// How another policy differs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Comparison {
    /// Requests that both allow.
    pub allowed_by_both: u64,
    /// Requests that only the other policy refuses.
    pub newly_refused: u64,
    /// Requests that only this policy refuses.
    pub newly_allowed: u64,
    /// Requests that both refuse.
    pub refused_by_both: u64,
    /// Limits of the other policy.
    pub limits: Vec<LimitReport>,
    /// The callers with the most requests that are treated differently.
    pub callers: Vec<DifferentCaller>,
}

/// A caller that another policy treats differently.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "named by what they are")]
pub struct DifferentCaller {
    pub name: String,
    pub newly_refused: u64,
    pub newly_allowed: u64,
}

impl Report {
    pub(crate) fn new(input: InputSummary, tally: &Tally, engine: Option<&Engine>) -> Self {
        let callers = tally.callers.top(KEPT);
        let endpoints = tally.endpoints.top(KEPT);
        let mut notes = notes(tally, engine);
        notes.extend(input.damaged);
        if tally.requests == 0 && input.lines > 0 {
            notes.push("not one line was replayed; see which were skipped, and why".to_owned());
        }
        if input.is_window_shortened {
            notes.push("too many requests to put the whole window in order".to_owned());
        }
        let skipped = input.skipped.into_iter().map(|(skip, (lines, samples))| SkippedLines {
            reason: skip.reason(),
            lines,
            samples,
        });
        let answers = ANSWERS.into_iter().zip(tally.answers);
        Self {
            lines: input.lines,
            requests: tally.requests,
            allowed: tally.answers[0],
            refused: tally.requests - tally.answers[0],
            answers: answers.map(|(name, count)| Count { name, count }).collect(),
            shadow_denied: tally.shadow_denied,
            refused_in_log: tally.refused_in_log,
            first: tally.span.map(|(first, _)| rfc3339::format(first)),
            last: tally.span.map(|(_, last)| rfc3339::format(last)),
            logs: input
                .formats
                .into_iter()
                .map(|(name, format)| LogReport { name, format })
                .collect(),
            skipped: skipped.collect(),
            limits: limits(tally, engine),
            callers: callers
                .into_iter()
                .map(|entry| named(&entry.value.name, entry.value.refused, entry.value.allowed))
                .collect(),
            callers_error: tally.callers.error(),
            endpoints: endpoints
                .into_iter()
                .map(|entry| named(&entry.value.name, entry.value.refused, entry.value.allowed))
                .collect(),
            endpoints_error: tally.endpoints.error(),
            lockouts: tally
                .lockouts
                .iter()
                .map(|(caller, run)| LockoutReport {
                    caller: caller.clone(),
                    since: rfc3339::format(run.since),
                    until: rfc3339::format(run.until),
                    seconds: run.seconds(),
                    refused: run.refused,
                })
                .collect(),
            hours: intervals(&tally.series.by_hour()),
            intervals: intervals(&tally.series.shortened(120)),
            notes,
            comparison: None,
        }
    }

    /// Adds what another policy did.
    pub(crate) fn compare(&mut self, other: &Tally, engine: Option<&Engine>, by: &Differences) {
        let [allowed_by_both, newly_refused, newly_allowed, refused_by_both] = by.counts;
        let callers = by.callers.top(KEPT).into_iter().map(|entry| DifferentCaller {
            name: entry.value.name.clone(),
            newly_refused: entry.value.newly_refused,
            newly_allowed: entry.value.newly_allowed,
        });
        self.comparison = Some(Comparison {
            allowed_by_both,
            newly_refused,
            newly_allowed,
            refused_by_both,
            limits: limits(other, engine),
            callers: callers.collect(),
        });
    }

    /// The report as JSON.
    ///
    /// # Errors
    ///
    /// Never, as long as a report has no keys that are no texts.
    pub fn to_json(&self) -> serde_json::Result<String> {
        // Also what only a terminal obeys is escaped, in texts, which is where it can be.
        Ok(escaped(&serde_json::to_string_pretty(self)?))
    }
}

/// JSON without characters beyond ASCII that are not shown.
fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for it in json.chars() {
        let mut bytes = [0; 4];
        let text: &str = it.encode_utf8(&mut bytes);
        if it < '\u{7f}' || printable(text) == text {
            escaped.push(it);
        } else {
            let mut units = [0; 2];
            for unit in it.encode_utf16(&mut units) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    escaped
}

fn named(name: &str, refused: u64, allowed: u64) -> NamedCounts {
    NamedCounts { name: name.to_owned(), refused, allowed }
}

fn intervals(series: &Series) -> Vec<Interval> {
    let interval = |(start, allowed, refused)| Interval {
        start: rfc3339::format(start),
        seconds: series.width(),
        allowed,
        refused,
    };
    series.iter().map(interval).collect()
}

fn limits(tally: &Tally, engine: Option<&Engine>) -> Vec<LimitReport> {
    let summaries = engine.map(|engine| engine.gate().limits()).unwrap_or_default();
    let report =
        |(counts, summary): (&crate::tally::LimitTally, spillgate_policy::LimitSummary)| {
            LimitReport {
                name: summary.name,
                quota: summary.quota,
                per: summary.per,
                mode: summary.mode,
                met: counts.met,
                denied: counts.denied,
                shadow_denied: counts.shadow_denied,
                peak_callers: counts.peak_callers,
                capacity: summary.capacity as u64,
                evictions: counts.evictions,
                peak_bytes: table_bytes(counts.peak_callers),
                capacity_bytes: table_bytes(summary.capacity as u64),
            }
        };
    tally.limits.iter().zip(summaries).map(report).collect()
}

/// What a table for so many callers takes: docs/sizing.md.
fn table_bytes(callers: u64) -> u64 {
    callers * if callers > 4096 { 26 } else { 52 }
}

/// What a log cannot show.
fn notes(tally: &Tally, engine: Option<&Engine>) -> Vec<String> {
    let mut notes = Vec::new();
    let summaries = engine.map(|engine| engine.gate().limits()).unwrap_or_default();
    for limit in &summaries {
        if limit.held.is_some() || limit.adaptive.is_some() {
            let name = &limit.name;
            notes.push(format!(
                "limit {name:?} is on concurrency or follows load, which a log does not show: it \
                 denied nothing here"
            ));
        }
    }
    if tally.answers[5] > 0 {
        notes.push(
            "the policy has limits for hosts, and some requests have none in the log; add --host"
                .to_owned(),
        );
    }
    if tally.refused_in_log > 0 {
        notes.push(format!(
            "{} requests have status 429 in the log: their callers may behave otherwise under \
             another policy",
            tally.refused_in_log
        ));
    }
    notes
}
