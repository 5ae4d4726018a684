//! Pages for operators and people.

use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use tollgate_tower::Metrics;

use super::aside::aside;
use super::problem::Problem;
use super::reply::{Reply, content, json, text};
use crate::{App, Phase};

/// Whether the server is ready.
#[derive(Serialize, JsonSchema)]
pub(super) struct Ready {
    /// `starting`, `ready` or `draining`.
    status: &'static str,
    /// Why the last reload of the policy was refused; null if it was not. The server is
    /// ready all the same: the policy before it is in force.
    reload_failure: Option<String>,
}

pub(super) fn metrics(app: &App) -> Reply {
    content(Metrics::CONTENT_TYPE, aside(|| app.metrics()))
}

pub(super) fn health() -> Reply {
    text("ok\n")
}

pub(super) fn ready(app: &App) -> Result<Reply, Problem> {
    let readiness = app.readiness();
    let phase = readiness.phase();
    let status = match phase {
        Phase::Starting => "starting",
        Phase::Ready => "ready",
        Phase::Draining => "draining",
    };
    let mut reply = json(&Ready { status, reload_failure: readiness.reload_failure() })?;
    if phase != Phase::Ready {
        *reply.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    Ok(reply)
}

pub(super) fn home() -> Reply {
    text(concat!(
        "Tollgate ",
        env!("CARGO_PKG_VERSION"),
        ": may this caller do this, now?\n\n",
        include_str!("home.txt")
    ))
}
