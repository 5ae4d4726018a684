//! The screen, drawn from what is known and what the user looks at, and from nothing else.

mod adaptive;
mod ascii;
mod bans;
mod bars;
mod callers;
mod details;
mod dialog;
mod footer;
mod header;
mod limits;
pub(super) mod numbers;
mod table;
#[cfg(test)]
mod tests;
mod upstreams;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::pane::Pane;
use super::rows;
use super::state::State;
use super::view::View;

/// Colours only repeat what is also written.
const ALLOWED: Style = Style::new().fg(Color::Green);
const DENIED: Style = Style::new().fg(Color::Red);
const SHADOW: Style = Style::new().fg(Color::Yellow);
const SHED: Style = Style::new().fg(Color::Magenta);

/// What a terminal can show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Abilities {
    pub(super) colours: bool,
    pub(super) unicode: bool,
}

/// Draws all of it.
pub(super) fn render(frame: &mut Frame<'_>, state: &State, view: &View, abilities: Abilities) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    let heights = [
        Constraint::Length(header::height(area.height)),
        Constraint::Min(0),
        Constraint::Length(u16::from(area.height > 2)),
    ];
    let [top, body, bottom] = Layout::vertical(heights).areas(area);
    header::draw(state, view, top, buffer);
    for (pane, area) in panes(state, view, body) {
        draw_pane(pane, state, view, area, buffer);
    }
    footer::draw(state, view, bottom, buffer);
    dialog::draw(state, view, area, buffer);
    if !abilities.unicode {
        ascii::replace(buffer);
    }
    if !abilities.colours {
        let plain = Style::new().fg(Color::Reset).bg(Color::Reset);
        buffer.set_style(area, plain);
    }
}

/// Which panes are shown, and where: the one in use, and others if there is room.
fn panes(state: &State, view: &View, body: Rect) -> Vec<(Pane, Rect)> {
    // A title, a heading and three rows of each.
    const LEAST: u16 = 5;
    let others = Pane::all(state).split_off(2);
    let third =
        if others.contains(&view.focus) { Some(view.focus) } else { others.last().copied() };
    let shown = match body.height {
        0..14 => vec![view.focus],
        14..28 if view.focus > Pane::Callers => vec![Pane::Limits, view.focus],
        14..28 => vec![Pane::Limits, Pane::Callers],
        _ => [Some(Pane::Limits), Some(Pane::Callers), third].into_iter().flatten().collect(),
    };
    // None gets more than it needs while another needs more.
    let mut heights = vec![LEAST; shown.len()];
    let wanted: Vec<_> = shown.iter().map(|pane| wanted(*pane, state, view)).collect();
    let free = body.height.saturating_sub(LEAST * shown.len() as u16);
    for _ in 0..free {
        let lacking = (0..shown.len()).filter(|at| heights[*at] < wanted[*at]);
        let smallest = lacking.min_by_key(|at| heights[*at]);
        // What nobody needs is at the end.
        heights[smallest.unwrap_or(shown.len() - 1)] += 1;
    }
    if let [alone] = &mut heights[..] {
        *alone = body.height;
    }
    let areas = Layout::vertical(heights.into_iter().map(Constraint::Length)).split(body);
    shown.into_iter().zip(areas.iter().copied()).collect()
}

/// Lines that show all rows of a pane.
fn wanted(pane: Pane, state: &State, view: &View) -> u16 {
    u16::try_from(rows::ids(pane, state, view).len()).unwrap_or(u16::MAX).saturating_add(2)
}

fn draw_pane(pane: Pane, state: &State, view: &View, area: Rect, buffer: &mut Buffer) {
    let [title, rest] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let has_focus = view.focus == pane;
    let mut text = format!("{} {} ", if has_focus { "▸" } else { "─" }, name(pane, state, view));
    let missing = usize::from(title.width).saturating_sub(Span::raw(text.as_str()).width());
    text.push_str(&"─".repeat(missing));
    let modifier = if has_focus { Modifier::BOLD } else { Modifier::DIM };
    let style = Style::new().fg(Color::Cyan).add_modifier(modifier);
    put(&Line::from(Span::styled(text, style)), title, buffer);
    let (columns, rows): (_, Vec<_>) = match pane {
        Pane::Limits => {
            (limits::columns(), rows::limits(state, view).into_iter().map(limits::row).collect())
        }
        Pane::Callers => {
            (callers::columns(), rows::callers(state, view).iter().map(callers::row).collect())
        }
        Pane::Bans => {
            (bans::columns(), rows::bans(state, view).into_iter().map(bans::row).collect())
        }
        Pane::Adaptive => {
            (adaptive::columns(), rows::adaptive(state, view).iter().map(adaptive::row).collect())
        }
        Pane::Upstreams => {
            let rows = rows::upstreams(state, view).into_iter().map(upstreams::row);
            (upstreams::columns(), rows.collect())
        }
    };
    if rows.is_empty() {
        put(&Line::from(nothing(pane, state, view)), rest, buffer);
        return;
    }
    let selected = view.selected(pane, state).filter(|_| has_focus);
    table::draw(&columns, &rows, selected, rest, buffer);
}

/// Writes a line at the top of an area, which may have no lines.
fn put(line: &Line<'_>, area: Rect, buffer: &mut Buffer) {
    if !area.is_empty() {
        buffer.set_line(area.x, area.y, line, area.width);
    }
}

/// The title of a pane.
fn name(pane: Pane, state: &State, view: &View) -> String {
    let shown = rows::ids(pane, state, view).len();
    let more = state.status.as_ref().map_or(0, |status| status.more_limits);
    let mut name = match pane {
        Pane::Limits if more > 0 => format!("Limits {shown} of {}", shown as u64 + more),
        Pane::Limits => format!("Limits {shown}"),
        Pane::Callers => {
            let seconds = state.status.as_ref().map_or(0.0, |status| status.top.seconds);
            format!("Denied callers {shown}, last {}", numbers::long_time(seconds))
        }
        Pane::Bans => format!("Bans {shown}"),
        Pane::Adaptive => format!("Adaptive {shown}"),
        Pane::Upstreams => format!("Upstreams {shown}"),
    };
    name.push_str(&format!(", by {}", view.order(pane).name()));
    let is_filtered = !matches!(pane, Pane::Bans | Pane::Upstreams) && !view.filter.is_empty();
    if is_filtered {
        name.push_str(&format!(", filter {:?}", view.filter));
    }
    name
}

/// Why a pane is empty.
fn nothing(pane: Pane, state: &State, view: &View) -> &'static str {
    match pane {
        _ if state.status.is_none() => "",
        Pane::Limits | Pane::Callers | Pane::Adaptive if !view.filter.is_empty() => {
            "nothing matches the filter; Esc clears it"
        }
        Pane::Limits => "the policy has no limits",
        Pane::Callers => "nobody was denied",
        Pane::Bans if state.bans.is_none() => "r lists them; this needs the server's token",
        Pane::Bans => "nobody is banned",
        Pane::Adaptive => "no adaptive limits",
        Pane::Upstreams => "no upstreams",
    }
}
