//! The request within a line: addresses, request lines, escapes.

use std::net::{IpAddr, Ipv4Addr};

use crate::Skip;

/// An address, perhaps in brackets, perhaps with a port.
pub(super) fn address(text: &[u8]) -> Result<IpAddr, Skip> {
    if let Some(address) = v4(text) {
        return Ok(IpAddr::V4(address));
    }
    let text = std::str::from_utf8(text).map_err(|_| Skip::Address)?;
    bare(text).or_else(|_| with_port(text))
}

/// An address with a port, also one of IPv6 without brackets, of which the port seems to be a part.
pub(super) fn address_and_port(text: &[u8]) -> Result<IpAddr, Skip> {
    with_port(std::str::from_utf8(text).map_err(|_| Skip::Address)?)
}

fn with_port(text: &str) -> Result<IpAddr, Skip> {
    let (host, port) = text.rsplit_once(':').ok_or(Skip::Address)?;
    port.parse::<u16>().map_err(|_| Skip::Address)?;
    bare(host)
}

/// An address without a port. The zone of a link-local one is of this machine, and no part of it.
fn bare(text: &str) -> Result<IpAddr, Skip> {
    let text = text.trim_start_matches('[').trim_end_matches(']');
    let text = text.split_once('%').map_or(text, |(address, _)| address);
    text.parse::<IpAddr>().map(|address| address.to_canonical()).map_err(|_| Skip::Address)
}

/// An IPv4 address: most lines have one.
fn v4(text: &[u8]) -> Option<Ipv4Addr> {
    if text.len() > 15 {
        return None;
    }
    let (mut octets, mut place, mut value, mut digits) = ([0; 4], 0, 0_u16, 0);
    for byte in text {
        match byte {
            b'0'..=b'9' if digits < 3 => {
                value = value * 10 + u16::from(byte - b'0');
                digits += 1;
            }
            b'.' if digits > 0 && place < 3 && value < 256 => {
                octets[place] = value as u8;
                (place, value, digits) = (place + 1, 0, 0);
            }
            _ => return None,
        }
    }
    octets[place] = u8::try_from(value).ok()?;
    (place == 3 && digits > 0).then(|| octets.into())
}

/// Method, path and perhaps host of a request line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestLine<'l> {
    pub(super) method: &'l [u8],
    pub(super) path: &'l str,
    pub(super) host: Option<&'l str>,
}

/// Reads `GET /path?query HTTP/1.1`.
pub(super) fn request_line(text: &[u8]) -> Result<RequestLine<'_>, Skip> {
    let space = memchr::memchr(b' ', text).ok_or(Skip::NoRequest)?;
    let (method, rest) = (&text[..space], &text[space + 1..]);
    // HTTP/0.9 has no version.
    let target = match memchr::memrchr(b' ', rest) {
        Some(end) if rest[end + 1..].starts_with(b"HTTP/") => &rest[..end],
        _ => rest,
    };
    request(method, target)
}

/// A request from its method and target.
pub(super) fn request<'l>(method: &'l [u8], target: &'l [u8]) -> Result<RequestLine<'l>, Skip> {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'-';
    let is_method = method.first() != Some(&b'-') && method.iter().all(is_letter);
    if !is_method || method.is_empty() || target.is_empty() {
        return Err(Skip::NoRequest);
    }
    let end = memchr::memchr2(b'?', b'#', target).unwrap_or(target.len());
    let target = std::str::from_utf8(&target[..end]).map_err(|_| Skip::NoRequest)?;
    if target.starts_with('/') || target == "*" {
        return Ok(RequestLine { method, path: target, host: None });
    }
    match target.split_once("://") {
        Some((_, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let path = if path.is_empty() { "/" } else { path };
            Ok(RequestLine { method, path, host: Some(host) })
        }
        None if method == b"CONNECT" => Ok(RequestLine { method, path: "", host: Some(target) }),
        None => Err(Skip::NoRequest),
    }
}

/// What is before the closing quote, and what is after it. A backslash escapes.
pub(super) fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut from = 0;
    loop {
        let place = from + memchr::memchr2(b'"', b'\\', text.get(from..)?)?;
        if text[place] == b'"' {
            return Some((&text[..place], &text[place + 1..]));
        }
        from = place + 2;
    }
}

/// Writes a text without the escapes of nginx and Apache, `\xHH`, `\"` and `\\`.
pub(super) fn unescape(text: &[u8], plain: &mut Vec<u8>) {
    plain.clear();
    let mut rest = text;
    while let Some(place) = memchr::memchr(b'\\', rest) {
        plain.extend_from_slice(&rest[..place]);
        let hex = |digit: &u8| char::from(*digit).to_digit(16).map(|value| value as u8);
        rest = match &rest[place + 1..] {
            [b'x', high, low, after @ ..] => match (hex(high), hex(low)) {
                (Some(high), Some(low)) => {
                    plain.push(high << 4 | low);
                    after
                }
                _ => {
                    plain.push(b'x');
                    &rest[place + 2..]
                }
            },
            [escaped, after @ ..] => {
                plain.push(*escaped);
                after
            }
            [] => &[],
        };
    }
    plain.extend_from_slice(rest);
}

/// Writes a text without the escapes of HAProxy, `#HH`.
pub(super) fn unescape_number_signs(text: &[u8], plain: &mut Vec<u8>) {
    decode(b'#', text, plain);
}

/// Writes a text without percent-encoding.
pub(super) fn percent_decode(text: &[u8], plain: &mut Vec<u8>) {
    decode(b'%', text, plain);
}

/// Writes a text with bytes for a sign and two hexadecimal digits.
fn decode(sign: u8, text: &[u8], plain: &mut Vec<u8>) {
    plain.clear();
    let mut rest = text;
    let hex = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    while let [first, after @ ..] = rest {
        rest = after;
        match after {
            [high, low, after @ ..] if *first == sign => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    plain.push(high << 4 | low);
                    rest = after;
                }
                _ => plain.push(*first),
            },
            _ => plain.push(*first),
        }
    }
}

/// A value that is there: `-` and nothing are not.
pub(super) fn present(text: &[u8]) -> Option<&[u8]> {
    (!matches!(text, b"" | b"-")).then_some(text)
}

/// A text that is there, and UTF-8.
pub(super) fn present_text(text: &[u8]) -> Option<&str> {
    std::str::from_utf8(present(text)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_with_and_without_ports() {
        for (text, read) in [
            ("203.0.113.7", "203.0.113.7"),
            ("203.0.113.7:4711", "203.0.113.7"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("fe80::1%eth0", "fe80::1"),
            ("[fe80::1%2]:443", "fe80::1"),
        ] {
            assert_eq!(address(text.as_bytes()), Ok(read.parse().unwrap()), "{text}");
        }
        for text in
            ["", "-", "unix:", "client.example.com", "1.2.3", "1.2.3.256", "1..2.3", "1.2.3.4.5"]
        {
            assert_eq!(address(text.as_bytes()), Err(Skip::Address), "{text}");
        }
    }

    #[test]
    fn a_port_is_no_part_of_an_address_without_brackets() {
        for (text, read) in [
            ("2001:db8::5:6:7:8:40000", "2001:db8::5:6:7:8"),
            ("::1:4711", "::1"),
            ("203.0.113.7:4711", "203.0.113.7"),
            ("[2001:db8::1]:443", "2001:db8::1"),
        ] {
            assert_eq!(address_and_port(text.as_bytes()), Ok(read.parse().unwrap()), "{text}");
        }
        for text in ["203.0.113.7", "unix:1", ":1", "haproxy[1]:"] {
            assert_eq!(address_and_port(text.as_bytes()), Err(Skip::Address), "{text}");
        }
    }

    #[test]
    fn request_lines_are_split_and_garbage_is_no_request() {
        for (text, method, path, host) in [
            ("GET /a/b?c=/d HTTP/1.1", "GET", "/a/b", None),
            ("GET / HTTP/2.0", "GET", "/", None),
            ("GET /old", "GET", "/old", None),
            ("GET /with space HTTP/1.1", "GET", "/with space", None),
            ("OPTIONS * HTTP/1.1", "OPTIONS", "*", None),
            ("VERSION-CONTROL /a HTTP/1.1", "VERSION-CONTROL", "/a", None),
            ("GET http://a.example:80/x?y HTTP/1.1", "GET", "/x", Some("a.example:80")),
            ("GET https://a.example HTTP/1.1", "GET", "/", Some("a.example")),
            ("CONNECT a.example:443 HTTP/1.1", "CONNECT", "", Some("a.example:443")),
        ] {
            let expected = RequestLine { method: method.as_bytes(), path, host };
            assert_eq!(request_line(text.as_bytes()), Ok(expected), "{text}");
        }
        for text in [
            &b""[..],
            b"-",
            b"\x16\x03\x01\x02",
            b"\x16\x03 \x01",
            b"GET ",
            b"GET nothing",
            b"G3T / HTTP/1.1",
            b"GET /\xff HTTP/1.1",
        ] {
            assert_eq!(request_line(text), Err(Skip::NoRequest), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn escapes_are_undone() {
        let mut plain = Vec::new();
        for (text, read) in [
            (r"a\x22b", &b"a\"b"[..]),
            (r#"a\"b\\"#, b"a\"b\\"),
            (r"\xC3\xa9", "é".as_bytes()),
            (r"\xZZ\x2", b"xZZx2"),
            (r"\", b""),
        ] {
            unescape(text.as_bytes(), &mut plain);
            assert_eq!(plain, read, "{text}");
        }
        assert_eq!(quoted(br#"a\"b" rest"#), Some((&br#"a\"b"#[..], &b" rest"[..])));
        assert_eq!(quoted(br#"never closed\"#), None);
    }
}
