//! All about the selected row, for columns that were cut or had no room.

use ratatui::style::Stylize;
use ratatui::text::Line;

use super::numbers::{long_time, rate, short_time};
use super::{limits, rows};
use crate::commands::escape::Untrusted;
use crate::commands::top::pane::Pane;
use crate::commands::top::rows::RatedCaller;
use crate::commands::top::state::State;
use crate::commands::top::status::{Adaptive, Ban, Limit, Upstream};
use crate::commands::top::view::View;

pub(super) fn lines(state: &State, view: &View) -> Vec<Line<'static>> {
    let Some(selected) = view.selected(view.focus, state) else { return Vec::new() };
    match view.focus {
        Pane::Limits => rows::limits(state, view).get(selected).map(|it| limit(it)),
        Pane::Callers => rows::callers(state, view).get(selected).map(caller),
        Pane::Bans => rows::bans(state, view).get(selected).map(|it| ban(it)),
        Pane::Adaptive => {
            rows::adaptive(state, view).get(selected).map(|(limit, it)| adaptive(limit, it))
        }
        Pane::Upstreams => rows::upstreams(state, view).get(selected).map(|it| upstream(it)),
    }
    .unwrap_or_default()
}

fn entry(name: &str, value: impl Into<String>) -> Line<'static> {
    Line::from(vec![format!("{name:12}").bold(), value.into().into()])
}

fn number(value: Option<u64>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

fn limit(limit: &Limit) -> Vec<Line<'static>> {
    let mut used = limits::used(&limit.used);
    used.spans.insert(0, format!("{:12}", "used").bold());
    let mut lines = vec![
        entry("limit", limit.name.shown()),
        entry("quota", limit.quota.shown()),
        entry("algorithm", limit.algorithm.shown()),
        entry("per", limit.per.shown()),
        entry("mode", limit.mode.shown()),
        entry("allowed", limit.allowed.to_string()),
        entry("denied", limit.denied.to_string()),
        entry("shadow", limit.shadow_denied.to_string()),
        entry("shed", limit.shed.to_string()),
        entry("callers", format!("{} of {}", number(limit.callers), number(limit.capacity))),
        entry("evictions", number(limit.evictions)),
        used,
        entry("", limit.used.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")),
    ];
    if limit.held.is_some() {
        lines.push(entry("held", number(limit.held)));
        lines.push(entry("expired", number(limit.expired)));
    }
    lines
}

fn caller((caller, per_second): &RatedCaller<'_>) -> Vec<Line<'static>> {
    let mut lines =
        vec![entry("limit", caller.limit.shown()), entry("caller", caller.caller.shown())];
    let values = caller.values.iter().flatten();
    lines.extend(values.map(|value| entry("key", value.shown())));
    lines.extend([
        entry("ban as", caller.ban.as_ref().map_or("-".to_owned(), Untrusted::shown)),
        entry(
            "denied",
            format!("{} to {}", caller.denied, caller.denied.saturating_add(caller.error)),
        ),
        entry("per second", per_second.map_or("-".to_owned(), rate)),
        entry("shadow", caller.shadow_denied.to_string()),
        entry("allowed", format!("{} (estimated)", number(caller.allowed))),
    ]);
    lines
}

fn ban(ban: &Ban) -> Vec<Line<'static>> {
    vec![
        entry("caller", ban.caller.shown()),
        entry("reason", ban.reason.shown()),
        entry("mode", ban.mode.shown()),
        entry("count", ban.count.to_string()),
        entry("ends", format!("{}, in {}", ban.expires.shown(), long_time(ban.expires_in))),
    ]
}

fn adaptive(limit: &Limit, adaptive: &Adaptive) -> Vec<Line<'static>> {
    vec![
        entry("limit", limit.name.shown()),
        entry("kind", adaptive.kind.shown()),
        entry("now", rate(adaptive.limit)),
        entry("range", format!("{} to {}", rate(adaptive.min), rate(adaptive.max))),
        entry("in flight", number(limit.held)),
        entry("controller", adaptive.controller.shown()),
        entry("signal", adaptive.signal.shown()),
        entry("value", adaptive.signal_value.map_or("-".to_owned(), |value| value.to_string())),
        entry("reason", adaptive.reason.shown()),
        entry("shed", limit.shed.to_string()),
    ]
}

fn upstream(upstream: &Upstream) -> Vec<Line<'static>> {
    let time = |seconds: Option<f64>| seconds.map_or("-".to_owned(), short_time);
    vec![
        entry("upstream", upstream.url.shown()),
        entry("healthy", if upstream.healthy { "yes" } else { "no" }),
        entry("in flight", upstream.in_flight.to_string()),
        entry("limit", upstream.limit.map_or("-".to_owned(), rate)),
        entry("p50, p99", format!("{}, {}", time(upstream.p50), time(upstream.p99))),
        entry("reason", upstream.reason.as_ref().map_or("-".to_owned(), Untrusted::shown)),
    ]
}
