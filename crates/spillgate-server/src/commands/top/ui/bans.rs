//! The bans in force.

use ratatui::text::Line;

use super::numbers::{count, long_time};
use super::table::{Column, Row};
use crate::commands::top::status::Ban;

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::text("CALLER", 12, 0),
        Column::number("ENDS IN", 1),
        Column::number("COUNT", 4),
        Column::whole("MODE", 3),
        Column::text("REASON", 8, 2),
    ]
}

pub(super) fn row(ban: &Ban) -> Row {
    vec![
        Line::from(ban.caller.shown()),
        Line::from(long_time(ban.expires_in)),
        Line::from(count(ban.count)),
        Line::from(ban.mode.shown()),
        Line::from(ban.reason.shown()),
    ]
}
