//! Values of headers, written without more allocations than they need.

use http::HeaderValue;
use smallvec::SmallVec;

/// The largest integer of a structured field.
const MAX: u64 = 999_999_999_999_999;

/// Room for a limit's name of 64 letters, in quotes, and two parameters. Names of limits for
/// descriptors may be longer.
const ROOM: usize = 128;

/// A text that becomes a value.
pub(super) struct Text(SmallVec<[u8; ROOM]>);

impl Text {
    /// A text that begins with a name as the string of a structured field. Names of limits
    /// need not be escaped.
    pub(super) fn quoted(name: &str) -> Self {
        let mut text = Self::starting_with(b"\"");
        text.push(name.as_bytes());
        text.push(b"\"");
        text
    }

    /// A text that begins like another.
    pub(super) fn starting_with(start: &[u8]) -> Self {
        Self(SmallVec::from_slice(start))
    }

    /// Adds a parameter, such as `;q=20`.
    pub(super) fn parameter(&mut self, start: &[u8; 3], value: u64) {
        self.push(start);
        self.push(Digits::of(value).as_bytes());
    }

    pub(super) fn push(&mut self, more: &[u8]) {
        self.0.extend_from_slice(more);
    }

    pub(super) fn value(&self) -> HeaderValue {
        value(&self.0)
    }
}

/// A number as the value of a header.
pub(super) fn number(number: u64) -> HeaderValue {
    match small(number) {
        Some(text) => HeaderValue::from_static(text),
        None => value(Digits::of(number).as_bytes()),
    }
}

/// Names of limits and numbers are always a value.
fn value(text: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// The decimal digits of a number that is no larger than a structured field allows.
struct Digits {
    bytes: [u8; 15],
    start: usize,
}

impl Digits {
    fn of(number: u64) -> Self {
        let mut digits = Self { bytes: [b'0'; 15], start: 15 };
        let mut rest = number.min(MAX);
        while digits.start == 15 || rest > 0 {
            digits.start -= 1;
            digits.bytes[digits.start] += (rest % 10) as u8;
            rest /= 10;
        }
        digits
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// How many numbers are written already: what remains is mostly one of them.
const SMALL: usize = 1_000;

static SMALL_TEXT: [u8; 3 * SMALL] = {
    let mut text = [b'0'; 3 * SMALL];
    let mut number = 0;
    while number < SMALL {
        text[3 * number] += (number / 100) as u8;
        text[3 * number + 1] += (number / 10 % 10) as u8;
        text[3 * number + 2] += (number % 10) as u8;
        number += 1;
    }
    text
};

fn small(number: u64) -> Option<&'static str> {
    let number = usize::try_from(number).ok().filter(|number| *number < SMALL)?;
    let zeros = usize::from(number < 100) + usize::from(number < 10);
    std::str::from_utf8(&SMALL_TEXT[3 * number + zeros..3 * number + 3]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_written_in_decimal_and_cut_to_what_a_structured_field_allows() {
        for (written, expected) in [
            (0, "0"),
            (9, "9"),
            (10, "10"),
            (99, "99"),
            (100, "100"),
            (999, "999"),
            (1_000, "1000"),
            (1_234_567, "1234567"),
            (MAX, "999999999999999"),
            (u64::MAX, "999999999999999"),
        ] {
            assert_eq!(number(written), expected);
        }
        for written in 0..2_000 {
            assert_eq!(number(written), written.to_string());
        }
    }
}
