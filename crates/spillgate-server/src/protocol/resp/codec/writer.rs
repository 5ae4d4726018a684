use std::fmt::{Display, Write};

/// The protocol version of replies. Requests are the same in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// What every client understands.
    #[default]
    Resp2,
    /// What a client gets that has asked for it with `HELLO 3`.
    Resp3,
}

impl Protocol {
    /// Its number in `HELLO`.
    pub fn number(self) -> i64 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }
}

/// Writes replies, one after the other, into a buffer.
#[derive(Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
    /// How the next reply is written.
    pub protocol: Protocol,
}

impl Writer {
    /// A writer with nothing written.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        Self { out: Vec::new(), protocol }
    }

    /// What has been written and not been [taken](Self::advance).
    pub fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// Takes bytes from the front, since they have been sent.
    pub fn advance(&mut self, count: usize) {
        self.out.drain(..count.min(self.out.len()));
    }

    /// How much memory the replies take.
    pub fn memory(&self) -> usize {
        self.out.capacity()
    }

    /// Gives back the memory that many replies took.
    pub fn shrink_to(&mut self, kept: usize) {
        self.out.shrink_to(kept);
    }

    /// A word such as `OK`. It has no line's end in it.
    pub fn simple(&mut self, word: &str) {
        self.line(b'+', word.as_bytes());
    }

    /// An error: a code in capitals, and what it is about.
    pub fn error(&mut self, error: impl Display) {
        let start = self.out.len() + 1;
        self.out.push(b'-');
        // Writing to memory does not fail.
        let _ = write!(Text(&mut self.out), "{error}");
        // It may quote what the client sent, and a line's end would end the reply.
        for byte in &mut self.out[start..] {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.end_line();
    }

    /// An integer.
    pub fn integer(&mut self, number: i64) {
        self.out.push(b':');
        self.decimal(number);
        self.end_line();
    }

    /// A string of any bytes.
    pub fn bulk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.header(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.end_line();
    }

    /// A text for people.
    pub fn text(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => {
                const KIND: &str = "txt:";
                self.header(b'=', KIND.len() + text.len());
                self.out.extend_from_slice(KIND.as_bytes());
                self.out.extend_from_slice(text.as_bytes());
                self.end_line();
            }
        }
    }

    /// Nothing.
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// A list, of which so many elements follow.
    pub fn array(&mut self, length: usize) {
        self.header(b'*', length);
    }

    /// A list of different elements, in no order.
    pub fn set(&mut self, length: usize) {
        self.header(if self.protocol == Protocol::Resp3 { b'~' } else { b'*' }, length);
    }

    /// So many pairs of a key and a value: a list of twice as many in the older protocol.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', 2 * pairs),
            Protocol::Resp3 => self.header(b'%', pairs),
        }
    }

    fn header(&mut self, kind: u8, length: usize) {
        self.out.push(kind);
        self.decimal(i64::try_from(length).unwrap_or(i64::MAX));
        self.end_line();
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.push(kind);
        self.out.extend_from_slice(text);
        self.end_line();
    }

    fn end_line(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }

    /// By hand: formatting would take longer than deciding.
    fn decimal(&mut self, number: i64) {
        // The digits of the largest number.
        let mut digits = [0; 20];
        let mut start = digits.len();
        let mut rest = number.unsigned_abs();
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            self.out.push(b'-');
        }
        self.out.extend_from_slice(&digits[start..]);
    }
}

/// A buffer that text is formatted into.
struct Text<'o>(&'o mut Vec<u8>);

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
