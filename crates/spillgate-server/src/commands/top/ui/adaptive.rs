//! Limits that follow load, and why they are where they are.

use ratatui::text::{Line, Span};

use super::ALLOWED;
use super::bars::share;
use super::numbers::{count, rate, short_time};
use super::table::{Column, Row};
use crate::commands::top::status::{Adaptive, Limit};

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::text("LIMIT", 8, 0),
        Column::number("NOW", 0),
        Column::whole("MIN..MAX", 3),
        Column::whole("", 6),
        Column::number("IN FLIGHT", 4),
        Column::text("CONTROLLER", 6, 5),
        Column::text("SIGNAL", 14, 2),
        Column::text("REASON", 24, 1),
    ]
}

pub(super) fn row((limit, adaptive): &(&Limit, &Adaptive)) -> Row {
    let Adaptive { limit: now, min, max, .. } = **adaptive;
    let within = (now - min) / (max - min);
    vec![
        Line::from(limit.name.shown()),
        Line::from(format!("{}{}", rate(now), unit(adaptive))),
        Line::from(format!("{}..{}", rate(min), rate(max))),
        Line::from(Span::styled(share(within, 8), ALLOWED)),
        Line::from(limit.held.map_or("-".to_owned(), count)),
        Line::from(adaptive.controller.shown()),
        Line::from(signal(adaptive)),
        Line::from(adaptive.reason.shown()),
    ]
}

fn unit(adaptive: &Adaptive) -> &'static str {
    if adaptive.kind.raw() == "rate" { "/s" } else { "" }
}

/// What its controller looks at, and what it saw last.
fn signal(adaptive: &Adaptive) -> String {
    let name = adaptive.signal.shown();
    let is_time = matches!(adaptive.signal.raw(), "latency" | "queue-wait");
    match adaptive.signal_value {
        None => format!("{name} -"),
        Some(seconds) if is_time => format!("{name} {}", short_time(seconds)),
        Some(value) => format!("{name} {value:.2}"),
    }
}
