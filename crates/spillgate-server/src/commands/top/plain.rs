//! What there is now, as text.

use std::error::Error;
use std::fmt::Write;

use serde_json::{Value, json};

use super::super::escape::Untrusted;
use super::super::table::table;
use super::status::{Caller, Limit, Status, Upstream};
use super::ui::numbers::{long_time, rate, short_time};

/// Whether the server has a limit: names those that it has. Of very many, a status lists some only.
pub(super) fn check_limit(status: &Status, name: &str) -> Result<(), String> {
    if status.more_limits > 0 || status.limits.iter().any(|limit| limit.name.raw() == name) {
        return Ok(());
    }
    let names: Vec<_> = status.limits.iter().map(|limit| limit.name.shown()).collect();
    Err(format!("no limit {name:?}; there are: {}", names.join(", ")))
}

/// A paragraph about the server, and a table of each kind of thing that it has.
pub(super) fn text(
    status: &Status,
    limit: Option<&str>,
    count: usize,
) -> Result<String, Box<dyn Error>> {
    let is_shown = |name: &Untrusted| limit.is_none_or(|limit| limit == name.raw());
    let limits: Vec<_> = status.limits.iter().filter(|limit| is_shown(&limit.name)).collect();
    let mut text = head(status)?;
    let rows = limits.iter().map(|limit| limit_row(limit)).collect();
    text.push_str(&table(&Value::Array(rows), LIMITS, "no limits")?);
    if status.more_limits > 0 {
        writeln!(text, "{} more limits", status.more_limits)?;
    }
    let callers = status.top.callers.iter().filter(|caller| is_shown(&caller.limit));
    let rows = callers.take(count).map(caller_row).collect();
    writeln!(text, "\ndenied callers, last {}", long_time(status.top.seconds))?;
    text.push_str(&table(&Value::Array(rows), CALLERS, "nobody")?);
    let rows: Vec<_> = limits.iter().filter_map(|limit| adaptive_row(limit)).collect();
    if !rows.is_empty() {
        text.push_str("\nadaptive limits\n");
        text.push_str(&table(&Value::Array(rows), ADAPTIVE, "")?);
    }
    if !status.upstreams.is_empty() {
        text.push_str("\nupstreams\n");
        let rows = status.upstreams.iter().map(upstream_row).collect();
        text.push_str(&table(&Value::Array(rows), UPSTREAMS, "")?);
    }
    Ok(text)
}

fn head(status: &Status) -> Result<String, Box<dyn Error>> {
    let Status { second, bans, .. } = status;
    let mut text = format!(
        "spillgate {}  {}  up {}\n",
        status.version.shown(),
        status.phase.shown(),
        long_time(status.uptime)
    );
    writeln!(
        text,
        "allowed {}/s  denied {}/s  shadow {}/s  shed {}/s  bans {}",
        second.allowed, second.denied, second.shadow_denied, second.shed, bans.enforced
    )?;
    if let Some(failure) = &status.reload_failure {
        writeln!(text, "reload failed: {}", failure.shown())?;
    }
    if let Some(store) = &status.store {
        write!(text, "{} {}", store.kind.shown(), store.state.shown())?;
        for cause in [&store.outage, &store.warning, &store.mismatch].into_iter().flatten() {
            write!(text, ": {}", cause.shown())?;
        }
        text.push('\n');
    }
    text.push('\n');
    Ok(text)
}

const LIMITS: &[(&str, &str)] = &[
    ("LIMIT", "limit"),
    ("QUOTA", "quota"),
    ("MODE", "mode"),
    ("ALLOWED/S", "allowed/s"),
    ("DENIED/S", "denied/s"),
    ("ALLOWED", "allowed"),
    ("DENIED", "denied"),
    ("CALLERS", "callers"),
    ("CAPACITY", "capacity"),
];

fn limit_row(limit: &Limit) -> Value {
    let second = &limit.second;
    json!({
        "limit": limit.name.raw(), "quota": limit.quota.raw(), "mode": limit.mode.raw(),
        "allowed/s": second.allowed,
        "denied/s": second.denied + second.shadow_denied + second.shed,
        "allowed": limit.allowed,
        "denied": limit.denied + limit.shadow_denied + limit.shed,
        "callers": limit.callers, "capacity": limit.capacity,
    })
}

const CALLERS: &[(&str, &str)] = &[
    ("CALLER", "caller"),
    ("LIMIT", "limit"),
    ("DENIED", "denied"),
    ("+ AT MOST", "error"),
    ("SHADOW", "shadow"),
    ("ALLOWED~", "allowed"),
];

fn caller_row(caller: &Caller) -> Value {
    json!({
        "caller": caller.caller.raw(), "limit": caller.limit.raw(), "denied": caller.denied,
        "error": caller.error, "shadow": caller.shadow_denied, "allowed": caller.allowed,
    })
}

const ADAPTIVE: &[(&str, &str)] = &[
    ("LIMIT", "limit"),
    ("NOW", "now"),
    ("MIN", "min"),
    ("MAX", "max"),
    ("CONTROLLER", "controller"),
    ("SIGNAL", "signal"),
    ("REASON", "reason"),
];

fn adaptive_row(limit: &Limit) -> Option<Value> {
    let adaptive = limit.adaptive.as_ref()?;
    Some(json!({
        "limit": limit.name.raw(), "now": rate(adaptive.limit), "min": rate(adaptive.min),
        "max": rate(adaptive.max), "controller": adaptive.controller.raw(),
        "signal": adaptive.signal.raw(), "reason": adaptive.reason.raw(),
    }))
}

const UPSTREAMS: &[(&str, &str)] = &[
    ("UPSTREAM", "url"),
    ("HEALTHY", "healthy"),
    ("IN FLIGHT", "in flight"),
    ("P50", "p50"),
    ("P99", "p99"),
    ("LIMIT", "limit"),
    ("REASON", "reason"),
];

fn upstream_row(upstream: &Upstream) -> Value {
    json!({
        "url": upstream.url.raw(), "healthy": if upstream.healthy { "yes" } else { "NO" },
        "in flight": upstream.in_flight, "p50": upstream.p50.map(short_time),
        "p99": upstream.p99.map(short_time), "limit": upstream.limit.map(rate),
        "reason": upstream.reason.as_ref().map(Untrusted::raw),
    })
}
