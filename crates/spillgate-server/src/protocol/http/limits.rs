//! `/v1/limits`, and `/v1/limits/{limit}/keys/{key}`: peek or reset.

use schemars::JsonSchema;
use serde::Serialize;
use spillgate_policy::{Error, LimitSummary};

use super::check::CheckResult;
use super::parameters::{Query, segment};
use super::problem::Problem;
use super::reply::{Reply, json, no_content};
use super::service::block_in_place;
use crate::App;

/// The limits of the policy in force.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Limits")]
pub(super) struct LimitList {
    /// In the order of the policy.
    limits: Vec<LimitSummary>,
}

pub(super) fn list(app: &App) -> Result<Reply, Problem> {
    json(&LimitList { limits: block_in_place(|| app.gate().limits()) })
}

pub(super) async fn peek(app: &App, segments: [&str; 2], query: &Query) -> Result<Reply, Problem> {
    let KeyPath { limit, parts, cost } = KeyPath::new(app, segments, query)?;
    let peeked = app.gate().peek_limit(&limit, &texts(&parts), cost).await;
    let decision = peeked.map_err(|error| Problem::of_limit_in_detail(app, &limit, &error))?;
    json(&CheckResult::of_limit(&limit, &decision))
}

pub(super) async fn reset(app: &App, segments: [&str; 2], query: &Query) -> Result<Reply, Problem> {
    let KeyPath { limit, parts, .. } = KeyPath::new(app, segments, query)?;
    done(app, &limit, app.gate().reset_limit(&limit, &texts(&parts)).await)
}

pub(super) fn done(app: &App, limit: &str, done: Result<(), Error>) -> Result<Reply, Problem> {
    done.map(|()| no_content()).map_err(|error| Problem::of_limit_in_detail(app, limit, &error))
}

pub(super) fn texts(parts: &[String]) -> Vec<&str> {
    parts.iter().map(String::as_str).collect()
}

pub(super) struct KeyPath {
    pub(super) limit: String,
    pub(super) parts: Vec<String>,
    cost: u64,
}

impl KeyPath {
    /// The first part is in the path, others are in the query. The key of a global limit is
    /// `global`.
    pub(super) fn new(app: &App, [limit, key]: [&str; 2], query: &Query) -> Result<Self, Problem> {
        let limit = segment("the name of the limit", limit)?.into_owned();
        let mut parts = vec![segment("the key", key)?.into_owned()];
        let mut cost = 1;
        for (name, value) in query {
            match *name {
                "cost" => {
                    cost = value.parse().map_err(|_| {
                        Problem::bad_request(format_args!("invalid cost {value:?}; use an integer"))
                    })?;
                }
                _ => parts.push(value.clone()),
            }
        }
        if app.gate().policy().parts(&limit) == Some(0) && parts == ["global"] {
            parts.clear();
        }
        Ok(Self { limit, parts, cost })
    }
}
