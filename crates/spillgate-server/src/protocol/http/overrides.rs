//! `/v1/overrides`, `/v1/limits/{limit}/overrides` and `/v1/limits/{limit}/keys/{key}/override`: quotas
//! of single callers.

use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spillgate::Timestamp;
use spillgate_policy::store::Store;
use spillgate_policy::{Error, OverrideEntry, Quota};

use super::check::Text;
use super::json::parse;
use super::limits::{KeyPath, done, texts};
use super::parameters::{Query, segment};
use super::problem::Problem;
use super::reply::{Reply, json};
use super::terms::{ShownTerms, TermsBody, Ttl};
use crate::App;

/// A caller's own quota.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OverrideBody<'a> {
    /// How much, over how long: `100/s burst 200`.
    #[serde(borrow)]
    #[schemars(length(min = 1), example = &"100/s burst 200")]
    quota: Text<'a>,
    /// How long it lasts from now, from one second to ten years: `1h`, or a number of seconds. For
    /// ever if it is absent.
    ttl: Option<Ttl>,
    /// When it ends, in place of `ttl`: `2027-01-01T00:00:00Z`.
    #[serde(borrow)]
    #[schemars(example = &"2027-01-01T00:00:00Z")]
    expires: Option<Text<'a>>,
    /// Why it is there: one line of at most 256 bytes.
    #[serde(borrow)]
    comment: Option<Text<'a>>,
}

/// Quotas of single callers.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Overrides")]
pub(super) struct OverrideList {
    /// In the order of the limits.
    overrides: Vec<ShownOverride>,
}

/// The quota of a single caller.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Override")]
struct ShownOverride {
    /// The limit.
    limit: String,
    /// The caller: a text for each part that the limit is counted per.
    key: Vec<String>,
    /// How much, over how long.
    quota: String,
    #[serde(flatten)]
    terms: ShownTerms,
}

pub(super) fn all(app: &App) -> Result<Reply, Problem> {
    shown(app, app.gate().overrides())
}

pub(super) fn of_limit(app: &App, [limit, _]: [&str; 2]) -> Result<Reply, Problem> {
    let limit = segment("the name of the limit", limit)?;
    shown(app, app.gate().overrides_of(&limit).map_err(Problem::not_found)?)
}

fn shown(app: &App, overrides: Vec<OverrideEntry>) -> Result<Reply, Problem> {
    let now = app.gate().store().now();
    let overrides = overrides.into_iter().map(|entry| ShownOverride::new(entry, now));
    json(&OverrideList { overrides: overrides.collect() })
}

impl ShownOverride {
    fn new(entry: OverrideEntry, now: Timestamp) -> Self {
        Self {
            limit: entry.limit,
            key: entry.values,
            quota: entry.quota.to_string(),
            terms: ShownTerms::new(entry.until, entry.comment, entry.origin, now),
        }
    }
}

pub(super) async fn set(
    app: &App,
    segments: [&str; 2],
    query: &Query,
    body: &[u8],
) -> Result<Reply, Problem> {
    let KeyPath { limit, parts, .. } = KeyPath::new(app, segments, query)?;
    let OverrideBody { quota, ttl, expires, comment } = parse(body)?;
    let quota = quota.as_str();
    let quota: Quota = quota.parse().map_err(|error| {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, format_args!("quota {quota:?}: {error}"))
    })?;
    let terms = TermsBody { ttl, expires, comment }.terms(app.gate().store().now())?;
    changed(app, &limit, app.gate().set_override(&limit, &texts(&parts), quota, terms).await)
}

pub(super) async fn remove(
    app: &App,
    segments: [&str; 2],
    query: &Query,
) -> Result<Reply, Problem> {
    let KeyPath { limit, parts, .. } = KeyPath::new(app, segments, query)?;
    let removed = app.gate().remove_override(&limit, &texts(&parts)).await;
    changed(app, &limit, removed.map(drop))
}

fn changed(app: &App, limit: &str, changed: Result<(), Error>) -> Result<Reply, Problem> {
    match changed {
        // The limit's algorithm cannot count it, or it is the policy's own.
        Err(error) if error.is_policy() => Err(Problem::refused(&error)),
        changed => done(app, limit, changed),
    }
}
