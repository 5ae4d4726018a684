//! Explains adaptive limits.

use std::fmt;

use serde::Serialize;
use spillgate::Timestamp;
use spillgate::adaptive::Priority;

use super::AdaptiveState;
use super::asked::Asked;
use crate::gate::{Active, Answer};
use crate::policy::identity::Sender;
use crate::policy::priority::ClassifiedBy;
use crate::{Mode, RequestView};

/// How much a request matters, and why.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct PriorityExplanation {
    /// The class: `sheddable`, `low`, `normal`, `high` or `critical`.
    pub class: &'static str,
    /// The level of the caller inside the class in this hour, 0 to 99. The lowest are shed first.
    pub level: u8,
    /// What gave the request its class.
    pub named_by: String,
}

/// Where an adaptive limit is, and why.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct AdaptiveExplanation {
    /// What is limited: `concurrency`, `rate` or `share`.
    pub kind: &'static str,
    /// What moves it: `auto`, `target`, `errors`, `aimd` or `load`.
    pub controller: &'static str,
    /// What that looks at: `latency`, `queue-wait`, `errors`, `cpu`, …
    pub signal: &'static str,
    /// What it saw last: seconds of latency, or what the signal says; `None` if nothing yet, or the
    /// signal is missing.
    pub signal_value: Option<f64>,
    /// The present limit: requests in flight, requests per second, or a share of all requests.
    pub limit: f64,
    /// The lowest that it can be.
    pub min: f64,
    /// The highest that it can be.
    pub max: f64,
    /// Why it was moved last, or that the signal is missing.
    pub reason: &'static str,
    /// How often it was moved.
    pub changes: u64,
    /// Requests that it refused.
    pub refused: u64,
}

impl From<&AdaptiveState> for AdaptiveExplanation {
    fn from(AdaptiveState { kind, controller, signal, status, .. }: &AdaptiveState) -> Self {
        Self {
            kind,
            controller,
            signal,
            signal_value: status.signal,
            limit: status.limit,
            min: status.min,
            max: status.max,
            reason: status.reason.name(),
            changes: status.changes,
            refused: status.refused,
        }
    }
}

impl<L> Active<L> {
    /// How much a request matters, if the policy says so and something is shed by it.
    pub(in crate::gate) fn explain_priority(
        &self,
        request: &RequestView<'_>,
        sender: &Sender<'_>,
        now: Timestamp,
    ) -> Option<PriorityExplanation> {
        let asked = Asked::of_request(request, sender, self.asking(now));
        let priority: Priority = asked.priority?;
        let named_by = match self.policy.classify(request, sender).by {
            ClassifiedBy::Header => {
                let header = self.policy.priorities.as_ref()?.header.as_ref()?;
                format!("the header {header}, by a trusted proxy")
            }
            ClassifiedBy::Rule(number) => format!("rule {number} of [priority]"),
            ClassifiedBy::Tier => "the caller's tier".to_owned(),
            ClassifiedBy::Default => "the default".to_owned(),
        };
        let (class, level) = (priority.class().name(), priority.level());
        Some(PriorityExplanation { class, level, named_by })
    }

    /// What a refusal of a limit is.
    pub(in crate::gate) fn refusal_of(&self, place: usize) -> Answer {
        match self.policy.rules[place].sheds() {
            true => Answer::Shed,
            false => Answer::Denied,
        }
    }
}

impl fmt::Display for PriorityExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "priority {}, level {}, named by {}", self.class, self.level, self.named_by)
    }
}

impl fmt::Display for AdaptiveExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, limit) = (self.kind, Short(self.limit));
        let (min, max) = (Short(self.min), Short(self.max));
        write!(f, "           {kind} at {limit}, between {min} and {max}: {}, ", self.reason)?;
        write!(f, "controller {}, signal {}", self.controller, self.signal)?;
        match self.signal_value {
            Some(value) => writeln!(f, " {}", Short(value)),
            None => writeln!(f, " not known"),
        }
    }
}

/// A number with as many digits as people read.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0.abs() {
            10.0.. => format!("{:.1}", self.0),
            _ => format!("{:.4}", self.0),
        };
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// The answer to a request, if limits alone decide: what the limits that enforce and do not pass
/// say. The service goes before its callers, as it is asked first.
pub(in crate::gate) fn answer_of(refusals: impl Iterator<Item = (Mode, Answer)>) -> Answer {
    let mut answer = Answer::Allowed;
    for (_, refusal) in refusals.filter(|(mode, _)| *mode == Mode::Enforce) {
        if answer != Answer::Shed {
            answer = refusal;
        }
    }
    answer
}
