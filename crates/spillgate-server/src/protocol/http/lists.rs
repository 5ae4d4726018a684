//! `/v1/lists/{list}`: callers that are always allowed or refused.

use schemars::JsonSchema;
use serde::Serialize;
use spillgate::Timestamp;
use spillgate_policy::store::Store;
use spillgate_policy::{Error, ListEntry, ListKind};

use super::parameters::{Query, segment};
use super::problem::Problem;
use super::reply::{Reply, Unchanged, json};
use super::terms::{ShownTerms, TermsBody};
use crate::App;

/// A list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Entries")]
pub(super) struct ListEntries {
    /// Those in force: addresses in their order, then API keys, then users.
    entries: Vec<ShownEntry>,
}

/// An entry of a list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Entry")]
pub(super) struct ShownEntry {
    /// An address range, `key:NAME` or `user:NAME`.
    entry: String,
    #[serde(flatten)]
    terms: ShownTerms,
}

/// What became of an entry.
#[derive(Serialize, JsonSchema)]
pub(super) struct Edited {
    /// False if it was so already.
    changed: bool,
}

pub(super) fn show(app: &App, [list, _]: [&str; 2]) -> Result<Reply, Problem> {
    let now = app.gate().store().now();
    let entries = app.gate().listed(kind(list)?).into_iter();
    json(&ListEntries { entries: entries.map(|entry| ShownEntry::new(entry, now)).collect() })
}

pub(super) fn show_entry(app: &App, [list, entry]: [&str; 2]) -> Result<Reply, Problem> {
    let entry = segment("the entry", entry)?;
    let found = app.gate().listed_entry(kind(list)?, &entry).map_err(|error| refused(&error))?;
    let found = found.ok_or_else(|| {
        Problem::not_found(format_args!(
            "the list {list} has no such entry; ranges stand as written"
        ))
    })?;
    json(&ShownEntry::new(found, app.gate().store().now()))
}

pub(super) async fn add(
    app: &App,
    [list, entry]: [&str; 2],
    query: &Query,
    body: &[u8],
) -> Result<Reply, Problem> {
    let entry = segment("the entry", entry)?;
    let kind = kind(list)?;
    let terms = TermsBody::read(query, body, app.gate().store().now())?;
    edited(app.gate().list(kind, &entry, terms).await)
}

pub(super) async fn remove(app: &App, [list, entry]: [&str; 2]) -> Result<Reply, Problem> {
    let entry = segment("the entry", entry)?;
    let kind = kind(list)?;
    edited(app.gate().unlist(kind, &entry).await)
}

fn edited(edited: Result<bool, Error>) -> Result<Reply, Problem> {
    let changed = edited.map_err(|error| refused(&error))?;
    let mut reply = json(&Edited { changed })?;
    if !changed {
        reply.extensions_mut().insert(Unchanged);
    }
    Ok(reply)
}

fn refused(error: &Error) -> Problem {
    if error.is_store() { Problem::unavailable(error) } else { Problem::refused(error) }
}

impl ShownEntry {
    fn new(entry: ListEntry, now: Timestamp) -> Self {
        let terms = ShownTerms::new(entry.until, entry.comment, entry.origin, now);
        Self { entry: entry.entry, terms }
    }
}

fn kind(list: &str) -> Result<ListKind, Problem> {
    match list {
        "allow" => Ok(ListKind::Allow),
        "block" => Ok(ListKind::Block),
        other => Err(Problem::not_found(format_args!(
            "unknown list {other:?}; the lists are allow and block"
        ))),
    }
}
