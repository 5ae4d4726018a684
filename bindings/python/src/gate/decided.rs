//! What becomes of a request, in parts that need no gate.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use spillgate_enforce::{Admission, Enforcer};
use spillgate_policy::store::Store;
use spillgate_policy::{Answer, Error, Mode, Outcome};

use super::question::Question;

#[expect(clippy::large_enum_variant, reason = "the large one is the usual one")]
pub(super) enum Decided {
    /// It goes ahead. If the store failed, there is no outcome.
    Allowed(Option<Outcome<'static>>),
    Refused(Box<Refused>),
}

/// A refusal: the response, and why.
pub(super) struct Refused {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) why: Why,
}

/// Why a request is refused.
#[derive(Default)]
pub(super) struct Why {
    pub(super) answer: &'static str,
    pub(super) caller: Option<String>,
    pub(super) limits: Vec<Limit>,
    pub(super) denied_by: Option<String>,
    pub(super) retry_after: Option<Duration>,
}

/// A limit that a request met.
#[derive(Clone)]
pub(super) struct Limit {
    pub(super) name: String,
    pub(super) is_shadow: bool,
    pub(super) decision: spillgate::Decision,
}

impl Decided {
    /// Fails if the question does not fit the policy. A store that fails is a refusal, or not, as
    /// the enforcer says.
    pub(super) fn of<S: Store>(
        enforcer: &Enforcer<S>,
        question: &Question,
        decided: Result<Outcome<'static>, Error>,
    ) -> Result<Self, Error> {
        let decided = match decided {
            Err(error) if !error.is_store() => return Err(error),
            decided => decided,
        };
        let why = match &decided {
            Ok(outcome) if outcome.is_allowed() => Why::default(),
            Ok(outcome) => Why::of(outcome),
            Err(error) => Why::of_error(error),
        };
        Ok(match enforcer.admit::<Bytes>(question.view(), decided) {
            Admission::Pass(outcome) => Self::Allowed(outcome),
            Admission::Refuse(response) => {
                let (parts, body) = response.into_parts();
                let (status, headers) = (parts.status, parts.headers);
                Self::Refused(Box::new(Refused { status, headers, body, why }))
            }
        })
    }
}

impl Why {
    fn of(outcome: &Outcome<'_>) -> Self {
        Self {
            answer: name(outcome.answer()),
            caller: outcome.refused_caller().map(ToString::to_string),
            limits: limits(outcome),
            denied_by: outcome.denied_by().or(outcome.shed_by()).map(ToOwned::to_owned),
            retry_after: outcome.retry_after(),
        }
    }

    fn of_error(error: &Error) -> Self {
        let answer = if error.is_overloaded() { "overloaded" } else { "store-failed" };
        Self { answer, retry_after: Some(Duration::from_secs(1)), ..Self::default() }
    }
}

pub(super) fn limits(outcome: &Outcome<'_>) -> Vec<Limit> {
    let limit = |limit: spillgate_policy::LimitState<'_>| Limit {
        name: limit.name().to_owned(),
        is_shadow: limit.mode() == Mode::Shadow,
        decision: *limit.decision(),
    };
    outcome.limits().map(limit).collect()
}

fn name(answer: Answer) -> &'static str {
    match answer {
        Answer::Allowed => "allowed",
        Answer::Blocked => "blocked",
        Answer::Banned => "banned",
        Answer::Shed => "shed",
        Answer::HostRequired => "host-required",
        // What later versions may answer lets nobody pass.
        _ => "denied",
    }
}
