mod bodies;
mod heads;

use super::{Case, Outcome};

/// What a request may be told that is not understood.
pub(super) const MALFORMED: &[u16] = &[400, 501];
/// In place of a status: hung up without a word.
pub(super) const SILENCE: u16 = 0;
const TOO_LARGE: &[u16] = &[SILENCE, 400, 414, 431];
const POST: &str = "POST {path} HTTP/1.1";
const GET: &str = "GET {path} HTTP/1.1";
const INSIDE: &str = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";

pub(super) fn all() -> Vec<Case> {
    let mut cases = bodies::lengths();
    cases.extend(bodies::encodings());
    cases.extend(bodies::chunks());
    cases.extend(heads::lines());
    cases.extend(heads::hosts());
    cases.extend(heads::targets());
    cases.extend(heads::sizes());
    cases.extend(heads::hops());
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
