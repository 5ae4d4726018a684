//! Rows under a heading, in the width that there is.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};

use super::put;

/// A column of a table.
pub(super) struct Column {
    pub(super) header: &'static str,
    pub(super) is_right: bool,
    /// How narrow it may become; its cells are cut then.
    pub(super) least: usize,
    /// Which columns go first if there is no room for all: the highest. 0 stays.
    pub(super) dispensable: u8,
}

impl Column {
    /// A text, which may be cut.
    pub(super) fn text(header: &'static str, least: usize, dispensable: u8) -> Self {
        Self { header, is_right: false, least, dispensable }
    }

    /// A number, which is shown in full or not at all.
    pub(super) fn number(header: &'static str, dispensable: u8) -> Self {
        Self { header, is_right: true, least: usize::MAX, dispensable }
    }

    /// Another text that is not cut.
    pub(super) fn whole(header: &'static str, dispensable: u8) -> Self {
        Self { header, is_right: false, least: usize::MAX, dispensable }
    }
}

pub(super) type Row = Vec<Line<'static>>;

const GAP: usize = 2;

/// Draws a heading and the rows around the selected one.
pub(super) fn draw(
    columns: &[Column],
    rows: &[Row],
    selected: Option<usize>,
    area: Rect,
    buffer: &mut Buffer,
) {
    let width = usize::from(area.width);
    let natural = columns.iter().enumerate().map(|(at, column)| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(Line::width);
        cells.max().unwrap_or(0).max(Span::raw(column.header).width())
    });
    let widths = fit(columns, &natural.collect::<Vec<_>>(), width);
    let heading: Row = columns.iter().map(|column| Line::from(column.header.bold())).collect();
    // Of a single line, a row is worth more than the heading.
    let has_heading = area.height > 1;
    if has_heading {
        put(&joined(columns, &heading, &widths), area, buffer);
    }
    let lines = area.rows().skip(usize::from(has_heading));
    let visible = usize::from(area.height).saturating_sub(usize::from(has_heading));
    let middle = selected.unwrap_or(0).saturating_sub(visible / 2);
    let first = middle.min(rows.len().saturating_sub(visible));
    for ((at, row), line) in rows.iter().enumerate().skip(first).zip(lines) {
        put(&joined(columns, row, &widths), line, buffer);
        if Some(at) == selected {
            buffer.set_style(line, Style::new().reversed());
        }
    }
}

/// The width of each column; none if it has to go.
fn fit(columns: &[Column], natural: &[usize], width: usize) -> Vec<Option<usize>> {
    let mut widths: Vec<_> = natural.iter().copied().map(Some).collect();
    loop {
        let total = |widths: &[Option<usize>]| {
            let shown = widths.iter().flatten();
            shown.clone().sum::<usize>() + GAP * shown.count().saturating_sub(1)
        };
        let excess = total(&widths).saturating_sub(width);
        // What can be cut is, beginning with the widest, before a column goes.
        let mut cut = widths.clone();
        for _ in 0..excess {
            let widest =
                (0..cut.len()).filter(|at| cut[*at].is_some_and(|it| it > columns[*at].least));
            match widest.max_by_key(|at| cut[*at]) {
                Some(at) => cut[at] = cut[at].map(|it| it - 1),
                None => break,
            }
        }
        if total(&cut) <= width {
            return cut;
        }
        let shown = (0..widths.len()).filter(|at| widths[*at].is_some());
        match shown.max_by_key(|at| columns[*at].dispensable) {
            Some(at) if columns[at].dispensable > 0 => widths[at] = None,
            _ => return cut,
        }
    }
}

/// The cells of a row, padded.
fn joined(columns: &[Column], row: &Row, widths: &[Option<usize>]) -> Line<'static> {
    let mut line = Line::default();
    for ((column, cell), width) in columns.iter().zip(row).zip(widths) {
        let Some(width) = *width else { continue };
        if !line.spans.is_empty() {
            line.push_span(Span::raw(" ".repeat(GAP)));
        }
        let cell = if cell.width() > width { cut(cell, width) } else { cell.clone() };
        let padding = Span::raw(" ".repeat(width.saturating_sub(cell.width())));
        if column.is_right {
            line.push_span(padding);
            line.spans.extend(cell.spans);
        } else {
            line.spans.extend(cell.spans);
            line.push_span(padding);
        }
    }
    line
}

/// The beginning of a cell, in the style of its first part.
fn cut(cell: &Line<'static>, width: usize) -> Line<'static> {
    let text: String = cell.spans.iter().map(|span| &*span.content).collect();
    let style = cell.spans.first().map(|span| span.style).unwrap_or_default();
    Line::from(Span::styled(shorten(&text, width), style))
}

/// A text of at most so many columns; what is missing is hinted at.
pub(super) fn shorten(text: &str, width: usize) -> String {
    if Span::raw(text).width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for it in text.chars() {
        kept.push(it);
        if Span::raw(kept.as_str()).width() + 1 > width {
            kept.pop();
            break;
        }
    }
    if width > 0 {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_before_columns_go_and_the_first_stays() {
        let columns =
            [Column::text("NAME", 4, 0), Column::number("DENIED", 1), Column::number("X", 2)];
        assert_eq!(fit(&columns, &[10, 6, 3], 30), [Some(10), Some(6), Some(3)]);
        assert_eq!(fit(&columns, &[10, 6, 3], 18), [Some(5), Some(6), Some(3)]);
        assert_eq!(fit(&columns, &[10, 6, 3], 16), [Some(8), Some(6), None]);
        assert_eq!(fit(&columns, &[10, 6, 3], 5), [Some(5), None, None]);
        assert_eq!(fit(&columns, &[10, 6, 3], 2), [Some(4), None, None]);
    }

    #[test]
    fn a_cut_text_is_as_wide_as_may_be() {
        assert_eq!(shorten("漢字漢字", 5), "漢字…");
        assert_eq!(shorten("漢字漢字", 4), "漢…");
        assert_eq!(shorten("abc", 3), "abc");
        assert_eq!((shorten("abc", 1), shorten("abc", 0)), ("…".to_owned(), String::new()));
    }
}
