use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Key, Original, Text};
use crate::protocol::http::json::Integer;
use crate::protocol::http::problem::Problem;

/// The keys of all forms, so that an error names an unknown one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckRequest<'a> {
    #[serde(borrow)]
    limit: Option<Text<'a>>,
    #[serde(borrow)]
    key: Option<Key<'a>>,
    cost: Option<Integer>,
    #[serde(borrow)]
    request: Option<Original<'a>>,
    #[serde(borrow)]
    checks: Option<Vec<Named<'a>>>,
    #[serde(borrow)]
    batch: Option<Vec<CheckRequest<'a>>>,
}

pub(super) enum Form<'a> {
    Single(Single<'a>),
    Batch(Vec<CheckRequest<'a>>),
}

pub(super) enum Single<'a> {
    Limit(Named<'a>),
    Request(Original<'a>),
    Several(Vec<Named<'a>>),
}

const MOST_TOGETHER: usize = 64;

/// A limit by its name.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LimitCheck", example = json!({ "limit": "api", "key": "203.0.113.7" }))]
pub(in crate::protocol::http) struct Named<'a> {
    /// The limit's name.
    #[serde(borrow)]
    limit: Text<'a>,
    /// Whom it counts; absent if it counts everyone together.
    #[serde(borrow)]
    key: Option<Key<'a>>,
    /// What it costs: 1 if absent; 0 only looks.
    cost: Option<Integer>,
}

/// A question, or a batch of them.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "CheckBody", deny_unknown_fields)]
#[expect(dead_code, reason = "describes a shape")]
pub(in crate::protocol::http) enum CheckBody<'a> {
    /// One question.
    Question(Question<'a>),
    /// Several questions, each of its own.
    Batch {
        /// The questions.
        #[schemars(length(max = 1000))]
        batch: Vec<Question<'a>>,
    },
}

/// A question, in one of three forms.
#[derive(JsonSchema)]
#[schemars(untagged, deny_unknown_fields)]
#[expect(dead_code, reason = "describes a shape")]
pub(in crate::protocol::http) enum Question<'a> {
    /// One limit.
    Limit(Named<'a>),
    /// A request, which meets the limits that match it.
    Request {
        /// The request.
        request: Original<'a>,
    },
    /// Several limits, all or nothing.
    Several {
        /// The limits.
        #[schemars(length(min = 1, max = MOST_TOGETHER))]
        checks: Vec<Named<'a>>,
    },
}

impl<'a> CheckRequest<'a> {
    pub(super) fn form(self) -> Result<Form<'a>, Problem> {
        let Self { limit, key, cost, request, checks, batch } = self;
        let has_extras = key.is_some() || cost.is_some();
        let single = match (limit, request, checks, batch) {
            (Some(limit), None, None, None) => Ok(Single::Limit(Named::new(limit, key, cost))),
            (None, Some(request), None, None) if !has_extras => Ok(Single::Request(request)),
            (None, None, Some(checks), None) if !has_extras => several(checks),
            (None, None, None, Some(batch)) if !has_extras => return Ok(Form::Batch(batch)),
            _ => Err(Problem::bad_request(
                "a check is one of {\"limit\", \"key\", \"cost\"}, {\"request\"}, {\"checks\"} and \
                 {\"batch\"}, and this is none or more than one of them",
            )),
        };
        single.map(Form::Single)
    }

    /// Its form as an element of a batch.
    pub(super) fn single(self) -> Result<Single<'a>, Problem> {
        match self.form()? {
            Form::Single(Single::Request(request)) => {
                // An invalid request makes the whole batch invalid.
                request.message()?;
                Ok(Single::Request(request))
            }
            Form::Single(single) => Ok(single),
            Form::Batch(_) => Err(Problem::bad_request("a batch cannot contain another batch")),
        }
    }
}

fn several(checks: Vec<Named<'_>>) -> Result<Single<'_>, Problem> {
    let given = checks.len();
    if (1..=MOST_TOGETHER).contains(&given) {
        return Ok(Single::Several(checks));
    }
    Err(Problem::bad_request(format_args!(
        "checks has {given} limits; it must have from 1 to {MOST_TOGETHER}"
    )))
}

impl<'a> Named<'a> {
    pub(in crate::protocol::http) fn new(
        limit: Text<'a>,
        key: Option<Key<'a>>,
        cost: Option<Integer>,
    ) -> Self {
        Self { limit, key, cost }
    }

    pub(in crate::protocol::http) fn limit(&self) -> &str {
        self.limit.as_str()
    }

    pub(in crate::protocol::http) fn parts(&self) -> Vec<&str> {
        self.key.as_ref().map(Key::parts).unwrap_or_default()
    }

    pub(in crate::protocol::http) fn cost(&self) -> u64 {
        self.cost.map_or(1, |Integer(cost)| cost)
    }
}
