use super::Case;
use super::Outcome::{self, Forwarded, Refused, RefusedOr};

/// What a request may be told that is not understood.
pub(super) const MALFORMED: &[u16] = &[400, 501];
/// In place of a status: hung up without a word.
pub(super) const SILENCE: u16 = 0;
const TOO_LARGE: &[u16] = &[SILENCE, 400, 414, 431];
const POST: &str = "POST {path} HTTP/1.1";
const GET: &str = "GET {path} HTTP/1.1";
const INSIDE: &str = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";

pub(super) fn all() -> Vec<Case> {
    let mut cases = lengths();
    cases.extend(encodings());
    cases.extend(chunks());
    cases.extend(lines());
    cases.extend(hosts());
    cases.extend(targets());
    cases.extend(sizes());
    cases.extend(hops());
    cases
}

fn case(name: &'static str, sent: impl Into<Vec<u8>>, outcome: Outcome) -> Case {
    Case { name, sent: sent.into(), outcome }
}

/// A `POST` with these headers, then these bytes.
fn post(headers: &str, body: &str) -> String {
    format!("POST {{path}} HTTP/1.1\r\nhost: a\r\n{headers}\r\n{body}")
}

fn get(headers: &str) -> String {
    format!("GET {{path}} HTTP/1.1\r\nhost: a\r\n{headers}\r\n")
}

fn lengths() -> Vec<Case> {
    let length = |value: &str| post(&format!("content-length: {value}\r\n"), "hello");
    let refused = |name, value| case(name, length(value), Refused(MALFORMED));
    vec![
        case("a plain length", length("5"), Forwarded(POST, "hello")),
        case("a length with zeros before it", length("005"), RefusedOr(POST, "hello")),
        case("a length among spaces and tabs", length(" \t5\t "), Forwarded(POST, "hello")),
        refused("a length with a plus", "+5"),
        refused("a length with a minus", "-5"),
        refused("a length in hexadecimal", "0x5"),
        refused("a length with a fraction", "5.0"),
        refused("a length of two words", "5 5"),
        refused("a length that is empty", ""),
        refused("a length that is a word", "five"),
        refused("a length beyond 64 bits", "18446744073709551621"),
        refused("a list of different lengths", "5, 6"),
        case("a list of equal lengths", length("5, 5"), RefusedOr(POST, "hello")),
        case(
            "two different lengths",
            post("content-length: 5\r\ncontent-length: 6\r\n", "hello!"),
            Refused(MALFORMED),
        ),
        case(
            "two lengths, the smaller first, and a request in between",
            post(&format!("content-length: 0\r\ncontent-length: {}\r\n", INSIDE.len()), INSIDE),
            Refused(MALFORMED),
        ),
        case(
            "two equal lengths",
            post("content-length: 5\r\ncontent-length: 5\r\n", "hello"),
            RefusedOr(POST, "hello"),
        ),
        case(
            "a header that only looks like a length",
            post("content_length: 50\r\ncontent-length: 5\r\n", "hello"),
            Forwarded(POST, "hello"),
        ),
        case("a body with GET", get("content-length: 5\r\n") + "hello", Forwarded(GET, "hello")),
    ]
}

fn encodings() -> Vec<Case> {
    let chunked = "5\r\nhello\r\n0\r\n\r\n";
    let encoded = |value: &str| post(&format!("transfer-encoding: {value}\r\n"), chunked);
    let refused = |name, value| case(name, encoded(value), Refused(MALFORMED));
    let inside = format!("0\r\n\r\n{INSIDE}");
    let whole = inside.len();
    vec![
        case("plain chunks", encoded("chunked"), Forwarded(POST, "hello")),
        case("chunks in capitals", encoded("Chunked"), Forwarded(POST, "hello")),
        case("chunks after a tab", encoded("\tchunked"), Forwarded(POST, "hello")),
        case(
            "a length, then chunks with a request behind them",
            post(&format!("content-length: {whole}\r\ntransfer-encoding: chunked\r\n"), &inside),
            Refused(MALFORMED),
        ),
        case(
            "chunks, then a length, with a request behind them",
            post(&format!("transfer-encoding: chunked\r\ncontent-length: {whole}\r\n"), &inside),
            Refused(MALFORMED),
        ),
        case(
            "chunks that hold a request, and a length that ends before it",
            post(
                "content-length: 4\r\ntransfer-encoding: chunked\r\n",
                &format!("{:x}\r\n{INSIDE}\r\n0\r\n\r\n", INSIDE.len()),
            ),
            Refused(MALFORMED),
        ),
        case(
            "a length and an encoding that is none",
            post(&format!("content-length: {whole}\r\ntransfer-encoding: xchunked\r\n"), &inside),
            Refused(MALFORMED),
        ),
        refused("an encoding that is the identity", "identity"),
        refused("an encoding after chunks", "chunked, identity"),
        refused("an encoding before chunks", "gzip, chunked"),
        refused("chunks twice", "chunked, chunked"),
        refused("an encoding that is unknown", "xchunked"),
        refused("chunks with a parameter", "chunked;q=1"),
        refused("chunks in quotes", "\"chunked\""),
        refused("chunks after a vertical tab", "\x0bchunked"),
        refused("an encoding that is empty", ""),
        refused("chunks after a comma", ",chunked"),
        case(
            "two headers of encodings",
            post("transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n", chunked),
            Refused(MALFORMED),
        ),
        case(
            "two headers of chunks",
            post("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", chunked),
            Refused(MALFORMED),
        ),
        case(
            "chunks in HTTP/1.0",
            format!(
                "POST {{path}} HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n{chunked}"
            ),
            Refused(MALFORMED),
        ),
    ]
}

fn chunks() -> Vec<Case> {
    let chunks = |body: &str| post("transfer-encoding: chunked\r\n", body);
    let refused = |name, body: &str| case(name, chunks(body), Refused(MALFORMED));
    let extension = "x".repeat(100_000);
    let trailers = format!("x-long: {}\r\n", "x".repeat(200_000));
    vec![
        case("chunks with zeros", chunks("005\r\nhello\r\n000\r\n\r\n"), Forwarded(POST, "hello")),
        case("an extension", chunks("5;a=b\r\nhello\r\n0\r\n\r\n"), Forwarded(POST, "hello")),
        case("a trailer", chunks("5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n"), Forwarded(POST, "hello")),
        case(
            "a trailer that is a length",
            chunks("5\r\nhello\r\n0\r\ncontent-length: 50\r\n\r\n"),
            RefusedOr(POST, "hello"),
        ),
        case("a space after a size", chunks("5 \r\nhello\r\n0\r\n\r\n"), RefusedOr(POST, "hello")),
        refused("a size that is no number", "g\r\nhello\r\n0\r\n\r\n"),
        refused("a size that is empty", "\r\nhello\r\n0\r\n\r\n"),
        refused("a size with a minus", "-5\r\nhello\r\n0\r\n\r\n"),
        refused("a size with a plus", "+5\r\nhello\r\n0\r\n\r\n"),
        refused("a size with 0x", "0x5\r\nhello\r\n0\r\n\r\n"),
        refused("a size after a space", " 5\r\nhello\r\n0\r\n\r\n"),
        refused("a size beyond 64 bits", "10000000000000005\r\nhello\r\n0\r\n\r\n"),
        case(
            "the largest size",
            chunks("ffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
            Refused(&[SILENCE, 400, 408, 504]),
        ),
        refused("a size that ends with LF", "5\nhello\r\n0\r\n\r\n"),
        refused("a size that ends with CR", "5\rhello\r\n0\r\n\r\n"),
        refused("a chunk longer than its size", "5\r\nhello world\r\n0\r\n\r\n"),
        refused("a chunk that ends with LF", "5\r\nhello\n0\r\n\r\n"),
        refused("a chunk without an end", "5\r\nhello0\r\n\r\n"),
        refused("an extension with LF", "5;a\nb\r\nhello\r\n0\r\n\r\n"),
        refused("an extension with CR", "5;a\rb\r\nhello\r\n0\r\n\r\n"),
        refused(
            "an extension that hides a size",
            "2;\nxx\r\n5\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
        ),
        refused("a trailer that is none", "5\r\nhello\r\n0\r\nx sum: 1\r\n\r\n"),
        case(
            "an extension without end",
            chunks(&format!("5;{extension}\r\nhello\r\n0\r\n\r\n")),
            Refused(TOO_LARGE),
        ),
        case(
            "trailers without end",
            chunks(&format!("5\r\nhello\r\n0\r\n{trailers}\r\n")),
            Refused(TOO_LARGE),
        ),
    ]
}

fn lines() -> Vec<Case> {
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

fn hosts() -> Vec<Case> {
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
            RefusedOr(GET, ""),
        ),
        case(
            "a whole URL without a host",
            "GET http://a{path} HTTP/1.1\r\n\r\n",
            Refused(MALFORMED),
        ),
    ]
}

fn targets() -> Vec<Case> {
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
        case("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", Refused(MALFORMED)),
    ]
}

fn sizes() -> Vec<Case> {
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
fn hops() -> Vec<Case> {
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
