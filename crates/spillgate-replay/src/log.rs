//! One log: its format, and the lines that it was found by.

use std::io;

use crate::format::{Parser, detect};
use crate::lines::{Line, Lines};
use crate::log_clock::LogClock;
use crate::source::{Progress, Source};
use crate::{InputOptions, Wanted};

/// How many lines show a format.
pub(crate) const FIRST_LINES: usize = 16;

/// How many are looked at if those do not.
const MAX_FIRST_LINES: usize = 4096;
const MAX_FIRST_BYTES: usize = 4 << 20;

/// A log while it is read.
pub(crate) struct Log {
    pub(crate) name: String,
    pub(crate) first: std::vec::IntoIter<Vec<u8>>,
    /// What happened when the first lines were read.
    pub(crate) failure: Option<io::Error>,
    pub(crate) lines: Lines<Box<dyn io::Read>>,
    pub(crate) parser: Parser,
    pub(crate) progress: Progress,
    pub(crate) clock: LogClock,
    /// Lines in a row that are not in the format: another one may begin with them.
    pub(crate) strange: Vec<Vec<u8>>,
    pub(crate) is_at_end: bool,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Log {
    pub(crate) fn open(
        source: Source,
        wanted: &Wanted,
        options: &InputOptions,
    ) -> io::Result<Self> {
        let Source { name, reader, progress } = source;
        let mut lines = Lines::new(reader);
        let (mut first, mut failure) = (Vec::new(), None);
        let mut wanted_lines = FIRST_LINES;
        let format = loop {
            failure = failure.or_else(|| read_first(&mut lines, wanted_lines, &mut first));
            if let Some(error) =
                failure.as_ref().filter(|_| progress.has_failed.get() || first.is_empty())
            {
                return Err(named(&name, error));
            }
            let detected = options.format.map_or_else(|| detect(&first), Ok);
            let is_all = first.len() < wanted_lines;
            match detected {
                Ok(format) => break format,
                // Programs print other things when they start.
                Err(_) if !is_all && wanted_lines < MAX_FIRST_LINES => wanted_lines *= 4,
                Err(why) => return Err(io::Error::other(format!("{name}: {why}"))),
            }
        };
        let parser = Parser::new(format, wanted, options.zone.clone());
        let first = first.into_iter();
        let (clock, strange, is_at_end) = Default::default();
        Ok(Self { name, first, failure, lines, parser, progress, clock, strange, is_at_end })
    }
}

/// Reads until there are so many lines; returns what went wrong.
fn read_first(
    lines: &mut Lines<Box<dyn io::Read>>,
    most: usize,
    first: &mut Vec<Vec<u8>>,
) -> Option<io::Error> {
    let mut bytes: usize = first.iter().map(Vec::len).sum();
    while first.len() < most && bytes <= MAX_FIRST_BYTES {
        match lines.next() {
            Ok(None) => break,
            Ok(Some(Line::Whole(line) | Line::TooLong(line))) => {
                // Editors of some systems mark UTF-8.
                let mark = if first.is_empty() { &b"\xef\xbb\xbf"[..] } else { b"" };
                bytes += line.len();
                first.push(line.strip_prefix(mark).unwrap_or(line).to_vec());
            }
            Err(error) => return Some(error),
        }
    }
    None
}

pub(crate) fn damage(name: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => format!("{name} ends in the middle"),
        _ => format!("{name} is damaged, and was read up to there: {error}"),
    }
}

pub(crate) fn named(name: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{name} cannot be read: {error}"))
}
