//! What covers the panes: help, details, questions.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Padding, Paragraph, Widget};

use super::details;
use crate::commands::escape::Untrusted;
use crate::commands::top::state::State;
use crate::commands::top::view::{Change, Dialog, View};

const HELP: &[(&str, &str)] = &[
    ("q, Ctrl-C", "quit"),
    ("tab, ← →", "next pane"),
    ("↑ ↓, j k", "select; g and G: first and last"),
    ("enter", "all about what is selected"),
    ("s", "sort by something else"),
    ("/", "show limits whose name contains a text"),
    ("p", "pause, and go on"),
    ("r", "reveal names, and mask them (token)"),
    ("b", "ban the selected caller (token)"),
    ("x", "reset the selected caller, lift a ban (token)"),
    ("Ctrl-Z", "to the background"),
    ("", ""),
    ("USED", "requests by share of quota used, | denied"),
    ("±", "how much higher the true count may be"),
    ("ALLOWED~", "estimated from samples"),
];

pub(super) fn draw(state: &State, view: &View, area: Rect, buffer: &mut Buffer) {
    match &view.dialog {
        None | Some(Dialog::Filter(_)) => {}
        Some(Dialog::Help) => {
            let line = |(key, does): &(&str, &str)| {
                Line::from(vec![format!("{key:11}").bold(), (*does).to_owned().into()])
            };
            window("Keys", HELP.iter().map(line).collect(), area, buffer);
        }
        Some(Dialog::Details) => window("Details", details::lines(state, view), area, buffer),
        Some(Dialog::BanFor { caller, duration }) => {
            let lines = vec![
                Line::from(vec!["Ban ".into(), caller.shown().bold()]),
                Line::from(vec!["for ".into(), format!("{duration}_").bold()]),
                Line::default(),
                Line::from("Enter goes on, Esc cancels. Write 90s, 10m, 1h or 1d."),
            ];
            window("Ban", lines, area, buffer);
        }
        Some(Dialog::Confirm(change)) => {
            let lines = vec![question(change), Line::default(), Line::from("y yes, n no")];
            window("Are you sure?", lines, area, buffer);
        }
    }
}

fn question(change: &Change) -> Line<'static> {
    match change {
        Change::Ban { caller, duration } => Line::from(vec![
            "Ban ".into(),
            caller.shown().bold(),
            format!(" for {duration}?").into(),
        ]),
        Change::Lift { caller } => {
            Line::from(vec!["Lift the ban of ".into(), caller.shown().bold(), "?".into()])
        }
        Change::Reset { limit, values } => {
            let key = match &values[..] {
                [] => "everybody".to_owned(),
                values => values.iter().map(Untrusted::shown).collect::<Vec<_>>().join(", "),
            };
            Line::from(vec![
                "Forget what ".into(),
                key.bold(),
                " has spent of the limit ".into(),
                limit.shown().bold(),
                "?".into(),
            ])
        }
    }
}

/// A box in the middle, as large as its text. Long names go on in the next line, since what is
/// about to be changed has to be seen in full.
fn window(title: &'static str, lines: Vec<Line<'static>>, area: Rect, buffer: &mut Buffer) {
    const FRAME: usize = 4;
    let widest = lines.iter().map(Line::width).max().unwrap_or(0).max(title.len());
    let width = (widest + FRAME).min(usize::from(area.width));
    let inner = width.saturating_sub(FRAME).max(1);
    let lines: Vec<_> = lines.into_iter().flat_map(|line| wrap(line, inner)).collect();
    let size = |size: usize| Constraint::Length(u16::try_from(size).unwrap_or(u16::MAX));
    let area = area.centered(size(width), size(lines.len() + 2));
    let block = Block::bordered().title(title.bold()).padding(Padding::horizontal(1));
    Clear.render(area, buffer);
    Paragraph::new(lines).block(block).render(area, buffer);
}

/// The parts of a line that is too long. Words do not matter: there are none in a key.
fn wrap(line: Line<'static>, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![Line::default()];
    for span in line.spans {
        let mut part = String::new();
        for it in span.content.chars() {
            let before = lines.last().map_or(0, Line::width);
            part.push(it);
            if before + Span::raw(part.as_str()).width() > width {
                part.pop();
                let whole = std::mem::replace(&mut part, it.to_string());
                if let Some(last) = lines.last_mut() {
                    last.push_span(Span::styled(whole, span.style));
                }
                lines.push(Line::default());
            }
        }
        if let Some(last) = lines.last_mut() {
            last.push_span(Span::styled(part, span.style));
        }
    }
    lines
}
