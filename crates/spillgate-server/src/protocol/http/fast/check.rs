use httparse::{EMPTY_HEADER, Request, Status};

use crate::protocol::http::Bounds;

#[derive(Debug)]
pub(super) struct Check<'b> {
    pub(super) host: &'b str,
    pub(super) authorization: Option<&'b str>,
    pub(super) content_type: &'b [u8],
    pub(super) body: &'b [u8],
    pub(super) length: usize,
}

const LINE: &[u8] = b"POST /v1/check HTTP/1.1\r\n";

/// More than clients of this route send.
const HEADERS: usize = 32;

/// Headers that are left to hyper.
const UNUSUAL: [&str; 6] =
    ["connection", "expect", "origin", "transfer-encoding", "trailer", "upgrade"];

impl<'b> Check<'b> {
    /// The check at the front; `None` if it is incomplete, unusual, or another request.
    pub(super) fn parse(bytes: &'b [u8], bounds: &Bounds) -> Option<Self> {
        if !bytes.starts_with(LINE) {
            return None;
        }
        let mut headers = [EMPTY_HEADER; HEADERS];
        let mut request = Request::new(&mut headers);
        let Ok(Status::Complete(head)) = request.parse(bytes) else { return None };
        let (mut host, mut authorization, mut content_type, mut length) = (None, None, None, None);
        for header in request.headers.iter() {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            let place = if is("host") {
                &mut host
            } else if is("content-length") {
                &mut length
            } else if is("content-type") {
                &mut content_type
            } else if is("authorization") {
                &mut authorization
            } else if is("connection") && header.value.eq_ignore_ascii_case(b"keep-alive") {
                // The default; many clients send it.
                continue;
            } else if UNUSUAL.into_iter().any(is) {
                return None;
            } else {
                continue;
            };
            // A duplicate is ambiguous.
            if place.replace(header.value).is_some() {
                return None;
            }
        }
        let length = number(length?)?;
        if request.headers.len() > bounds.headers || length > bounds.body {
            return None;
        }
        let authorization = match authorization {
            Some(value) => Some(text(value)?),
            None => None,
        };
        let end = head.checked_add(length)?;
        Some(Self {
            host: text(host?)?,
            authorization,
            content_type: content_type?,
            body: bytes.get(head..end)?,
            length: end,
        })
    }
}

/// Printable ASCII.
fn text(value: &[u8]) -> Option<&str> {
    let is_plain = value.iter().all(|byte| (b' '..=b'~').contains(byte));
    std::str::from_utf8(value).ok().filter(|_| is_plain)
}

fn number(digits: &[u8]) -> Option<usize> {
    let is_number = (1..=6).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"limit":"api"}"#;

    fn request(headers: &str) -> String {
        format!("POST /v1/check HTTP/1.1\r\n{headers}\r\n{BODY}")
    }

    #[test]
    fn a_plain_check_is_read_from_its_bytes() {
        let plain = "Host: localhost\r\ncontent-type: application/json\r\nContent-Length: 15\r\n";
        let bytes = format!(
            "{}POST",
            request(&format!("{plain}accept: */*\r\nConnection: Keep-Alive\r\n"))
        );
        let bounds = Bounds::default();
        let check = Check::parse(bytes.as_bytes(), &bounds).unwrap();
        assert_eq!((check.host, check.body), ("localhost", BODY.as_bytes()));
        assert_eq!(&bytes[check.length..], "POST");
        let fewer = Bounds { headers: 4, ..bounds };
        assert!(Check::parse(bytes.as_bytes(), &fewer).is_none(), "too many headers");
        let smaller = Bounds { body: 14, ..bounds };
        assert!(Check::parse(bytes.as_bytes(), &smaller).is_none(), "too long a body");
        for end in 0..check.length {
            assert!(Check::parse(&bytes.as_bytes()[..end], &bounds).is_none(), "{end}");
        }
    }

    #[test]
    fn whatever_is_unusual_is_left_to_others() {
        let plain = "host: localhost\r\ncontent-type: application/json\r\ncontent-length: 15\r\n";
        for unusual in [
            "connection: close",
            "connection: keep-alive, upgrade",
            "connection: keep-alive\r\nconnection: close",
            "Transfer-Encoding: chunked",
            "expect: 100-continue",
            "origin: http://evil.example",
            "upgrade: h2c",
            "content-length: 15",
            "content-length: 16",
            "host: localhost",
            "authorization: a\r\nauthorization: b",
            "authorization: \u{e9}",
            "no colon",
        ] {
            let bytes = request(&format!("{plain}{unusual}\r\n"));
            assert!(Check::parse(bytes.as_bytes(), &Bounds::default()).is_none(), "{unusual}");
        }
        for length in ["", "+15", "-1", "15 15", "0x0f", "15,15", "1234567", "99999999999999999999"]
        {
            let bytes = request(&plain.replace(": 15", &format!(": {length}")));
            assert!(Check::parse(bytes.as_bytes(), &Bounds::default()).is_none(), "{length}");
        }
        for line in
            ["GET /v1/check HTTP/1.1", "POST /v1/check HTTP/1.0", "POST /v1/check?x HTTP/1.1"]
        {
            let bytes = request(plain).replace("POST /v1/check HTTP/1.1", line);
            assert!(Check::parse(bytes.as_bytes(), &Bounds::default()).is_none(), "{line}");
        }
    }
}
