//! Requests that two servers could understand differently: each is refused, or the upstream sees
//! one meaning of it. Everything goes through one proxy to one upstream over connections that are
//! kept, so that whatever a request leaves behind spoils the next one.

mod cases;

use crate::proxy::message::Message;
use crate::proxy::setup::{Proxy, Setup, threads};
use crate::proxy::upstream::{Upstream, ok};

/// What must come of a request.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    /// Answered with one of these statuses, and hung up; the upstream sees no whole request.
    Refused(&'static [u16]),
    /// The upstream sees this first line (but for the path) and this body, once.
    Forwarded(&'static str, &'static str),
    /// Either: both are right, and neither can be exploited.
    RefusedOr(&'static str, &'static str),
}

/// A request, with `{path}` in place of its own path.
struct Case {
    name: &'static str,
    sent: Vec<u8>,
    outcome: Outcome,
}

impl Case {
    fn path(number: usize) -> String {
        format!("/case-{number}")
    }

    fn bytes(&self, number: usize) -> Vec<u8> {
        let (path, mut rest, mut bytes) = (Self::path(number), &self.sent[..], Vec::new());
        while let Some(place) = rest.windows(6).position(|window| window == b"{path}") {
            bytes.extend_from_slice(&rest[..place]);
            bytes.extend_from_slice(path.as_bytes());
            rest = &rest[place + 6..];
        }
        bytes.extend_from_slice(rest);
        bytes
    }
}

/// What a client saw that sent bytes, so many at a time, and then nothing more: whole responses,
/// and what else came.
fn exchange(proxy: &Proxy, bytes: &[u8], together: usize) -> (Vec<Message>, Vec<u8>) {
    let mut wire = proxy.connect();
    // The proxy may hang up before it has read everything.
    bytes.chunks(together).all(|piece| wire.send(piece));
    let mut responses = Vec::new();
    let method = if bytes.starts_with(b"HEAD") { "HEAD" } else { "GET" };
    loop {
        match wire.response(method) {
            Some(response) => responses.push(response),
            None => return (responses, wire.rest()),
        }
        // One that was understood may be followed by others; else it is up to the proxy to hang up.
        if matches!(responses[0].status(), 200 | 405) {
            wire.finish();
        }
    }
}

/// Whether what came to the upstream for a case is as it should be.
fn judge(case: &Case, seen: &[Message], responses: &[Message]) -> Result<(), String> {
    let first = responses.first().map(Message::status);
    let refused = |statuses: &[u16]| {
        if seen.iter().any(|request| request.is_whole) {
            return Err("the upstream saw a whole request".to_owned());
        }
        match (first, responses.len()) {
            (None, _) if statuses.contains(&cases::SILENCE) => Ok(()),
            (Some(status), 1) if statuses.contains(&status) => Ok(()),
            _ => Err(format!("the client was not told {statuses:?} alone")),
        }
    };
    let forwarded = |line: &str, body: &str| {
        let [request] = seen else { return Err("the upstream did not see one request".to_owned()) };
        let expected = line.replace("{path}", request.path());
        match (request.start == expected, request.text() == body, request.is_whole, first) {
            (true, true, true, Some(200)) => Ok(()),
            _ => Err(format!("the upstream did not see {expected:?} with {body:?}")),
        }
    };
    match case.outcome {
        Outcome::Refused(statuses) => refused(statuses),
        Outcome::Forwarded(line, body) => forwarded(line, body),
        Outcome::RefusedOr(line, body) => {
            forwarded(line, body).or_else(|_| refused(cases::MALFORMED))
        }
    }
}

/// Tries a case, then another request, and says what went wrong.
fn attempt(
    (proxy, upstream): (&Proxy, &Upstream),
    number: usize,
    case: &Case,
    together: usize,
) -> Result<(), String> {
    let before = upstream.requests().len();
    let (responses, rest) = exchange(proxy, &case.bytes(number), together);
    // Whoever comes next on the same upstream connection must get their own answer.
    let after = proxy.echo(&format!("/after-{number}"));
    let requests = upstream.requests().split_off(before);
    let own = Case::path(number);
    let (seen, others): (Vec<_>, Vec<_>) =
        requests.into_iter().partition(|seen| seen.path().split('?').next() == Some(&own));
    let judgement = if let Err(after) = after {
        Err(format!("the next request was answered {after:?}"))
    } else if others.iter().filter(|request| request.is_whole).count() > threads() {
        Err(format!("the upstream saw another request: {others:?}"))
    } else if !rest.is_empty() {
        Err(format!("half a response: {:?}", String::from_utf8_lossy(&rest)))
    } else {
        judge(case, &seen, &responses)
    };
    let output: Vec<_> = responses.iter().map(|response| &response.start).collect();
    judgement.map_err(|error| {
        format!("{}: {error}\n   client {output:?}\n   upstream {seen:?}", case.name)
    })
}

#[test]
fn a_request_with_two_meanings_is_refused_or_has_one_meaning_for_the_upstream() {
    let upstream = Upstream::answering(|request| ok(request.path()));
    let proxy = Setup::to(&[upstream.url()]).proxy("idle-timeout = '2s'\n").start();
    let whole = cases::all().into_iter().map(|case| (case, usize::MAX));
    let small = cases::all().into_iter().filter(|case| case.sent.len() < 1000);
    let attempts: Vec<_> = whole.chain(small.map(|case| (case, 1))).collect();
    let failed: Vec<_> = (0..)
        .zip(&attempts)
        .filter_map(|(number, (case, together))| {
            attempt((&proxy, &upstream), number, case, *together).err()
        })
        .collect();
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
    // Nor did anything come late.
    let refused = |(case, _): &(Case, usize)| matches!(case.outcome, Outcome::Refused(_));
    for request in upstream.requests().iter().filter(|request| request.is_whole) {
        let number = request.path().strip_prefix("/case-").and_then(|number| number.parse().ok());
        let is_refused = number.is_some_and(|number: usize| refused(&attempts[number]));
        assert!(!is_refused && request.path() != "/smuggled", "{request:?}");
    }
}

#[test]
fn whatever_a_connection_has_carried_the_next_request_is_judged_as_strictly() {
    let upstream = Upstream::answering(|request| ok(request.path()));
    let proxy = Proxy::to(&upstream);
    let with = |headers: &str| format!("POST / HTTP/1.1\r\nhost: a\r\n{headers}\r\n");
    let befores = [
        with(""),
        with("content-length: 5\r\n") + "\n\n\n\n\n",
        with("transfer-encoding: chunked\r\n") + "5;x\r\nhello\r\n0\r\nx: y\r\n\r\n",
        with("upgrade: chat\r\n"),
        with("connection: upgrade\r\nupgrade: chat\r\n"),
        with("connection: upgrade\r\nupgrade: chat\r\ncontent-length: 5\r\n") + "hello",
        with("connection: upgrade\r\nupgrade: h2c\r\n"),
        with("upgrade: h2c, chat\r\n"),
        with("upgrade:\r\n"),
        "\r\n\r\n".to_owned() + &with(""),
    ];
    let unclear = [
        "GET /unclear HTTP/1.1\nhost: a\n\n",
        "POST /unclear HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ];
    for before in &befores {
        for unclear in unclear {
            let (responses, _) =
                exchange(&proxy, format!("{before}{unclear}").as_bytes(), usize::MAX);
            let seen = upstream.requests();
            let is_seen = seen.iter().any(|seen| seen.path() == "/unclear");
            assert!(!is_seen, "{before:?} lets {unclear:?} pass: {responses:?}");
        }
    }
}
