//! The callers who were denied most.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::DENIED;
use super::numbers::{count, rate};
use super::table::{Column, Row};
use crate::commands::top::rows::RatedCaller;

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::text("CALLER", 12, 0),
        Column::text("LIMIT", 6, 1),
        Column::number("DENIED", 0),
        Column::number("±", 4),
        Column::number("/S", 2),
        Column::number("SHADOW", 5),
        Column::number("ALLOWED~", 3),
    ]
}

pub(super) fn row(caller: &RatedCaller<'_>) -> Row {
    let (caller, per_second) = *caller;
    let is_denied_now = per_second.is_some_and(|rate| rate > 0.0);
    let emphasis = if is_denied_now { DENIED } else { Style::new() };
    vec![
        Line::from(Span::styled(caller.caller.shown(), emphasis)),
        Line::from(caller.limit.shown()),
        Line::from(count(caller.denied)),
        Line::from(count(caller.error)),
        Line::from(Span::styled(per_second.map_or("-".to_owned(), rate), emphasis)),
        Line::from(count(caller.shadow_denied)),
        Line::from(caller.allowed.map_or("-".to_owned(), count)),
    ]
}
