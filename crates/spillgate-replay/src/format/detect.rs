//! Which format a log has.

use super::{DESCRIPTIONS, LogFormat, Parser, Zone};
use crate::{Skip, Wanted};

/// The format of a log by its first lines: the one that fits most of them, at least half, or that
/// reads two of them as requests: nothing else looks like one.
///
/// # Errors
///
/// If none does: names the first line and the closest format.
pub fn detect(lines: &[impl AsRef<[u8]>]) -> Result<LogFormat, String> {
    let Some(first) = lines.iter().map(AsRef::as_ref).find(|line| !line.is_empty()) else {
        return Ok(LogFormat::Common);
    };
    fitting(lines).ok_or_else(|| {
        let closest = closest(first);
        format!(
            "unknown log format. First line: {}\nThe closest format is {}, for example: {}",
            shown(first),
            closest.name(),
            closest.example()
        )
    })
}

/// The format that lines have, if it is a known one.
pub(crate) fn fitting(lines: &[impl AsRef<[u8]>]) -> Option<LogFormat> {
    let all: Vec<&[u8]> = lines.iter().map(AsRef::as_ref).filter(|line| !line.is_empty()).collect();
    let fits = |format: LogFormat| {
        let mut parser = Parser::new(format, &Wanted::default(), Zone::default());
        let (mut alike, mut requests) = (0, 0);
        for line in &all {
            let read = parser.parse(line);
            requests += usize::from(read.is_ok());
            alike += usize::from(!matches!(read, Err(Skip::Malformed)));
        }
        (alike, requests)
    };
    // The first of those that fit as well.
    let counted = DESCRIPTIONS.iter().rev().map(|(format, ..)| (*format, fits(*format)));
    let best = counted.max_by_key(|(_, (alike, requests))| alike + requests);
    let fits =
        |(alike, requests): (usize, usize)| alike > 0 && (alike * 2 >= all.len() || requests > 1);
    best.filter(|(_, counts)| fits(*counts)).map(|(format, _)| format)
}

/// The format whose example has the most similar shape.
fn closest(line: &[u8]) -> LogFormat {
    let shape_of_line = shape(line);
    let likeness = |format: LogFormat| {
        strsim::normalized_levenshtein(&shape_of_line, &shape(format.example().as_bytes()))
    };
    let all = DESCRIPTIONS.iter().map(|(format, ..)| (*format, likeness(*format)));
    let best = all.max_by(|(_, one), (_, other)| one.total_cmp(other));
    best.map_or(LogFormat::Common, |(format, _)| format)
}

/// A line with its words and numbers shortened to a letter each.
fn shape(line: &[u8]) -> String {
    let mut shape = String::new();
    for byte in line.iter().take(300) {
        let kind = match byte {
            b'0'..=b'9' => '0',
            byte if byte.is_ascii_alphabetic() => 'a',
            byte => char::from(*byte),
        };
        if !(shape.ends_with(kind) && kind.is_alphanumeric()) {
            shape.push(kind);
        }
    }
    shape
}

/// The beginning of a line, without what a terminal would obey.
pub(crate) fn shown(line: &[u8]) -> String {
    let end = line.len().min(160);
    let text = line[..end].escape_ascii().to_string().replace("\\\"", "\"").replace("\\'", "'");
    if end < line.len() { format!("{text}…") } else { text }
}
