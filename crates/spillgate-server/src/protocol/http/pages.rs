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
    /// Why the last reload of the policy was refused, or null. Without a required token, only the
    /// number of problems. The server is ready: the policy before is in force.
    reload_failure: Option<String>,
    /// Why the shared store is unavailable, or null. No details without a required token. The
    /// server is ready: limits follow their outage setting.
    outage: Option<String>,
    /// What is unsafe about the shared store, such as an eviction policy that may drop counters, or
    /// null. No details without a required token.
    store_warning: Option<String>,
    /// How many servers that share the store have another secret or policy, or null if none has. No
    /// details without a required token.
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
    let shown = |why: String, outline: &str| match is_known {
        true => why,
        false => format!("{outline}; send the token for details"),
    };
    let shared = app.gate().store().shared();
    let outage = shared.and_then(|store| store.backend().health().outage);
    let outage = outage.map(|why| shown(why.to_string(), "the store is unavailable"));
    let warning = shared.and_then(|store| store.backend().warnings().may_evict);
    let store_warning = warning.map(|why| shown(why, "the store may evict keys"));
    let mismatch = shared.and_then(|store| store.stats().agreement.differences());
    let mismatch = mismatch.map(|why| shown(why, "servers that share the store differ"));
    let phase = readiness.phase();
    let mut reply =
        json(&Ready { status: phase.name(), reload_failure, outage, store_warning, mismatch })?;
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
