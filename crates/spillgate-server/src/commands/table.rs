//! What a server lists, for people.

use std::error::Error;

use serde_json::Value;

use super::escape::shown;

/// A JSON array of objects as a table: a column for each header, filled in by the member of that
/// name. Says `empty` if there are no rows.
pub(super) fn table(
    rows: &Value,
    columns: &[(&str, &str)],
    empty: &str,
) -> Result<String, Box<dyn Error>> {
    let rows = rows.as_array().ok_or("the server's answer has no such list; is it older?")?;
    if rows.is_empty() {
        return Ok(format!("{empty}\n"));
    }
    let headers = columns.iter().map(|(header, _)| (*header).to_owned()).collect();
    let cells = rows.iter().map(|row| columns.iter().map(|(_, name)| cell(&row[*name])).collect());
    let lines: Vec<Vec<String>> = std::iter::once(headers).chain(cells).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<_> = (0..columns.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut table = String::new();
    for line in &lines {
        let padded = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        table.push_str(padded.collect::<Vec<_>>().join("  ").trim_end());
        table.push('\n');
    }
    Ok(table)
}

/// A value in a cell. A terminal must not obey what somebody else wrote.
fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(cell).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    shown(&text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = json!([
            { "a": "é", "b": null, "c": ["x", "y"] },
            { "a": "longer", "b": 7, "c": "\u{1b}[31mred\u{202e}der\u{2028}" },
        ]);
        let shown = table(&rows, &[("A", "a"), ("B", "b"), ("THIRD", "c")], "none").unwrap();
        assert_eq!(
            shown,
            "A       B  THIRD\né       -  x, y\nlonger  7  \u{fffd}[31mred\u{fffd}der\u{fffd}\n"
        );
        assert_eq!(table(&json!([]), &[("A", "a")], "none").unwrap(), "none\n");
        assert!(table(&json!(null), &[("A", "a")], "none").is_err());
    }
}
