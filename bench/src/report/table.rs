use std::fmt;

/// Text in columns. It is written as Markdown, padded, so that it reads as well
/// on a terminal.
pub struct Table {
    title: String,
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
    pub notes: Vec<String>,
}

impl Table {
    /// An empty table whose first column is called `stub`.
    pub fn new(title: impl Into<String>, stub: &str) -> Self {
        Self {
            title: title.into(),
            header: vec![stub.to_owned()],
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn widths(&self) -> Vec<usize> {
        let width = |column: usize| {
            let rows = std::iter::once(&self.header).chain(&self.rows);
            let cells = rows.filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        (0..self.header.len()).map(width).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        writeln!(f, "## {}\n", self.title)?;
        write_row(f, &self.header, &widths)?;
        let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        write_row(f, &rules, &widths)?;
        for row in &self.rows {
            write_row(f, row, &widths)?;
        }
        for note in &self.notes {
            write!(f, "\n- {note}")?;
        }
        Ok(())
    }
}

fn write_row(f: &mut fmt::Formatter<'_>, row: &[String], widths: &[usize]) -> fmt::Result {
    for (cell, width) in row.iter().zip(widths) {
        write!(f, "| {cell:<width$} ")?;
    }
    writeln!(f, "|")
}

/// A number with as many digits as are significant.
pub fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        0.01.. => format!("{value:.2}"),
        _ => format!("{value:.5}"),
    }
}
