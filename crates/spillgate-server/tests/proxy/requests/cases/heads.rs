//! What a head says, and how it is written.

use super::{GET, INSIDE, MALFORMED, POST, TOO_LARGE, case, get, post};
use crate::proxy::requests::Case;
use crate::proxy::requests::Outcome::{Forwarded, Refused, RefusedOr};

pub(super) fn lines() -> Vec<Case> {
    let hidden = "transfer-encoding: chunked";
    let inside = format!("0\r\n\r\n{INSIDE}");
    let length = inside.len();
    let hiding = |name, header: &str| {
        let headers = format!("content-length: {length}\r\n{header}\r\n");
        case(name, post(&headers, &inside), Refused(MALFORMED))
    };
    let with = |name, header: &str| case(name, get(&format!("{header}\r\n")), Refused(MALFORMED));
    vec![
        hiding("a space before the colon", "transfer-encoding : chunked"),
        hiding("a tab before the colon", "transfer-encoding\t: chunked"),
        hiding("a header after a bare CR", &format!("x: a\r{hidden}")),
        hiding("a header after a bare LF", &format!("x: a\n{hidden}")),
        hiding("a header after LF and CR", &format!("x: a\n\r{hidden}")),
        hiding("a header after NUL", &format!("x: a\0{hidden}")),
        hiding("a header that goes on in the next line", &format!("x: a\r\n {hidden}")),
        hiding("an encoding in the next line", "transfer-encoding:\r\n chunked"),
        hiding("a header after a space", " transfer-encoding: chunked"),
        hiding("a name with NUL", "transfer\0encoding: chunked"),
        hiding("a name with a byte beyond ASCII", "transfer-encoding\u{a0}: chunked"),
        with("a name that is empty", ": a"),
        with("a line without a colon", "nonsense"),
        with("a name with parentheses", "x(y): a"),
        with("a name with a space", "x y: a"),
        with("a value with NUL", "x: a\0b"),
        with("a value with a bare CR", "x: a\rb"),
        with("a value with DEL", "x: a\x7fb"),
        case(
            "lines that end with LF alone",
            "GET {path} HTTP/1.1\nhost: a\n\n",
            Refused(MALFORMED),
        ),
        case(
            "a head that ends with LF alone",
            "GET {path} HTTP/1.1\r\nhost: a\r\n\n",
            Refused(MALFORMED),
        ),
        case(
            "a first header after a space",
            "GET {path} HTTP/1.1\r\n x: a\r\nhost: a\r\n\r\n",
            Refused(MALFORMED),
        ),
        case("an empty line before a request", format!("\r\n{}", get("")), RefusedOr(GET, "")),
    ]
}

pub(super) fn hosts() -> Vec<Case> {
    let hosted = |headers: &str| format!("GET {{path}} HTTP/1.1\r\n{headers}\r\n");
    let refused = |name, headers: &str| case(name, hosted(headers), Refused(MALFORMED));
    vec![
        refused("no host", ""),
        refused("two hosts", "host: a\r\nhost: b\r\n"),
        refused("the same host twice", "host: a\r\nhost: a\r\n"),
        refused("a host with a space", "host: a b\r\n"),
        refused("a host with a path", "host: a/b\r\n"),
        refused("a host with a user", "host: b@a\r\n"),
        refused("two hosts in one", "host: a, b\r\n"),
        refused("a host with a port that is none", "host: a:80:90\r\n"),
        case("a host with a port", hosted("host: a:8080\r\n"), Forwarded(GET, "")),
        case("a host that is an address", hosted("host: [::1]:80\r\n"), Forwarded(GET, "")),
        case("no host in HTTP/1.0", "GET {path} HTTP/1.0\r\n\r\n", RefusedOr(GET, "")),
        case(
            "a whole URL with its host",
            "GET http://a{path} HTTP/1.1\r\nhost: a\r\n\r\n",
            Forwarded(GET, ""),
        ),
        case(
            "a whole URL with another host",
            "GET http://a{path} HTTP/1.1\r\nhost: b\r\n\r\n",
            Refused(MALFORMED),
        ),
        case(
            "a whole URL without a host",
            "GET http://a{path} HTTP/1.1\r\n\r\n",
            Refused(MALFORMED),
        ),
    ]
}

pub(super) fn targets() -> Vec<Case> {
    let line = |line: &str| format!("{line}\r\nhost: a\r\n\r\n");
    let refused = |name, first: &str| case(name, line(first), Refused(&[400, 404, 501, 505]));
    vec![
        refused("two spaces before the target", "GET  {path} HTTP/1.1"),
        refused("a tab before the target", "GET\t{path} HTTP/1.1"),
        refused("a space in the target", "GET {path}? HTTP/1.1 HTTP/1.1"),
        refused("a space behind the version", "GET {path} HTTP/1.1 "),
        refused("a bare CR in the target", "GET {path}\rx HTTP/1.1"),
        refused("NUL in the target", "GET {path}\0x HTTP/1.1"),
        refused("a target without a slash", "GET case HTTP/1.1"),
        refused("a version in small letters", "GET {path} http/1.1"),
        refused("a version that is none", "GET {path} HTTP/1.1.1"),
        refused("a version of the future", "GET {path} HTTP/9.9"),
        refused("HTTP/2 in a line", "GET {path} HTTP/2.0"),
        refused("HTTP/0.9", "GET {path}"),
        refused("a method with a colon", "GE:T {path} HTTP/1.1"),
        refused("no method", " {path} HTTP/1.1"),
        case(
            "a method of one's own",
            line("PURGE {path} HTTP/1.1"),
            Forwarded("PURGE {path} HTTP/1.1", ""),
        ),
        case("a query", line("GET {path}?a=b HTTP/1.1"), Forwarded(GET, "")),
        case("CONNECT", "CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n", Refused(&[400, 405])),
        case("TRACE", line("TRACE {path} HTTP/1.1"), Refused(&[405])),
        case("trace in small letters", line("trace {path} HTTP/1.1"), Refused(&[405])),
        case("Connect with a path", line("Connect {path} HTTP/1.1"), Refused(&[405])),
        case(
            "get in small letters",
            line("get {path} HTTP/1.1"),
            Forwarded("get {path} HTTP/1.1", ""),
        ),
        case("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", Refused(MALFORMED)),
    ]
}

pub(super) fn sizes() -> Vec<Case> {
    let many: String = (0..1000).map(|number| format!("x-{number}: y\r\n")).collect();
    let same = "x: y\r\n".repeat(1000);
    let long = |length| format!("x: {}\r\n", "x".repeat(length));
    let target = format!("GET {{path}}?{} HTTP/1.1\r\nhost: a\r\n\r\n", "x".repeat(200_000));
    let endless = format!("GET {{path}} HTTP/1.1\r\nhost: a\r\nx: {}", "x".repeat(1_000_000));
    vec![
        case("a header of some kilobytes", get(&long(4000)), Forwarded(GET, "")),
        case("a header that is too long", get(&long(200_000)), Refused(TOO_LARGE)),
        case("a header without end", endless, Refused(TOO_LARGE)),
        case("a first line without end", "x".repeat(1_000_000), Refused(TOO_LARGE)),
        case("a target that is too long", target, Refused(TOO_LARGE)),
        case("too many headers", get(&many), Refused(TOO_LARGE)),
        case("one header too often", get(&same), Refused(TOO_LARGE)),
    ]
}

/// Headers about the connection that would take away what tells where the body ends.
pub(super) fn hops() -> Vec<Case> {
    let sized = |headers: &str| post(&format!("{headers}content-length: 5\r\n"), "hello");
    let forwarded = |name, headers: &str| case(name, sized(headers), Forwarded(POST, "hello"));
    vec![
        forwarded("a connection that names the length", "connection: content-length\r\n"),
        forwarded("a connection that names the host", "connection: host, close\r\n"),
        forwarded(
            "an upgrade to HTTP/2",
            "connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n",
        ),
        forwarded("an upgrade to TLS", "connection: upgrade\r\nupgrade: TLS/1.2\r\n"),
        case(
            "a connection that names the encoding",
            post(
                "connection: transfer-encoding\r\ntransfer-encoding: chunked\r\n",
                "5\r\nhello\r\n0\r\n\r\n",
            ),
            Forwarded(POST, "hello"),
        ),
        case(
            "an expectation that nobody knows",
            sized("expect: a-miracle\r\n"),
            RefusedOr(POST, "hello"),
        ),
        case(
            "HTTP/1.0 that keeps its connection",
            "GET {path} HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n",
            Forwarded(GET, ""),
        ),
        case("a body that nobody announced", get("") + "hello\r\n\r\n", Forwarded(GET, "")),
    ]
}
