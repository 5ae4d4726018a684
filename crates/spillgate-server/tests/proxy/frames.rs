//! HTTP/2 in frames that no library would write: headers that would mean something else once they
//! are lines of HTTP/1.1.

use crate::proxy::setup::Proxy;
use crate::proxy::upstream::{Upstream, ok};
use crate::proxy::wire::Wire;

pub(crate) type Fields<'a> = &'a [(&'a str, &'a str)];

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

pub(crate) fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags, 0, 0, 0, stream];
    frame.extend(payload);
    frame
}

/// A literal text: its length, which takes 7 bits and then perhaps more, and its bytes.
fn literal(text: &str, block: &mut Vec<u8>) {
    match u8::try_from(text.len()) {
        Ok(length @ ..127) => block.push(length),
        _ => {
            let rest = text.len() - 127;
            block.extend([127, (rest % 128) as u8 | 128, u8::try_from(rest / 128).unwrap()]);
        }
    }
    block.extend(text.as_bytes());
}

/// A request on a connection of its own, of which only these fields are right or wrong.
pub(crate) fn request(fields: Fields<'_>, body: &str) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        literal(name, &mut block);
        literal(value, &mut block);
    }
    let mut bytes = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    bytes.extend(frame(HEADERS, END_HEADERS, 1, &block));
    bytes.extend(frame(DATA, END_STREAM, 1, body.as_bytes()));
    // Whoever answers this has dealt with what came before.
    bytes.extend(frame(PING, 0, 0, b"are you?"));
    bytes
}

/// Reads until the ping is answered and the stream has ended, or the proxy hangs up.
pub(crate) fn await_end(wire: &mut Wire) {
    let (mut is_answered, mut is_over) = (false, false);
    while !(is_answered && is_over) {
        let head = wire.take(9);
        let [a, b, c, kind, flags, .., stream] = head[..] else { return };
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        wire.take(length);
        is_answered |= kind == PING;
        // A reset or the last frame of the stream, or a farewell.
        is_over |= kind == GOAWAY
            || stream == 1 && (kind == RST_STREAM || flags & END_STREAM != 0 && kind < 2);
    }
}

pub(crate) const PLAIN: [(&str, &str); 4] =
    [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", "/case")];

/// A field more than in a plain request, or another in place of one of its own.
fn with<'a>(name: &'a str, value: &'a str) -> Vec<(&'a str, &'a str)> {
    let others = PLAIN.into_iter().filter(|(given, _)| *given != name);
    let mut fields: Vec<_> = others.chain([(name, value)]).collect();
    // Those that describe the request come first.
    fields.sort_by_key(|(name, _)| !name.starts_with(':'));
    fields
}

const INSIDE: &str = "\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";

#[test]
fn a_plain_request_passes() {
    let upstream = Upstream::answering(|request| ok(request.path()));
    let proxy = Proxy::to(&upstream);
    let mut wire = proxy.connect();
    wire.send(request(&PLAIN, "hello"));
    await_end(&mut wire);
    let seen = upstream.request();
    assert_eq!((seen.start.as_str(), seen.text().as_str()), ("POST /case HTTP/1.1", "hello"));
}

#[test]
fn what_would_mean_something_else_in_http1_is_refused() {
    let upstream = Upstream::answering(|request| ok(request.path()));
    let proxy = Proxy::to(&upstream);
    let inside = format!("/case HTTP/1.1\r\nhost: a{INSIDE}");
    let value = format!("x{INSIDE}");
    let name = format!("x: y{INSIDE}z");
    let cases = [
        ("an encoding", with("transfer-encoding", "chunked")),
        ("a length that is too short", with("content-length", "1")),
        ("a length that is too long", with("content-length", "50")),
        ("a length that is none", with("content-length", "5, 5")),
        ("a connection", with("connection", "close")),
        ("an upgrade", with("upgrade", "websocket")),
        ("lines in a value", with("x", &value)),
        ("a bare LF in a value", with("x", "a\nb: c")),
        ("NUL in a value", with("x", "a\0b")),
        ("lines in a name", with(&name, "1")),
        ("capitals in a name", with("Content-Length", "5")),
        ("a colon in a name", with("x:y", "1")),
        ("lines in the path", with(":path", &inside)),
        ("a space in the path", with(":path", "/case HTTP/1.1")),
        ("an empty path", with(":path", "")),
        ("lines in the method", with(":method", "GET /smuggled HTTP/1.1\r\nx:")),
        ("a space in the method", with(":method", "GET /smuggled")),
        ("lines in the authority", with(":authority", "a\r\nx: y")),
        ("a path in the authority", with(":authority", "a/b")),
        ("a user in the authority", with(":authority", "b@a")),
        ("another host", with("host", "b")),
        ("a description nobody knows", with(":x", "y")),
    ];
    let mut failed = Vec::new();
    for (name, fields) in cases {
        let before = upstream.requests().len();
        let mut wire = proxy.connect();
        wire.send(request(&fields, "hello"));
        await_end(&mut wire);
        let after = proxy.get("/after");
        assert_eq!(after.text(), "/after", "{name}");
        let seen = upstream.requests().split_off(before);
        if seen.iter().any(|seen| seen.is_whole && seen.path() != "/after") {
            failed.push(format!("{name}: {seen:?}"));
        }
    }
    assert!(failed.is_empty(), "passed on:\n{}", failed.join("\n"));
}
