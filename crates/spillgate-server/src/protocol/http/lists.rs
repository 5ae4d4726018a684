//! `/v1/lists/{list}`: callers that are always allowed or refused.

use schemars::JsonSchema;
use serde::Serialize;
use spillgate_policy::ListKind;

use super::parameters::segment;
use super::problem::Problem;
use super::reply::{Reply, Unchanged, json};
use super::service::block_in_place;
use crate::App;

/// A list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Entries")]
pub(super) struct ListEntries {
    /// Addresses, ranges, `key:NAME` and `user:NAME`.
    entries: Vec<String>,
}

/// What became of an entry.
#[derive(Serialize, JsonSchema)]
pub(super) struct Edited {
    /// False if it was so already.
    changed: bool,
}

pub(super) fn show(app: &App, [list, _]: [&str; 2]) -> Result<Reply, Problem> {
    json(&ListEntries { entries: app.gate().listed(kind(list)?) })
}

pub(super) fn add(app: &App, [list, entry]: [&str; 2]) -> Result<Reply, Problem> {
    let entry = segment("the entry", entry)?;
    let kind = kind(list)?;
    edited(block_in_place(|| app.gate().list(kind, &entry)))
}

pub(super) fn remove(app: &App, [list, entry]: [&str; 2]) -> Result<Reply, Problem> {
    let entry = segment("the entry", entry)?;
    let kind = kind(list)?;
    edited(block_in_place(|| app.gate().unlist(kind, &entry)))
}

fn edited(edited: Result<bool, spillgate_policy::Error>) -> Result<Reply, Problem> {
    let changed = edited.map_err(|error| Problem::refused(&error))?;
    let mut reply = json(&Edited { changed })?;
    if !changed {
        reply.extensions_mut().insert(Unchanged);
    }
    Ok(reply)
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
