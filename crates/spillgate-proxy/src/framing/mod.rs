//! Follows the framing of HTTP/1.1 in the bytes themselves, before they are parsed: requests that
//! two parsers could read differently are refused (request smuggling).
//!
//! hyper refuses most of them. But it takes a bare line feed for the end of a line, and silently
//! drops a `Content-Length` next to a `Transfer-Encoding`.

mod guard;

pub use self::guard::Guard;

/// Completes a head with an invalid byte, so that it is parsed, and refused.
pub const END: &[u8] = b"\r\n\r\n";

/// Tracks where in a stream of requests the next byte is.
#[derive(Debug, Default)]
pub struct Framing {
    place: Place,
    lines: Lines,
}

#[derive(Debug)]
enum Place {
    Head(Head),
    /// In a body, with so many bytes left.
    Body(u64),
    /// In the line with a chunk's size.
    Size,
    /// In a chunk, with so many bytes left, the line end after it included.
    Chunk(u64),
    Trailers,
    /// Not followed: the protocol switches, or hyper refuses what follows.
    Unknown,
}

impl Default for Place {
    fn default() -> Self {
        Self::Head(Head::default())
    }
}

impl Framing {
    /// Follows the stream. The error is the index of the byte that makes it ambiguous.
    pub fn follow(&mut self, bytes: &[u8]) -> Result<(), usize> {
        let mut at = 0;
        while at < bytes.len() {
            at += self.step(&bytes[at..]).map_err(|end| at + end)?;
        }
        Ok(())
    }

    /// Follows the stream to the end of the current request, and returns how many of these bytes
    /// belong to it; `None` if all of them do and more follow. For servers that never switch
    /// protocols: an `Upgrade` is ignored. The error is that of [`follow`](Self::follow).
    pub fn next_request(&mut self, bytes: &[u8]) -> Result<Option<usize>, usize> {
        let mut at = 0;
        while at < bytes.len() {
            let had_begun = self.has_begun();
            if let Place::Head(head) = &mut self.place {
                head.switches = false;
            }
            at += self.step(&bytes[at..]).map_err(|end| at + end)?;
            if had_begun && !self.has_begun() {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// True if it is unknown where the request ends.
    pub fn is_unknown(&self) -> bool {
        matches!(self.place, Place::Unknown)
    }

    /// True within a head.
    pub fn is_in_head(&self) -> bool {
        matches!(self.place, Place::Head(_)) && (self.has_begun() || self.lines.has_begun())
    }

    fn has_begun(&self) -> bool {
        !matches!(self.place, Place::Head(Head { has_begun: false, .. }))
    }

    /// Follows the stream by a line, or a part of a body, and returns how many bytes that was.
    fn step(&mut self, bytes: &[u8]) -> Result<usize, usize> {
        match &mut self.place {
            Place::Unknown => Ok(bytes.len()),
            Place::Body(left) | Place::Chunk(left) => {
                let count = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= count as u64;
                if *left == 0 {
                    self.place = match self.place {
                        Place::Chunk(_) => Place::Size,
                        _ => Place::default(),
                    };
                }
                Ok(count)
            }
            _ => match self.line(bytes) {
                None => Ok(bytes.len()),
                Some((count, Ok(()))) => Ok(count),
                Some((count, Err(Ambiguous))) => Err(count - 1),
            },
        }
    }

    fn line(&mut self, bytes: &[u8]) -> Option<(usize, Result<(), Ambiguous>)> {
        let Self { place, lines } = self;
        let (count, next) = lines.next(bytes, |line| {
            let whole = line.strip_suffix(b"\r\n").ok_or(Ambiguous);
            match place {
                Place::Head(head) => head.line(whole?),
                // A bare line feed here is refused by hyper. Any other byte in its place could
                // be part of an extension, and pass.
                Place::Size => Ok(Some(whole.map_or(Place::Unknown, chunk))),
                Place::Trailers => Ok(whole?.is_empty().then(Place::default)),
                Place::Body(_) | Place::Chunk(_) | Place::Unknown => Ok(None),
            }
        })?;
        let next = next.map(|next| {
            if let Some(next) = next {
                *place = next;
            }
        });
        Some((count, next))
    }
}

/// A line that two parsers could read differently.
#[derive(Debug)]
struct Ambiguous;

/// The framing headers so far.
#[derive(Debug, Default)]
struct Head {
    has_begun: bool,
    length: Option<u64>,
    is_chunked: bool,
    switches: bool,
}

impl Head {
    /// Takes a line. At the end of the head, returns what follows.
    fn line(&mut self, line: &[u8]) -> Result<Option<Place>, Ambiguous> {
        if line.is_empty() {
            // Empty lines before a request are ignored (RFC 9112, section 2.2).
            return if self.has_begun { self.end().map(Some) } else { Ok(None) };
        }
        if !self.has_begun {
            self.has_begun = true;
            return Ok(None);
        }
        if let Some(value) = value(line, b"content-length:") {
            let text = str::from_utf8(value).map_err(|_| Ambiguous)?;
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            let length = text.parse().ok().filter(|_| is_number).ok_or(Ambiguous)?;
            return if self.length.replace(length).is_some() { Err(Ambiguous) } else { Ok(None) };
        }
        if let Some(value) = value(line, b"transfer-encoding:") {
            let is_right = value.eq_ignore_ascii_case(b"chunked") && !self.is_chunked;
            self.is_chunked = true;
            return if is_right { Ok(None) } else { Err(Ambiguous) };
        }
        if let Some(value) = value(line, b"upgrade:") {
            self.switches |= !value.eq_ignore_ascii_case(b"h2c");
        }
        Ok(None)
    }

    fn end(&self) -> Result<Place, Ambiguous> {
        match (self.length, self.is_chunked) {
            (Some(_), true) => Err(Ambiguous),
            // What follows is HTTP only if the upstream refuses, and then the connection closes.
            _ if self.switches => Ok(Place::Unknown),
            (_, true) => Ok(Place::Size),
            (None | Some(0), false) => Ok(Place::default()),
            (Some(length), false) => Ok(Place::Body(length)),
        }
    }
}

/// The value of a header, if the line has this name, which is in lower case with its colon.
fn value<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let (found, value) = line.split_at_checked(name.len())?;
    found.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

/// What follows the line with a chunk's size.
fn chunk(line: &[u8]) -> Place {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let size = str::from_utf8(&line[..digits]).ok();
    match size.and_then(|size| u64::from_str_radix(size, 16).ok()) {
        Some(0) => Place::Trailers,
        Some(size) => size.checked_add(2).map_or(Place::Unknown, Place::Chunk),
        None => Place::Unknown,
    }
}

/// Splits bytes that arrive in pieces into lines.
#[derive(Debug, Default)]
struct Lines {
    /// The beginning of an incomplete line.
    begun: Vec<u8>,
}

impl Lines {
    fn has_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Passes the next line to `see`, its line feed included, and returns how many of these bytes
    /// belong to it; `None` if all of them do and more follow.
    fn next<R>(&mut self, bytes: &[u8], see: impl FnOnce(&[u8]) -> R) -> Option<(usize, R)> {
        let Some(feed) = bytes.iter().position(|byte| *byte == b'\n') else {
            self.begun.extend_from_slice(bytes);
            return None;
        };
        let count = feed + 1;
        if self.begun.is_empty() {
            return Some((count, see(&bytes[..count])));
        }
        self.begun.extend_from_slice(&bytes[..count]);
        let seen = see(&self.begun);
        self.begun.clear();
        Some((count, seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows a stream in pieces of this size.
    fn look(bytes: &[u8], size: usize) -> Result<(), usize> {
        let mut framing = Framing::default();
        for (index, piece) in bytes.chunks(size).enumerate() {
            framing.follow(piece).map_err(|at| index * size + at)?;
        }
        Ok(())
    }

    #[track_caller]
    fn assert_look(text: &str, expected: Result<(), usize>) {
        for size in [1, 2, 3, 7, 4096] {
            assert_eq!(look(text.as_bytes(), size), expected, "{text:?} in pieces of {size}");
        }
    }

    #[test]
    fn requests_are_followed_from_one_to_the_next() {
        const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        const BARE: &str = "\n";
        for before in [
            "",
            "\r\n\r\n",
            GET,
            "POST / HTTP/1.1\r\ncontent-LENGTH:  5\t\r\n\r\n\n\n\n\n\n",
            "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\n\n\n\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nA;x=y\r\n0123456789\r\n00\r\na: b\r\n\r\n",
            "GET / HTTP/1.1\r\nUpgrade: h2c\r\n\r\n",
        ] {
            let fine = format!("{before}{GET}{GET}");
            assert_look(&fine, Ok(()));
            let bare = format!("{before}GET / HTTP/1.1{BARE}");
            assert_look(&bare, Err(bare.len() - 1));
        }
    }

    #[test]
    fn heads_that_can_be_read_in_two_ways_are_found() {
        for lines in [
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            "Content-Length: 5\r\nContent-Length: 5\r\n",
            "Content-Length: 5, 5\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: 0x5\r\n",
            "Content-Length:\r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked, chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: \u{b}chunked\r\n",
            "Transfer-Encoding: identity\r\n",
            "A: b\n",
            "A: b\n\r\n",
        ] {
            let text = format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
            for size in [1, 5, 4096] {
                assert!(look(text.as_bytes(), size).is_err(), "{text:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn trailers_whose_lines_are_not_clear_are_found_and_sizes_are_left_to_hyper() {
        let with = |body| format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        for trailers in ["\n", "x: y\n"] {
            let text = with(format!("0\r\n{trailers}"));
            assert_look(&text, Err(text.len() - 1));
        }
        for size in ["5\n", "5;x\n", "0;x\n"] {
            assert_look(&with(format!("{size}\n\n")), Ok(()));
        }
    }

    #[test]
    fn an_upgrade_ends_no_request_where_nobody_switches() {
        let request = b"POST / HTTP/1.1\r\nUpgrade: websocket\r\nContent-Length: 5\r\n\r\nhello";
        for size in [1, 2, 3, 7, 4096] {
            let mut framing = Framing::default();
            let mut length = 0;
            for piece in [&request[..], b"GET"].concat().chunks(size) {
                let end = framing.next_request(piece).unwrap();
                length += end.unwrap_or(piece.len());
                if end.is_some() {
                    break;
                }
            }
            assert_eq!(length, request.len(), "in pieces of {size}");
        }
    }

    #[test]
    fn what_follows_an_upgrade_is_not_looked_at() {
        assert_look("GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n\n\n\n", Ok(()));
    }
}
