use schemars::JsonSchema;
use serde::Deserialize;

use super::{Key, Original, Text};
use crate::http::problem::Problem;

/// What a body says: every key that any form has, so that one that is misspelt is told by
/// its name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked<'a> {
    #[serde(borrow)]
    limit: Option<Text<'a>>,
    #[serde(borrow)]
    key: Option<Key<'a>>,
    cost: Option<u64>,
    #[serde(borrow)]
    request: Option<Original<'a>>,
    #[serde(borrow)]
    checks: Option<Vec<Named<'a>>>,
    #[serde(borrow)]
    batch: Option<Vec<Asked<'a>>>,
}

/// What is asked.
pub(super) enum Form<'a> {
    Limit(Named<'a>),
    Request(Original<'a>),
    Several(Vec<Named<'a>>),
    Batch(Vec<Asked<'a>>),
}

/// A limit by its name.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LimitCheck")]
pub(in crate::http) struct Named<'a> {
    /// The limit's name.
    #[serde(borrow)]
    limit: Text<'a>,
    /// Whom it counts; absent if it counts everyone together.
    #[serde(borrow)]
    key: Option<Key<'a>>,
    /// What it costs: 1 if absent; 0 only looks.
    cost: Option<u64>,
}

/// A question, in one of four forms.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "CheckBody")]
#[expect(dead_code, reason = "describes a shape")]
pub(in crate::http) enum CheckBody<'a> {
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
        checks: Vec<Named<'a>>,
    },
    /// Several questions, each of its own.
    Batch {
        /// The questions. None of them may be a batch.
        batch: Vec<CheckBody<'a>>,
    },
}

impl<'a> Asked<'a> {
    /// The one form that it has.
    pub(super) fn form(self) -> Result<Form<'a>, Problem> {
        let Self { limit, key, cost, request, checks, batch } = self;
        let has_extras = key.is_some() || cost.is_some();
        match (limit, request, checks, batch) {
            (Some(limit), None, None, None) => Ok(Form::Limit(Named::new(limit, key, cost))),
            (None, Some(request), None, None) if !has_extras => Ok(Form::Request(request)),
            (None, None, Some(checks), None) if !has_extras => Ok(Form::Several(checks)),
            (None, None, None, Some(batch)) if !has_extras => Ok(Form::Batch(batch)),
            _ => Err(Problem::bad_request(
                "a check is one of {\"limit\", \"key\", \"cost\"}, {\"request\"}, {\"checks\"} and \
                 {\"batch\"}, and this is none or more than one of them",
            )),
        }
    }
}

impl<'a> Named<'a> {
    pub(in crate::http) fn new(limit: Text<'a>, key: Option<Key<'a>>, cost: Option<u64>) -> Self {
        Self { limit, key, cost }
    }

    pub(in crate::http) fn limit(&self) -> &str {
        self.limit.as_str()
    }

    pub(in crate::http) fn parts(&self) -> Vec<&str> {
        self.key.as_ref().map(Key::parts).unwrap_or_default()
    }

    pub(in crate::http) fn cost(&self) -> u64 {
        self.cost.unwrap_or(1)
    }
}
