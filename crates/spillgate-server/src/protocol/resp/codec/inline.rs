//! Inline commands: words on a line.

use super::ProtocolError;
use super::args::Span;

/// Splits a line into words, as Redis does: at white space, with the escapes `\n`, `\r`, `\t`,
/// `\b`, `\a` and `\xHH` in `"double quotes"`, and `\'` in `'single quotes'`.
pub(super) fn split(
    line: &[u8],
    words: &mut Vec<u8>,
    spans: &mut Vec<Span>,
) -> Result<(), ProtocolError> {
    words.clear();
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(());
        }
        let start = words.len();
        rest = word(rest, words)?;
        spans.push((start, words.len()));
    }
}

/// Appends the word at the front of `text`, and returns what follows it.
fn word<'t>(mut text: &'t [u8], words: &mut Vec<u8>) -> Result<&'t [u8], ProtocolError> {
    loop {
        match text {
            [] => return Ok(text),
            [byte, ..] if byte.is_ascii_whitespace() => return Ok(text),
            [b'"', rest @ ..] => return double_quoted(rest, words),
            [b'\'', rest @ ..] => return single_quoted(rest, words),
            [byte, rest @ ..] => {
                words.push(*byte);
                text = rest;
            }
        }
    }
}

fn double_quoted<'t>(mut text: &'t [u8], words: &mut Vec<u8>) -> Result<&'t [u8], ProtocolError> {
    loop {
        let (byte, rest) = match text {
            [] => return Err(ProtocolError::Quotes),
            [b'"', rest @ ..] => return after_quote(rest),
            [b'\\', b'x', high, low, rest @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (hex(*high) << 4 | hex(*low), rest)
            }
            [b'\\', escaped, rest @ ..] => (unescape(*escaped), rest),
            [byte, rest @ ..] => (*byte, rest),
        };
        words.push(byte);
        text = rest;
    }
}

fn single_quoted<'t>(mut text: &'t [u8], words: &mut Vec<u8>) -> Result<&'t [u8], ProtocolError> {
    loop {
        let (byte, rest) = match text {
            [] => return Err(ProtocolError::Quotes),
            [b'\'', rest @ ..] => return after_quote(rest),
            [b'\\', b'\'', rest @ ..] => (b'\'', rest),
            [byte, rest @ ..] => (*byte, rest),
        };
        words.push(byte);
        text = rest;
    }
}

/// A closing quote ends its word.
fn after_quote(rest: &[u8]) -> Result<&[u8], ProtocolError> {
    match rest.first() {
        Some(byte) if !byte.is_ascii_whitespace() => Err(ProtocolError::Quotes),
        _ => Ok(rest),
    }
}

fn unescape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
