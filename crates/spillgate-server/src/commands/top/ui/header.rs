//! The server, and all its requests.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span};

use super::bars::bars;
use super::numbers::{count, long_time, rate, short_time};
use super::table::shorten;
use super::{ALLOWED, DENIED, SHADOW, SHED, put};
use crate::commands::top::history::KEPT;
use crate::commands::top::state::State;
use crate::commands::top::status::{Second, Status};
use crate::commands::top::view::View;

/// How many lines there are on a screen of some height.
pub(super) fn height(screen: u16) -> u16 {
    match screen {
        0..8 => 1,
        8..18 => 3,
        18..36 => 5,
        _ => 8,
    }
}

pub(super) fn draw(state: &State, view: &View, area: Rect, buffer: &mut Buffer) {
    let width = usize::from(area.width);
    let empty = Status::default();
    let status = state.status.as_ref().unwrap_or(&empty);
    let mut lines = match state.trouble() {
        // There is no line for it further down.
        Some(_) if area.height < 3 => vec![condition(state, status, width)],
        _ => vec![title(state, view, width)],
    };
    if area.height > 1 {
        lines.push(requests(status, width));
    }
    if area.height > 3 {
        let (allowed, denied) = if area.height > 5 { (3, 2) } else { (1, 1) };
        let refused = |second: &Second| second.denied + second.shadow_denied + second.shed;
        lines.extend(chart(state, "allowed", allowed, width, ALLOWED, |second| second.allowed));
        lines.extend(chart(state, "denied", denied, width, DENIED, refused));
    }
    if area.height > 2 {
        lines.push(condition(state, status, width));
    }
    for (line, row) in lines.iter().zip(area.rows()) {
        put(line, row, buffer);
    }
}

fn title(state: &State, view: &View, width: usize) -> Line<'static> {
    let mut line = Line::from(vec!["spillgate".bold(), " ".into()]);
    if let Some(status) = &state.status {
        let phase = status.phase.shown();
        let phase = if phase == "ready" { Span::styled(phase, ALLOWED) } else { phase.reversed() };
        line.push_span(status.version.shown());
        line.push_span(format!("  {}  ", view.server));
        line.push_span(phase);
        line.push_span(format!("  up {}", long_time(status.uptime)));
    } else {
        line.push_span(format!(" {}", view.server));
    }
    let mut modes = Vec::new();
    if view.paused {
        modes.push(" PAUSED ".reversed());
    }
    modes.push(match state.is_revealed {
        true => " NAMES REVEALED ".reversed(),
        false => "names masked".dim(),
    });
    let modes = Line::from(modes);
    // If there is room: to be paused is more important than what is already clear.
    match width.checked_sub(line.width() + 2 + modes.width()) {
        Some(free) => {
            line.push_span(" ".repeat(free + 2));
            line.spans.extend(modes.spans);
        }
        None if view.paused => line.spans.insert(0, "PAUSED ".reversed()),
        None => {}
    }
    line
}

fn requests(status: &Status, width: usize) -> Line<'static> {
    let second = &status.second;
    let mut line = Line::default();
    let mut part = |name: &'static str, number: u64, style: Style, is_always: bool| {
        if number > 0 || is_always {
            let style = if number > 0 { style.add_modifier(Modifier::BOLD) } else { Style::new() };
            line.push_span(format!("{name} "));
            line.push_span(Span::styled(format!("{}/s", count(number)), style));
            line.push_span("  ");
        }
    };
    part("allowed", second.allowed, ALLOWED, true);
    part("denied", second.denied, DENIED, true);
    part("shadow", second.shadow_denied, SHADOW, true);
    part("shed", second.shed, SHED, true);
    part("banned", second.banned, DENIED, false);
    part("blocked", second.blocked, DENIED, false);
    part("unlimited", second.unlimited, Style::new(), false);
    if let Some(decision) = status.decision {
        let (p50, p99) = (short_time(decision.p50), short_time(decision.p99));
        let text = format!("decision p50 {p50} p99 {p99}");
        if line.width() + text.chars().count() <= width {
            line.push_span(text.dim());
        }
    }
    line
}

fn chart(
    state: &State,
    name: &str,
    rows: usize,
    width: usize,
    style: Style,
    of: impl Fn(&Second) -> u64,
) -> Vec<Line<'static>> {
    const LABEL: usize = 8;
    const PEAK: usize = 14;
    let columns = width.saturating_sub(LABEL + PEAK).min(KEPT);
    let values = state.history.means(columns, of);
    let peak = values.iter().flatten().copied().fold(0.0, f64::max);
    let line = |(at, bars): (usize, String)| {
        let label = if at + 1 == rows { name } else { "" };
        let peak = if at == 0 { format!(" peak {}/s", rate(peak)) } else { String::new() };
        Line::from(vec![format!("{label:LABEL$}").into(), Span::styled(bars, style), peak.dim()])
    };
    bars(&values, rows).into_iter().enumerate().map(line).collect()
}

/// What is wrong; if nothing is, what there is.
fn condition(state: &State, status: &Status, width: usize) -> Line<'static> {
    let mut wrong: Vec<String> = state.trouble().into_iter().collect();
    if let Some(failure) = &status.reload_failure {
        wrong.push(format!("reload failed: {}", failure.shown()));
    }
    if let Some(store) = &status.store {
        let causes = [&store.outage, &store.warning, &store.mismatch];
        let causes = causes.into_iter().flatten().map(|cause| format!(": {}", cause.shown()));
        let causes: String = causes.collect();
        if store.state.raw() != "up" || !causes.is_empty() {
            wrong.push(format!("{} {}{causes}", store.kind.shown(), store.state.shown()));
        }
    }
    if !wrong.is_empty() {
        let text = format!("! {}", wrong.join(" · "));
        return Line::from(shorten(&text, width).reversed().bold());
    }
    if state.status.is_none() {
        return Line::from("waiting for the server's first answer");
    }
    let bans = status.bans;
    let mut parts = vec![format!("bans {}", count(bans.enforced))];
    if bans.shadow > 0 {
        parts.push(format!("{} in shadow mode", count(bans.shadow)));
    }
    if bans.evicted > 0 {
        parts.push(format!("{} bans evicted", count(bans.evicted)));
    }
    if let Some(store) = &status.store {
        parts.push(format!("{} {}", store.kind.shown(), store.state.shown()));
    }
    let adaptive = status.limits.iter().filter(|limit| limit.adaptive.is_some()).count();
    if adaptive > 0 {
        parts.push(format!("adaptive limits {adaptive}"));
    }
    if !status.upstreams.is_empty() {
        let healthy = status.upstreams.iter().filter(|upstream| upstream.healthy).count();
        parts.push(format!("upstreams {healthy} of {} healthy", status.upstreams.len()));
    }
    Line::from(shorten(&parts.join(" · "), width))
}
