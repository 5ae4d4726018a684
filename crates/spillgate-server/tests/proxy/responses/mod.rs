//! Upstreams that lie, break off or talk nonsense: the client is told so, and nobody else is
//! answered with what is left over.

mod cases;

use std::sync::Arc;

use crate::proxy::message::Message;
use crate::proxy::setup::{Proxy, Setup};
use crate::proxy::upstream::{Upstream, ok};

/// What the client must see of a response.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    /// This status and body, whole.
    Told(u16, &'static str),
    /// A 502 that says why.
    BadGateway,
    /// Either of the two.
    ToldOrBadGateway(u16, &'static str),
    /// A head, and a body that visibly breaks off.
    CutOff,
}

/// What an upstream sends in response to a method.
struct Case {
    name: &'static str,
    method: &'static str,
    sent: Vec<u8>,
    hangs_up: bool,
    outcome: Outcome,
}

fn judge(case: &Case, response: Option<&Message>) -> Result<(), String> {
    let told = |status, body: &str| match response {
        Some(response)
            if response.status() == status && response.text() == body && response.is_whole =>
        {
            Ok(())
        }
        _ => Err(format!("the client was not told {status} with {body:?}")),
    };
    let bad_gateway = || match response {
        Some(response) if response.status() == 502 => {
            if case.method != "HEAD" {
                response.problem();
            }
            Ok(())
        }
        _ => Err("the client was not told 502".to_owned()),
    };
    match case.outcome {
        Outcome::Told(status, body) => told(status, body),
        Outcome::BadGateway => bad_gateway(),
        Outcome::ToldOrBadGateway(status, body) => told(status, body).or_else(|_| bad_gateway()),
        Outcome::CutOff => match response {
            Some(response) if response.is_whole && response.status() != 502 => {
                Err("the client was told a whole response".to_owned())
            }
            Some(_) => Ok(()),
            None => Err("the client was told nothing".to_owned()),
        },
    }
}

#[test]
fn a_response_with_two_meanings_is_a_502_and_one_that_breaks_off_is_cut_off() {
    let cases = Arc::new(cases::all());
    let played = Arc::clone(&cases);
    let upstream = Upstream::playing(move |mut wire, seen| {
        while let Some(request) = seen.next(&mut wire) {
            let number = request.path().strip_prefix("/case-").map(str::parse::<usize>);
            let Some(Ok(number)) = number else {
                wire.send(ok(request.path()));
                continue;
            };
            if !wire.send(&played[number].sent) || played[number].hangs_up {
                return;
            }
        }
    });
    let proxy = Setup::to(&[upstream.url()]).start();
    let mut failed = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let response = ask(&proxy, case.method, &format!("/case-{number}"));
        let judgement = match proxy.echo(&format!("/after-{number}")) {
            Ok(()) => judge(case, response.as_ref()),
            Err(after) => Err(format!("the next request was answered {after:?}")),
        };
        if let Err(error) = judgement {
            failed.push(format!("{}: {error}, but {response:?}", case.name));
        }
    }
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
    upstream.requests();
}

fn ask(proxy: &Proxy, method: &str, path: &str) -> Option<Message> {
    let mut wire = proxy.connect();
    wire.send(format!("{method} {path} HTTP/1.1\r\nhost: a\r\n\r\n"));
    let response = wire.response(method)?;
    // Whatever comes after it was no part of it.
    wire.finish();
    let rest = wire.rest();
    assert!(rest.is_empty() || !response.is_whole, "{path}: {response:?} and {rest:?}");
    Some(response)
}

#[test]
fn a_response_to_head_tells_the_length_and_has_no_body() {
    let upstream =
        Upstream::answering(|_| "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n".to_owned());
    let proxy = Proxy::to(&upstream);
    let mut wire = proxy.connect();
    for _ in 0..3 {
        wire.send("HEAD / HTTP/1.1\r\nhost: a\r\n\r\n");
        let response = wire.response("HEAD").unwrap();
        assert_eq!((response.status(), response.header("content-length")), (200, Some("5")));
    }
    assert_eq!(upstream.requests().len(), 3);
}
