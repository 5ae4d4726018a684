//! Lines of a log, in bounded memory.

use std::io::{self, Read};

/// The longest line that is read, in bytes.
pub const MAX_LINE: usize = 65_535;

const BUFFER: usize = 1 << 18;

/// Splits a stream into lines.
pub(crate) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    is_at_end: bool,
    /// True within a line that is too long.
    discards: bool,
}

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'b> {
    Whole(&'b [u8]),
    /// The beginning of a line that is too long.
    TooLong(&'b [u8]),
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        let buffer = vec![0; BUFFER];
        Self { reader, buffer, start: 0, end: 0, is_at_end: false, discards: false }
    }

    /// The next line; `None` at the end. The last one needs no line feed.
    #[inline]
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        if !self.discards
            && let Some(length) = memchr::memchr(b'\n', &self.buffer[self.start..self.end])
            && length <= MAX_LINE
        {
            let line = self.start..self.start + length;
            self.start = line.end + 1;
            return Ok(Some(Line::Whole(trimmed(&self.buffer[line]))));
        }
        self.next_after_reading()
    }

    fn next_after_reading(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            let unread = &self.buffer[self.start..self.end];
            let feed = memchr::memchr(b'\n', unread);
            let (length, next) = match feed {
                Some(length) => (length, length + 1),
                None if self.is_at_end && unread.is_empty() => return Ok(None),
                None if self.is_at_end || unread.len() > MAX_LINE => (unread.len(), unread.len()),
                None => {
                    self.fill()?;
                    continue;
                }
            };
            let line = self.start..self.start + length;
            self.start += next;
            let was_discarding = std::mem::replace(&mut self.discards, feed.is_none());
            if was_discarding {
                continue;
            }
            self.discards &= length > MAX_LINE;
            return Ok(Some(match length > MAX_LINE {
                true => Line::TooLong(&self.buffer[line]),
                false => Line::Whole(trimmed(&self.buffer[line])),
            }));
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    self.is_at_end = count == 0;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a few bytes at once.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(buffer.len());
            self.0.read(&mut buffer[..count])
        }
    }

    fn lines(text: &[u8], step: usize) -> Vec<Result<String, usize>> {
        let mut lines = Lines::new(Slow(text, step));
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push(match line {
                Line::Whole(line) => Ok(String::from_utf8_lossy(line).into_owned()),
                Line::TooLong(line) => Err(line.len()),
            });
        }
        all
    }

    #[test]
    fn lines_end_with_any_line_feed_and_at_the_end() {
        for step in [1, 2, 1000] {
            let read = lines(b"one\r\ntwo\n\nlast", step);
            assert_eq!(read, ["one", "two", "", "last"].map(|line| Ok(line.to_owned())));
        }
        assert_eq!(lines(b"", 1), []);
    }

    #[test]
    fn a_long_line_is_reported_once_and_the_next_is_read() {
        for length in [MAX_LINE + 1, BUFFER, 5 * BUFFER + 7] {
            for step in [1000, BUFFER] {
                let text = [&b"a\n"[..], &vec![b'x'; length], b"\nb\n"].concat();
                let read = lines(&text, step);
                assert_eq!(read.len(), 3, "{length}");
                assert!(read[1].is_err(), "{length}");
                assert_eq!(read[2], Ok("b".to_owned()), "{length}");
            }
        }
        let most = "x".repeat(MAX_LINE);
        assert_eq!(lines(format!("{most}\nb").as_bytes(), 7777), [Ok(most), Ok("b".to_owned())]);
    }
}
