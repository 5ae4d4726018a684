use std::ops::Range;
use std::str::Chars;

use crate::Place;

/// Where in a text a span of bytes begins.
pub(crate) fn place(text: &str, file: Option<&str>, span: &Range<usize>) -> Place {
    Cursor::new(text).place(file, span.start)
}

/// Counts lines and columns while it goes through a text once, however many places
/// are asked for.
pub(super) struct Cursor<'t> {
    rest: Chars<'t>,
    offset: usize,
    line: usize,
    column: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { rest: text.chars(), offset: 0, line: 1, column: 1 }
    }

    /// The place of a byte, which must not be before one that was asked for earlier.
    pub(super) fn place(&mut self, file: Option<&str>, offset: usize) -> Place {
        while self.offset < offset {
            let Some(character) = self.rest.next() else { break };
            self.pass(character);
        }
        Place { file: file.map(str::to_owned), line: self.line, column: self.column }
    }

    fn pass(&mut self, character: char) {
        self.offset += character.len_utf8();
        if character == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_counted_from_one_and_columns_are_characters() {
        let text = "a = \"é\" # µ\r\nbc";
        for (part, line, column) in
            [("a", 1, 1), ("#", 1, 9), ("\r", 1, 12), ("b", 2, 1), ("c", 2, 2)]
        {
            let start = text.find(part).unwrap();
            let expected = Place { file: Some("f".to_owned()), line, column };
            assert_eq!(place(text, Some("f"), &(start..start)), expected, "{part:?}");
        }
    }

    #[test]
    fn a_span_past_the_end_is_at_the_end() {
        let end = Place { file: None, line: 2, column: 2 };
        assert_eq!(place("a\nb", None, &(3..3)), end);
        assert_eq!(place("a\nb", None, &(99..100)), end);
    }
}
