//! The limits: what they allow and deny.

use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span};

use super::bars::bars;
use super::numbers::count;
use super::table::{Column, Row};
use super::{ALLOWED, DENIED, SHADOW};
use crate::commands::top::status::Limit;

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::text("LIMIT", 8, 0),
        Column::text("QUOTA", 9, 5),
        Column::text("PER", 6, 8),
        Column::whole("MODE", 6),
        Column::number("ALLOW/S", 2),
        Column::number("DENY/S", 1),
        Column::number("ALLOWED", 9),
        Column::number("DENIED", 3),
        Column::number("CALLERS", 7),
        Column::number("EVICTED", 10),
        Column::whole("USED 0-100│+", 4),
    ]
}

pub(super) fn row(limit: &Limit) -> Row {
    let is_shadow = limit.mode.raw() == "shadow";
    let kinds = if is_shadow { SHADOW } else { DENIED };
    let per_second = limit.second.denied + limit.second.shadow_denied + limit.second.shed;
    let denied = limit.denied + limit.shadow_denied + limit.shed;
    let emphasis = if per_second > 0 { kinds.add_modifier(Modifier::BOLD) } else { Style::new() };
    let mode = match limit.mode.raw() {
        "enforce" => Span::raw("enforce"),
        _ => Span::styled(limit.mode.shown(), SHADOW),
    };
    vec![
        Line::from(Span::styled(limit.name.shown(), emphasis)),
        Line::from(limit.quota.shown()),
        Line::from(limit.per.shown()),
        Line::from(mode),
        Line::from(Span::styled(count(limit.second.allowed), ALLOWED)),
        Line::from(Span::styled(count(per_second), emphasis)),
        Line::from(count(limit.allowed)),
        Line::from(Span::styled(count(denied), if denied > 0 { kinds } else { Style::new() })),
        callers(limit),
        Line::from(limit.evictions.map_or("-".to_owned(), count)),
        used(&limit.used),
    ]
}

/// Callers and how many there can be. A full table forgets some.
fn callers(limit: &Limit) -> Line<'static> {
    match (limit.held, limit.callers, limit.capacity) {
        (Some(held), ..) => Line::from(format!("{} held", count(held))),
        (_, Some(callers), Some(capacity)) => {
            let text = format!("{}/{}", count(callers), count(capacity));
            // A limit for all has one caller, and room for one.
            let is_full = capacity > 1 && callers >= capacity - capacity / 20;
            Line::from(if is_full { text.bold() } else { text.into() })
        }
        (_, Some(callers), None) => Line::from(count(callers)),
        _ => Line::from("-"),
    }
}

/// How close callers come to the limit: requests by the share of the quota that they used, and
/// those that were over.
pub(super) fn used(used: &[u64]) -> Line<'static> {
    if used.iter().all(|count| *count == 0) {
        return Line::from("-");
    }
    let counts: Vec<_> = used.iter().map(|count| Some(*count as f64)).collect();
    let bars = bars(&counts, 1).concat();
    let over = bars.char_indices().nth(10).map_or(bars.len(), |(at, _)| at);
    let (within, over) = bars.split_at(over);
    Line::from(vec![
        Span::styled(within.to_owned(), ALLOWED),
        Span::raw("│"),
        Span::styled(over.to_owned(), DENIED),
    ])
}
