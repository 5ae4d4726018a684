//! The services behind the proxy.

use ratatui::style::Stylize;
use ratatui::text::Line;

use super::numbers::{count, rate, short_time};
use super::table::{Column, Row};
use super::{ALLOWED, DENIED};
use crate::commands::escape::Untrusted;
use crate::commands::top::status::Upstream;

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::text("UPSTREAM", 12, 0),
        Column::whole("HEALTH", 1),
        Column::number("IN FLIGHT", 2),
        Column::number("LIMIT", 4),
        Column::number("P50", 5),
        Column::number("P99", 3),
        Column::text("REASON", 16, 6),
    ]
}

pub(super) fn row(upstream: &Upstream) -> Row {
    let time = |seconds: Option<f64>| Line::from(seconds.map_or("-".to_owned(), short_time));
    let health = match upstream.healthy {
        true => Line::from("healthy").style(ALLOWED),
        false => Line::from("UNHEALTHY".bold()).style(DENIED),
    };
    vec![
        Line::from(upstream.url.shown()),
        health,
        Line::from(count(upstream.in_flight)),
        Line::from(upstream.limit.map_or("-".to_owned(), rate)),
        time(upstream.p50),
        time(upstream.p99),
        Line::from(upstream.reason.as_ref().map_or("-".to_owned(), Untrusted::shown)),
    ]
}
