//! Until when a list entry or an override counts, and why: as it is sent, and as it is shown.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use http::StatusCode;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use spillgate::Timestamp;
use spillgate_policy::{Origin, Terms, parse_duration, rfc3339};

use super::check::{Seconds, Text};
use super::json::{Integer, parse};
use super::parameters::{Parameter, ParameterType, Query};
use super::problem::Problem;

/// Until when, and why. Nothing is required.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Terms")]
pub(super) struct TermsBody<'a> {
    /// How long it lasts from now, from one second to ten years: `1h`, or a number of seconds. For
    /// ever if it is absent.
    pub(super) ttl: Option<Ttl>,
    /// When it ends, in place of `ttl`: `2027-01-01T00:00:00Z`.
    #[serde(borrow)]
    #[schemars(example = &"2027-01-01T00:00:00Z")]
    pub(super) expires: Option<Text<'a>>,
    /// Why it is there: one line of at most 256 bytes.
    #[serde(borrow)]
    pub(super) comment: Option<Text<'a>>,
}

pub(super) const TTL: Parameter = Parameter {
    name: "ttl",
    kind: ParameterType::Text,
    description: "How long it lasts from now: 1h, or a number of seconds; for ever if absent",
};
pub(super) const EXPIRES: Parameter = Parameter {
    name: "expires",
    kind: ParameterType::Text,
    description: "When it ends, in place of ttl: 2027-01-01T00:00:00Z",
};
pub(super) const COMMENT: Parameter = Parameter {
    name: "comment",
    kind: ParameterType::Text,
    description: "Why it is there: one line of at most 256 bytes",
};

const YEAR: Duration = Duration::from_secs(365 * 86_400);
/// More is meant to be for ever, or a mistake.
const RANGE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3653 * 86_400);

impl TermsBody<'_> {
    /// The terms that stand in the query and in the body, if there is one.
    pub(super) fn read(query: &Query, body: &[u8], now: Timestamp) -> Result<Terms, Problem> {
        let mut sent: TermsBody<'_> = if body.is_empty() { Self::default() } else { parse(body)? };
        for (name, value) in query {
            let is_new = match *name {
                "ttl" => sent.ttl.replace(Ttl::Text(value.clone())).is_none(),
                "expires" => sent.expires.replace(value.clone().into()).is_none(),
                "comment" => sent.comment.replace(value.clone().into()).is_none(),
                _ => true,
            };
            if !is_new {
                return Err(wrong(format_args!(
                    "{name} is in the query and in the body; send it once"
                )));
            }
        }
        sent.terms(now)
    }

    pub(super) fn terms(self, now: Timestamp) -> Result<Terms, Problem> {
        let until = match (self.ttl, self.expires) {
            (None, None) => None,
            (Some(ttl), None) => Some(now + ttl.duration()?),
            (None, Some(expires)) => {
                let until = rfc3339::parse(expires.as_str());
                Some(until.map_err(|why| wrong(format_args!("expires: {why}")))?)
            }
            (Some(_), Some(_)) => {
                return Err(wrong("ttl and expires exclude each other; send one"));
            }
        };
        if until.is_some_and(|until| until.since(now) > *RANGE.end()) {
            return Err(wrong("expires is more than ten years from now; leave it out"));
        }
        let mut terms = until.map_or_else(Terms::permanent, Terms::until);
        terms.comment = self.comment.map(|comment| comment.as_str().to_owned());
        terms.check(now).map_err(|error| Problem::refused(&error))?;
        Ok(terms)
    }
}

fn wrong(detail: impl fmt::Display) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

/// A duration: a text, or seconds.
#[derive(Debug)]
pub(super) enum Ttl {
    Seconds(u64),
    Text(String),
}

impl Ttl {
    pub(super) fn duration(&self) -> Result<Duration, Problem> {
        let duration = match self {
            Self::Seconds(seconds) => Ok(Duration::from_secs(*seconds)),
            Self::Text(text) => match text.parse() {
                Ok(seconds) => Ok(Duration::from_secs(seconds)),
                Err(_) => parse_duration(text),
            },
        };
        let shown = match self {
            Self::Seconds(seconds) => seconds.to_string(),
            Self::Text(text) => format!("{text:?}"),
        };
        match duration {
            Ok(duration) if RANGE.contains(&duration) => Ok(duration),
            Ok(duration) if duration > YEAR => {
                Err(wrong(format_args!("ttl is {shown}; send at most ten years, or none")))
            }
            Ok(_) => Err(wrong(format_args!("ttl is {shown}; send at least one second"))),
            Err(right) => Err(wrong(format_args!("ttl is {shown}; {right}"))),
        }
    }
}

impl<'de> Deserialize<'de> for Ttl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TtlVisitor)
    }
}

struct TtlVisitor;

impl Visitor<'_> for TtlVisitor {
    type Value = Ttl;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as \"1h\", or a whole number of seconds")
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<Ttl, E> {
        Ok(Ttl::Seconds(seconds))
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<Ttl, E> {
        let whole = Integer::of_float(seconds);
        let unexpected = serde::de::Unexpected::Float(seconds);
        whole
            .map(|Integer(seconds)| Ttl::Seconds(seconds))
            .ok_or_else(|| E::invalid_value(unexpected, &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Ttl, E> {
        Ok(Ttl::Text(text.to_owned()))
    }
}

impl JsonSchema for Ttl {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Ttl".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "oneOf": [
                { "type": "string", "minLength": 1, "examples": ["1h"] },
                { "type": "integer", "minimum": 1, "maximum": RANGE.end().as_secs() },
            ],
        })
    }
}

/// The terms of a list entry or an override in force.
#[derive(Serialize, JsonSchema)]
pub(super) struct ShownTerms {
    /// When it ends: `2027-01-01T00:00:00Z`; null if it does not.
    expires: Option<String>,
    /// Seconds until then.
    expires_in: Seconds,
    /// Why it is there.
    comment: Option<String>,
    /// Whether it is from the policy, or was set at run time. When one that was set at run time
    /// ends, the policy counts again.
    source: Origin,
}

impl ShownTerms {
    pub(super) fn new(
        until: Option<Timestamp>,
        comment: Option<String>,
        source: Origin,
        now: Timestamp,
    ) -> Self {
        let expires_in = Seconds(until.map(|until| until.since(now)));
        Self { expires: until.map(rfc3339::format), expires_in, comment, source }
    }
}
