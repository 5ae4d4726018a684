//! Pages for operators and people.

use http::StatusCode;
use http::header::{HeaderValue, VARY};
use http::request::Parts;
use schemars::JsonSchema;
use serde::Serialize;
use spillgate_enforce::MetricsFormat;

use super::access;
use super::problem::Problem;
use super::reply::{Reply, content, json, text};
use super::routes::Level;
use super::service::block_in_place;
use crate::{App, Phase};

/// Whether the server is ready.
#[derive(Serialize, JsonSchema)]
pub(super) struct Ready {
    /// `starting`, `ready` or `draining`.
    status: &'static str,
    /// Why the last reload of the policy was refused; null if it was not. Where the token is
    /// needed, those without it are told how many problems there are. The server is ready
    /// all the same: the policy before it is in force.
    reload_failure: Option<String>,
    /// Why the store that servers share cannot be asked; null if it can, or if there is none.
    /// Where the token is needed, those without it are told that it cannot. The server is
    /// ready all the same: limits do what their outage says.
    outage: Option<String>,
    /// What is unsafe about the store although it can be asked, such as an eviction policy by
    /// which it may drop what callers have spent; null if nothing is. Where the token is
    /// needed, those without it are told that there is something.
    store_warning: Option<String>,
    /// How many other servers that use the same store have another secret or policy; null if none
    /// has. Where the token is needed, those without it are told that some have. The server is ready
    /// all the same.
    mismatch: Option<String>,
}

pub(super) fn metrics(app: &App, head: &Parts) -> Reply {
    let format = MetricsFormat::accepted(&head.headers);
    let mut reply = content(format.content_type(), block_in_place(|| app.metrics(format)));
    reply.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    reply
}

pub(super) fn health() -> Reply {
    text("ok\n")
}

pub(super) fn ready(app: &App, head: &Parts) -> Result<Reply, Problem> {
    let readiness = app.readiness();
    // It names files and shows what is in them.
    let is_known = access::admit(&app.access(), Level::Client, head).is_ok();
    let reload_failure = readiness.reload_failure();
    let reload_failure =
        if is_known { reload_failure } else { reload_failure.as_deref().map(outline) };
    let outage = app.gate().store().shared().and_then(|store| store.backend().health().outage);
    let outage = outage.map(|why| match is_known {
        true => why.to_string(),
        false => "the store is unavailable; send the token for details".to_owned(),
    });
    let shared = app.gate().store().shared();
    let warning = shared.and_then(|store| store.backend().warnings().may_evict);
    let store_warning = warning.map(|why| match is_known {
        true => why,
        false => "the store may evict keys; send the token for details".to_owned(),
    });
    let mismatch = shared.and_then(|store| store.stats().agreement.differences());
    let mismatch = mismatch.map(|differs| match is_known {
        true => differs,
        false => "servers that share the store differ; send the token for details".to_owned(),
    });
    let phase = readiness.phase();
    let status = match phase {
        Phase::Starting => "starting",
        Phase::Ready => "ready",
        Phase::Draining => "draining",
    };
    let mut reply = json(&Ready { status, reload_failure, outage, store_warning, mismatch })?;
    if phase != Phase::Ready {
        *reply.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    Ok(reply)
}

/// What anyone may know of why a reload was refused.
fn outline(failure: &str) -> String {
    match failure.lines().count() {
        1 => "1 problem; send the token for details".to_owned(),
        problems => format!("{problems} problems; send the token for details"),
    }
}
