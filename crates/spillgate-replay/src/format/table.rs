//! Tables: CSV, and the W3C extended format.

use super::Context;
use super::fields::{Field, Fields, Ranked, field};
use super::request::percent_decode;
use crate::Skip;

/// The columns of a table, once its header is read.
#[derive(Debug)]
pub(super) struct Table {
    is_csv: bool,
    separator: u8,
    columns: Option<Vec<Option<Ranked>>>,
    cell: Vec<u8>,
}

impl Table {
    pub(super) fn new(is_csv: bool) -> Self {
        Self { is_csv, separator: b',', columns: None, cell: Vec::new() }
    }

    /// Reads a row into fields; false if it is a header.
    pub(super) fn read(
        &mut self,
        line: &[u8],
        context: &Context,
        fields: &mut Fields,
    ) -> Result<bool, Skip> {
        fields.clear();
        match (&self.columns, self.is_csv) {
            (None, true) => self.csv_header(line, context).map(|()| false),
            (_, false) if line.starts_with(b"#") => {
                if let Some(names) = line.strip_prefix(b"#Fields:") {
                    let names = String::from_utf8_lossy(names);
                    let columns = names.split_whitespace().map(|name| field(name, context));
                    self.columns = Some(columns.collect());
                }
                Ok(false)
            }
            (None, false) => Err(Skip::Malformed),
            (Some(columns), true) => {
                each_cell(line, self.separator, &mut self.cell, |place, cell| {
                    if let Some(ranked) = columns.get(place).copied().flatten() {
                        fields.set(ranked, cell);
                    }
                });
                Ok(true)
            }
            (Some(columns), false) => {
                // CloudFront separates by tabs, others by spaces.
                let separator = if line.contains(&b'\t') { b'\t' } else { b' ' };
                let cells = line.split(|byte| *byte == separator);
                for (column, cell) in columns.iter().zip(cells) {
                    match column {
                        Some((Field::Header(_), _)) => {
                            percent_decode(cell, &mut self.cell);
                            column.iter().for_each(|column| fields.set(*column, &self.cell));
                        }
                        Some(ranked) => fields.set(*ranked, cell),
                        None => {}
                    }
                }
                Ok(true)
            }
        }
    }

    /// The header must name a time, an address and a path.
    fn csv_header(&mut self, line: &[u8], context: &Context) -> Result<(), Skip> {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let count = |separator: &u8| line.iter().filter(|byte| *byte == separator).count();
        self.separator = [b',', b';', b'\t'].into_iter().max_by_key(count).unwrap_or(b',');
        let mut columns = Vec::new();
        each_cell(line, self.separator, &mut self.cell, |_, cell| {
            columns.push(field(String::from_utf8_lossy(cell).trim(), context));
        });
        let has = |wanted: Field| columns.iter().flatten().any(|(field, _)| *field == wanted);
        let has_time = has(Field::Time) || has(Field::Date);
        if !(has_time && has(Field::Peer) && (has(Field::Target) || has(Field::RequestLine))) {
            return Err(Skip::Malformed);
        }
        self.columns = Some(columns);
        Ok(())
    }
}

/// Calls with each cell of a CSV row, without its quotes.
fn each_cell(row: &[u8], separator: u8, cell: &mut Vec<u8>, mut each: impl FnMut(usize, &[u8])) {
    let mut rest = row;
    for place in 0.. {
        match rest.strip_prefix(b"\"") {
            None => {
                let end = memchr::memchr(separator, rest).unwrap_or(rest.len());
                each(place, &rest[..end]);
                rest = &rest[end..];
            }
            Some(mut quoted) => {
                cell.clear();
                // Two quotes are one.
                loop {
                    let end = memchr::memchr(b'"', quoted).unwrap_or(quoted.len());
                    cell.extend_from_slice(&quoted[..end]);
                    quoted = quoted.get(end + 1..).unwrap_or_default();
                    let Some(after) = quoted.strip_prefix(b"\"") else { break };
                    cell.push(b'"');
                    quoted = after;
                }
                each(place, cell);
                rest = &quoted[memchr::memchr(separator, quoted).unwrap_or(quoted.len())..];
            }
        }
        match rest {
            [] => return,
            [_, after @ ..] => rest = after,
        }
    }
}
