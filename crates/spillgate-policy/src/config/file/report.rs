use std::cell::RefCell;
use std::ops::Range;

use super::place::Cursor;
use crate::Problem;

/// Collects what is wrong in a file.
///
/// A mistake in the syntax makes nonsense of what stands around it. So each line tells
/// the first only, lines that have one are not judged any further, nor is what follows
/// a bad header, and nothing is called missing.
pub(super) struct Report {
    /// Where each thing is, and what.
    found: RefCell<Vec<(usize, String)>>,
    /// What is not judged, in order.
    spoilt: Vec<Range<usize>>,
}

impl Report {
    pub(super) fn new(text: &str, errors: &[toml::de::Error]) -> Self {
        let mut report = Self { found: RefCell::default(), spoilt: Vec::new() };
        let mut errors: Vec<_> = errors.iter().map(|error| (start(error), error)).collect();
        errors.sort_by_key(|(start, _)| *start);
        let mut next_line = 0;
        for (start, error) in errors {
            if start < next_line {
                continue;
            }
            let line = line(text, start);
            next_line = line.end + 1;
            report.add(&(start..start), format!("this is not TOML: {}", error.message()));
            report.spoil(with_section(text, &line));
        }
        report
    }

    pub(super) fn add(&self, span: &Range<usize>, message: String) {
        self.found.borrow_mut().push((span.start, message));
    }

    /// Adds that something is missing.
    pub(super) fn add_missing(&self, span: &Range<usize>, message: String) {
        if self.spoilt.is_empty() {
            self.add(span, message);
        }
    }

    /// Lets lines not be judged. They come after, or are a part of, those before.
    fn spoil(&mut self, lines: Range<usize>) {
        if self.spoilt.last().is_none_or(|last| last.end < lines.start) {
            self.spoilt.push(lines);
        }
    }

    /// False if what stands there is not to be judged.
    pub(super) fn is_sound(&self, span: &Range<usize>) -> bool {
        let next = self.spoilt.partition_point(|lines| lines.end < span.start);
        let is_apart = self.spoilt.get(next).is_none_or(|lines| span.end < lines.start);
        // What the parser made up to go on is nowhere.
        is_apart && !span.is_empty()
    }

    /// All problems, in the order of the file.
    pub(super) fn into_problems(self, text: &str, file: Option<&str>) -> Vec<Problem> {
        let mut found = self.found.into_inner();
        found.sort();
        let mut cursor = Cursor::new(text);
        let problem =
            |(offset, message)| Problem::new(message).at(Some(cursor.place(file, offset)));
        found.into_iter().map(problem).collect()
    }
}

/// Where an error is: at the beginning, if nothing else is known.
fn start(error: &toml::de::Error) -> usize {
    error.span().map_or(0, |span| span.start)
}

/// The line of a byte, without its line break.
fn line(text: &str, offset: usize) -> Range<usize> {
    let (before, after) = text.as_bytes().split_at(offset.min(text.len()));
    let is_break = |byte: &u8| *byte == b'\n';
    let start = before.iter().rposition(is_break).map_or(0, |at| at + 1);
    let end = after.iter().position(is_break).map_or(text.len(), |at| offset + at);
    start..end
}

/// The line and, if it is a header, what follows up to the next: without its header
/// that would seem to belong to the section above.
fn with_section(text: &str, line: &Range<usize>) -> Range<usize> {
    let is_header = |line: &&str| line.trim_start().starts_with('[');
    let mut lines = text.get(line.start..).unwrap_or_default().split('\n');
    let rest = match lines.next().filter(is_header) {
        Some(_) => lines.take_while(|line| !is_header(line)).map(|line| line.len() + 1).sum(),
        None => 0,
    };
    line.start..line.end + rest
}
