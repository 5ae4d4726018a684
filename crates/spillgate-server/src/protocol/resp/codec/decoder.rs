use super::args::Span;
use super::{Args, Limits, ProtocolError, foreign, inline};

/// Parses requests at the front of a growing buffer: arrays of bulk strings, or lines of words. It
/// remembers how far it came, so a request that arrives byte by byte costs no more.
///
/// ```text
/// *2␍␊$4␍␊ECHO␍␊$2␍␊hi␍␊        ECHO "hi"␊
/// ```
#[derive(Debug, Default)]
pub struct Decoder {
    stage: Stage,
    /// How far the request under way has been read.
    at: usize,
    is_line: bool,
    spans: Vec<Span>,
    /// The words of a line, without their quotes.
    words: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Before the first byte.
    #[default]
    Start,
    /// In a line of words.
    Line,
    /// Before the end of `*3␍␊`.
    Count,
    /// Before the end of the next `$4␍␊`.
    Length { missing: usize },
    /// In an argument of this length.
    Argument { missing: usize, length: usize },
}

/// A request, and how many bytes it took.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Its arguments.
    pub args: Args<'a>,
    /// The bytes to take from the front of the buffer before the next one is read.
    pub length: usize,
}

/// Longer than any header line: a sign, 18 digits and a line's end.
const LONGEST_HEADER: usize = 32;

impl Decoder {
    /// The request at the front of `bytes`; `None` if more bytes are needed.
    ///
    /// After `None`, call again with the same bytes and more; after a request, with what follows
    /// it. Fails if the bytes are no request, or exceed the limits; then the decoder is unusable.
    pub fn decode<'a>(
        &'a mut self,
        bytes: &'a [u8],
        limits: &Limits,
    ) -> Result<Option<Request<'a>>, ProtocolError> {
        if self.stage == Stage::Start {
            let Some(first) = bytes.first() else { return Ok(None) };
            self.at = 0;
            self.spans.clear();
            self.stage = if *first == b'*' { Stage::Count } else { Stage::Line };
        }
        self.is_line = self.stage == Stage::Line;
        let is_whole =
            if self.is_line { self.line(bytes, limits)? } else { self.array(bytes, limits)? };
        if !is_whole {
            return Ok(None);
        }
        self.stage = Stage::Start;
        Ok(Some(self.decoded(bytes)))
    }

    /// The last request again, which was decoded from the front of `bytes`.
    pub fn decoded<'a>(&'a self, bytes: &'a [u8]) -> Request<'a> {
        let held = if self.is_line { &self.words } else { bytes };
        Request { args: Args::new(held, &self.spans), length: self.at }
    }

    /// Forgets an incomplete request.
    pub fn restart(&mut self) {
        self.stage = Stage::Start;
    }

    /// Its memory in bytes.
    pub fn memory(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.words.capacity()
    }

    /// Releases memory of large requests.
    pub fn shrink(&mut self) {
        const KEPT: usize = 64;
        self.spans.shrink_to(KEPT);
        self.words.clear();
        self.words.shrink_to(KEPT);
    }

    /// Reads on in an array, and tells whether it is whole.
    fn array(&mut self, bytes: &[u8], limits: &Limits) -> Result<bool, ProtocolError> {
        loop {
            self.stage = match self.stage {
                Stage::Length { missing: 0 } => return Ok(true),
                Stage::Length { missing } => {
                    let Some(length) = self.length(bytes, limits)? else { return Ok(false) };
                    Stage::Argument { missing, length }
                }
                Stage::Argument { missing, length } => {
                    if !self.argument(bytes, length)? {
                        return Ok(false);
                    }
                    Stage::Length { missing: missing - 1 }
                }
                _ => {
                    let Some(missing) = self.count(bytes, limits)? else { return Ok(false) };
                    Stage::Length { missing }
                }
            };
        }
    }

    fn count(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        let invalid = ProtocolError::ArgumentCount;
        let Some(count) = self.header(bytes, invalid)? else { return Ok(None) };
        // Fewer than none ask for nothing, as none do.
        let count = usize::try_from(count).unwrap_or(0);
        if count > limits.arguments { Err(invalid) } else { Ok(Some(count)) }
    }

    fn length(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        let invalid = ProtocolError::ArgumentLength;
        match bytes.get(self.at) {
            Some(b'$') => {}
            Some(other) => return Err(ProtocolError::NotAnArgument(*other)),
            None => return Ok(None),
        }
        let Some(length) = self.header(bytes, invalid)? else { return Ok(None) };
        let length = usize::try_from(length).map_err(|_| invalid)?;
        if length > limits.bulk {
            return Err(invalid);
        }
        if self.at + length > limits.request {
            return Err(ProtocolError::RequestLength);
        }
        Ok(Some(length))
    }

    /// Reads an argument and the line's end after it, if they are there.
    fn argument(&mut self, bytes: &[u8], length: usize) -> Result<bool, ProtocolError> {
        let end = self.at + length;
        match bytes.get(end..end + 2) {
            None => Ok(false),
            Some(b"\r\n") => {
                self.spans.push((self.at, end));
                self.at = end + 2;
                Ok(true)
            }
            Some(_) => Err(ProtocolError::ArgumentEnd),
        }
    }

    /// Reads the number of a line such as `*3␍␊`, if all of it is there.
    fn header(
        &mut self,
        bytes: &[u8],
        invalid: ProtocolError,
    ) -> Result<Option<i64>, ProtocolError> {
        let rest = bytes.get(self.at + 1..).unwrap_or_default();
        let line = &rest[..rest.len().min(LONGEST_HEADER)];
        let Some(end) = line.iter().position(|byte| *byte == b'\r') else {
            return if line.len() == LONGEST_HEADER { Err(invalid) } else { Ok(None) };
        };
        match rest.get(end + 1) {
            None => Ok(None),
            Some(b'\n') => {
                self.at += end + 3;
                number(&line[..end]).ok_or(invalid).map(Some)
            }
            Some(_) => Err(invalid),
        }
    }

    /// Reads on in a line of words, and tells whether it is whole.
    fn line(&mut self, bytes: &[u8], limits: &Limits) -> Result<bool, ProtocolError> {
        let seen = &bytes[..bytes.len().min(limits.inline)];
        if foreign::is_foreign(seen) {
            return Err(ProtocolError::Foreign);
        }
        let unread = seen.get(self.at..).unwrap_or_default();
        let Some(end) = unread.iter().position(|byte| *byte == b'\n') else {
            self.at = seen.len();
            let is_full = seen.len() == limits.inline;
            return if is_full { Err(ProtocolError::InlineLength) } else { Ok(false) };
        };
        let line = &seen[..self.at + end];
        self.at += end + 1;
        inline::split(line, &mut self.words, &mut self.spans)?;
        if self.spans.len() > limits.arguments {
            return Err(ProtocolError::ArgumentCount);
        }
        Ok(true)
    }
}

/// A decimal number as Redis takes it: no plus, no leading zeros.
fn number(text: &[u8]) -> Option<i64> {
    // So many digits fit into an `i64`.
    const DIGITS: usize = 18;
    let (digits, sign) = match text {
        b"0" => return Some(0),
        [b'-', digits @ ..] => (digits, -1),
        digits => (digits, 1),
    };
    if digits.len() > DIGITS || !matches!(digits, [b'1'..=b'9', ..]) {
        return None;
    }
    let mut number = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number * 10 + i64::from(digit - b'0');
    }
    Some(number * sign)
}
