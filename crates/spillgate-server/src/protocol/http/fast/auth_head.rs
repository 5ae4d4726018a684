use std::io;

use http::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Request, StatusCode};
use httparse::{EMPTY_HEADER, Status};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use crate::protocol::http::Bounds;
use crate::protocol::http::problem::Problem;
use spillgate_net::{Activity, Stream};

/// The complete head of a request for `/auth`. Most of it was written by a client of the proxy, so
/// its size is bounded by what proxies accept.
#[derive(Debug)]
pub(super) struct AuthHead<'b>(&'b [u8]);

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rest {
    Whole,
    TooLarge(usize),
    /// The client disconnected or timed out.
    Missing,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct HeadBounds {
    /// Larger ones are refused.
    largest: usize,
    /// How much is read before one is refused.
    read: usize,
}

impl HeadBounds {
    /// For proxies. One that cannot send a whole head may not read the response. Go's servers, such
    /// as Caddy and Traefik, accept 1 MiB.
    pub(super) const OF_PROXIES: Self = Self { largest: LARGEST, read: 4 * 1024 * 1024 };

    /// For peers that are refused in any case.
    pub(super) const fn of_others(bounds: &Bounds) -> Self {
        Self { largest: bounds.head, read: bounds.head }
    }
}

const BEGIN: &[u8] = b"GET /auth";

/// nginx accepts 32 KiB, and sends the URI twice.
const LARGEST: usize = 128 * 1024;

impl<'b> AuthHead<'b> {
    /// True if the bytes begin such a head, or may with more bytes.
    pub(super) fn begins(bytes: &[u8]) -> bool {
        let count = bytes.len().min(BEGIN.len());
        let is_auth =
            matches!(bytes.get(BEGIN.len()), None | Some(b' ' | b'?' | b'\t' | b'\r' | b'\n'));
        bytes[..count] == BEGIN[..count] && is_auth
    }

    /// The head at the front, if it is complete.
    pub(super) fn find(bytes: &'b [u8]) -> Option<Self> {
        let end = if Self::begins(bytes) { end(bytes)? } else { return None };
        bytes.get(..end).filter(|head| head.len() <= LARGEST).map(Self)
    }

    pub(super) fn length(&self) -> usize {
        self.0.len()
    }

    pub(super) fn query(&self) -> Option<&'b str> {
        query(self.0)
    }

    /// The request, and whether it closes the connection.
    pub(super) fn parse(&self) -> Result<(Parts, bool), Problem> {
        let lines = self.0.split_inclusive(|byte| *byte == b'\n');
        if lines.clone().any(|line| !line.ends_with(b"\r\n")) {
            return Err(Problem::bad_request("bare line feed in the request head"));
        }
        let mut headers = vec![EMPTY_HEADER; lines.count()];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(self.0) {
            Ok(Status::Complete(length)) if length == self.0.len() => {}
            Ok(_) => return Err(Problem::bad_request("incomplete request head")),
            Err(error) => {
                return Err(Problem::bad_request(format_args!("invalid request head: {error}")));
            }
        }
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.uri = request.path.unwrap_or_default().parse().map_err(|error| {
            Problem::bad_request(format_args!("invalid request target: {error}"))
        })?;
        parts.headers = header_map(request.headers)?;
        let is_last = request.version != Some(1) || says_close(&parts.headers);
        Ok((parts, is_last))
    }

    /// Reads the rest of the head that the input begins with. Cancel-safe.
    pub(super) async fn read_rest<T: AsyncRead + AsyncWrite + Unpin>(
        stream: &mut Stream<&Activity, T>,
        input: &mut Vec<u8>,
        HeadBounds { largest, read }: HeadBounds,
    ) -> io::Result<Rest> {
        let (mut total, mut searched) = (input.len(), 0);
        // It may turn out to be for another path.
        while Self::begins(input) {
            let end = end(&input[searched..]).map(|end| searched + end);
            match end {
                Some(end) if end <= largest => break,
                Some(_) => return Ok(Rest::TooLarge(largest)),
                None if total > read => return Ok(Rest::TooLarge(largest)),
                None => {}
            }
            // The last bytes may begin the end.
            searched = input.len().saturating_sub(3);
            if searched > largest {
                // The first line is kept: it has the query.
                input.drain(largest..searched);
                searched = largest;
            }
            match stream.read_buf(input).await? {
                0 => return Ok(Rest::Missing),
                count => total += count,
            }
        }
        Ok(Rest::Whole)
    }
}

pub(super) fn too_large(most: usize) -> Problem {
    let detail = format!("request head larger than {most} bytes");
    Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, detail)
}

fn end(bytes: &[u8]) -> Option<usize> {
    let feeds = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    feeds.map(|(at, _)| at + 1).find_map(|after| match &bytes[after..] {
        [b'\n', ..] => Some(after + 1),
        [b'\r', b'\n', ..] => Some(after + 2),
        _ => None,
    })
}

/// The query in the first line of a head.
pub(super) fn query(head: &[u8]) -> Option<&str> {
    let line = head.strip_prefix(BEGIN)?.split(u8::is_ascii_whitespace).next()?;
    std::str::from_utf8(line.strip_prefix(b"?")?).ok()
}

fn header_map(parsed: &[httparse::Header<'_>]) -> Result<HeaderMap, Problem> {
    let mut headers = HeaderMap::with_capacity(parsed.len().min(1024));
    for header in parsed {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(header.value)) else {
            return Err(Problem::bad_request("invalid header name or value"));
        };
        headers.try_append(name, value).map_err(|_| too_large(LARGEST))?;
    }
    Ok(headers)
}

fn says_close(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONNECTION).iter();
    let mut options = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}
