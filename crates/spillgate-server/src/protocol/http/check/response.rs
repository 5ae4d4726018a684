use std::time::Duration;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use spillgate::Decision;
use spillgate_policy::{Answer as Verdict, LimitState, Mode, Outcome};

use crate::protocol::http::problem::{Document, Problem};

/// What was decided. If several limits have a say, it speaks for the one nearest to denying.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Decision")]
pub(in crate::protocol::http) struct CheckResult<'a> {
    /// May it happen?
    allowed: bool,
    /// True if the caller is on the block list. Otherwise it is not there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    blocked: bool,
    /// True if the caller is banned, for `retry_after` seconds. Otherwise it is not there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    banned: bool,
    /// True if the service is at its limit, which is not the caller's fault. Otherwise it is not
    /// there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    shed: bool,
    /// The name of the limit; null if none was met.
    limit: Option<&'a str>,
    /// The most that can be spent at once.
    max: Option<u64>,
    /// How much can still be spent now.
    remaining: Option<u64>,
    /// Seconds until the same would be allowed: 0 if it is; null if no waiting helps.
    retry_after: Seconds,
    /// Seconds until all is back; null if what is spent stays spent.
    reset_after: Seconds,
    /// Seconds to wait before going ahead, if a shaper spaces calls out.
    wait: Seconds,
    /// Every limit that has a say, if there may be more than one or it is in shadow.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Vec<LimitStatus<'a>>>,
}

/// What one limit says.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LimitState")]
pub(in crate::protocol::http) struct LimitStatus<'a> {
    /// The limit's name.
    limit: &'a str,
    /// Whether it refuses, or only counts.
    mode: Mode,
    /// Whether it would let pass.
    allowed: bool,
    /// The most that can be spent at once.
    max: u64,
    /// How much can still be spent now.
    remaining: u64,
    /// Seconds until the same would be allowed: 0 if it is; null if no waiting helps.
    retry_after: Seconds,
    /// Seconds until all is back; null if what is spent stays spent.
    reset_after: Seconds,
}

/// An answer for each of a batch, in their order; or one answer.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::protocol::http) enum CheckResponse<'a> {
    /// The answer to a single question.
    One(CheckResult<'a>),
    /// Those to a batch.
    Batch {
        /// In the order of the batch.
        answers: Vec<BatchResult<'a>>,
    },
}

/// What became of one question of a batch.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::protocol::http) enum BatchResult<'a> {
    /// It was decided.
    Decided(CheckResult<'a>),
    /// It could not be.
    Failed {
        /// Why.
        error: Document<'a>,
    },
}

impl<'a> CheckResponse<'a> {
    pub(super) fn of_batch(outcomes: &'a [Result<(Outcome, bool), Problem>]) -> Self {
        let outcome = |decided: &'a Result<(Outcome, bool), Problem>| match decided {
            Ok((outcome, is_plain)) => BatchResult::Decided(CheckResult::new(outcome, *is_plain)),
            Err(problem) => BatchResult::Failed { error: problem.document() },
        };
        Self::Batch { answers: outcomes.iter().map(outcome).collect() }
    }
}

impl<'a> CheckResult<'a> {
    /// Of an outcome. A plain one is of one limit by name.
    pub(in crate::protocol::http) fn new(outcome: &'a Outcome, is_plain: bool) -> Self {
        let first = if is_plain { outcome.limits().next() } else { outcome.nearest() };
        let is_shadow = first.is_some_and(|limit| limit.mode() == Mode::Shadow);
        let decision = first.map(|limit| limit.decision());
        Self {
            allowed: outcome.is_allowed(),
            blocked: outcome.answer() == Verdict::Blocked,
            banned: outcome.answer() == Verdict::Banned,
            shed: outcome.answer() == Verdict::Shed,
            limit: first.map(|limit| limit.name()),
            max: decision.map(Decision::limit),
            remaining: decision.map(Decision::remaining),
            retry_after: Seconds(outcome.retry_after()),
            reset_after: Seconds(decision.and_then(Decision::reset_after)),
            wait: Seconds(Some(outcome.wait())),
            limits: (!is_plain || is_shadow)
                .then(|| outcome.limits().map(LimitStatus::new).collect()),
        }
    }

    pub(in crate::protocol::http) fn of_limit(limit: &'a str, decision: &Decision) -> Self {
        Self {
            allowed: decision.is_allowed(),
            blocked: false,
            banned: false,
            shed: false,
            limit: Some(limit),
            max: Some(decision.limit()),
            remaining: Some(decision.remaining()),
            retry_after: Seconds(decision.retry_after()),
            reset_after: Seconds(decision.reset_after()),
            wait: Seconds(Some(decision.wait())),
            limits: None,
        }
    }
}

impl<'a> LimitStatus<'a> {
    fn new(state: LimitState<'a>) -> Self {
        let decision = state.decision();
        Self {
            limit: state.name(),
            mode: state.mode(),
            allowed: decision.is_allowed(),
            max: decision.limit(),
            remaining: decision.remaining(),
            retry_after: Seconds(decision.retry_after()),
            reset_after: Seconds(decision.reset_after()),
        }
    }
}

/// Seconds, rounded up to a millisecond; null if there is no such time.
#[derive(Clone, Copy, JsonSchema)]
#[schemars(inline, with = "Option<f64>")]
pub(in crate::protocol::http) struct Seconds(pub(in crate::protocol::http) Option<Duration>);

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let millis = self.0.map(|time| time.as_nanos().div_ceil(1_000_000));
        match millis {
            // Whole seconds need no decimal point.
            Some(millis) if millis.is_multiple_of(1000) => {
                serializer.serialize_u64(u64::try_from(millis / 1000).unwrap_or(u64::MAX))
            }
            // Some 2⁴³ at most, so no digit is lost.
            Some(millis) => serializer.serialize_f64(millis as f64 / 1000.0),
            None => serializer.serialize_none(),
        }
    }
}
