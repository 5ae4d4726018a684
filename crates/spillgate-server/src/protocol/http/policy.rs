//! `/v1/policy`: the policy in force.

use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use hyper::body::Incoming;
use schemars::JsonSchema;
use serde::Serialize;
use spillgate_policy::{Changes, LimitChange, ListChange, ListKind};

use super::HttpServer;
use super::body::{content_type, expect_type, read};
use super::problem::Problem;
use super::reply::{Reply, content, json};
use super::service::block_in_place;
use crate::App;

pub(super) const TOML: &str = "application/toml";

/// The longest text of a policy.
const LONGEST: usize = 16 * 1024 * 1024;

/// What a new policy has changed.
#[derive(Serialize, JsonSchema)]
pub(super) struct Replaced {
    /// New limits.
    added: Vec<String>,
    /// Limits that are gone, with their counters.
    removed: Vec<String>,
    /// Limits whose algorithm or key changed: every caller starts afresh.
    restarted: Vec<String>,
    /// Keys of limits that have another value.
    changed: Vec<ChangedKey>,
    /// Lists whose entries changed.
    lists: Vec<ChangedList>,
}

/// A key of a limit that has another value.
#[derive(Serialize, JsonSchema)]
struct ChangedKey {
    /// The limit's name.
    limit: String,
    /// The key, as in the policy file.
    key: String,
    /// The value before; empty if it is not a short text.
    from: String,
    /// The value now; empty if it is not a short text.
    to: String,
}

/// How many entries a list gained and lost.
#[derive(Serialize, JsonSchema)]
struct ChangedList {
    /// `allow` or `block`.
    list: &'static str,
    /// New entries.
    added: usize,
    /// Entries that are gone.
    removed: usize,
}

impl From<Changes> for Replaced {
    fn from(changes: Changes) -> Self {
        let Changes { added, removed, restarted, changed, lists, .. } = changes;
        let changed = changed
            .into_iter()
            .map(|LimitChange { limit, key, from, to, .. }| ChangedKey { limit, key, from, to });
        let lists = lists.into_iter().map(|ListChange { list, added, removed, .. }| {
            let list = if list == ListKind::Allow { "allow" } else { "block" };
            ChangedList { list, added, removed }
        });
        let (changed, lists) = (changed.collect(), lists.collect());
        Self { added, removed, restarted, changed, lists }
    }
}

pub(super) fn show(app: &App) -> Result<Reply, Problem> {
    Ok(content(TOML, app.policy().as_bytes().to_vec()))
}

/// Reads the text of a policy.
pub(super) async fn text(
    server: &HttpServer,
    head: &Parts,
    body: Incoming,
) -> Result<Bytes, Problem> {
    expect_type(content_type(&head.headers), TOML)?;
    let text = read(body, LONGEST, server.bounds.stalled).await?;
    if text.trim_ascii().is_empty() {
        return Err(Problem::bad_request(
            "the body is empty; send the text of a policy, which is \"limit = []\" for one without limits",
        ));
    }
    Ok(text)
}

pub(super) fn replace(app: &App, text: &[u8]) -> Result<Reply, Problem> {
    let text = std::str::from_utf8(text).map_err(|error| {
        let place = error.valid_up_to();
        let detail = format!("the policy is not UTF-8 at byte {place}");
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    })?;
    let changes = block_in_place(|| app.replace(text)).map_err(|error| {
        app.readiness().refused();
        Problem::refused(&error)
    })?;
    app.readiness().reloaded();
    json(&Replaced::from(changes))
}
