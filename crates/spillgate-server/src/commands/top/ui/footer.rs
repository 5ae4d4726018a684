//! The last line: what the user writes, what became of an action, or the keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::text::Line;

use super::put;
use super::table::shorten;
use crate::commands::top::pane::Pane;
use crate::commands::top::state::State;
use crate::commands::top::view::{Dialog, View};

pub(super) fn draw(state: &State, view: &View, area: Rect, buffer: &mut Buffer) {
    let width = usize::from(area.width);
    let line = match (&view.dialog, &view.message) {
        (Some(Dialog::Filter(_)), _) => Line::from(format!("limits with: {}_", view.filter).bold()),
        (_, Some(message)) if message.is_failure => {
            Line::from(shorten(&format!("! {}", message.text), width).bold())
        }
        (_, Some(message)) => Line::from(shorten(&message.text, width)),
        _ => keys(state, view, width),
    };
    put(&line, area, buffer);
}

/// The keys that do something now, as many as there is room for.
fn keys(state: &State, view: &View, width: usize) -> Line<'static> {
    let mut keys = vec![("?", "help"), ("q", "quit"), ("tab", "pane"), ("s", "sort")];
    keys.extend([("/", "filter"), ("p", if view.paused { "resume" } else { "pause" })]);
    if view.has_token {
        keys.push(("r", if view.reveal { "mask" } else { "reveal" }));
    }
    let has_rows = view.selected(view.focus, state).is_some();
    match view.focus {
        Pane::Callers if view.reveal && has_rows => keys.extend([("b", "ban"), ("x", "reset")]),
        Pane::Bans if view.reveal && has_rows => keys.push(("x", "lift")),
        _ => {}
    }
    if has_rows {
        keys.push(("enter", "details"));
    }
    let mut line = Line::default();
    for (key, does) in keys {
        if line.width() + key.len() + 1 + does.len() > width {
            break;
        }
        line.spans.extend([key.bold(), " ".into(), does.into(), "  ".into()]);
    }
    line
}
