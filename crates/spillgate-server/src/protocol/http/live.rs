//! `/v1/status`, `/v1/history` and `/v1/top`: what people see of the server.

use http::StatusCode;
use http::header::{CACHE_CONTROL, HeaderName, HeaderValue, VARY};
use http::request::Parts;

use super::HttpServer;
use super::access;
use super::events::{EVENT_STREAM, EventStream};
use super::parameters::{Parameter, ParameterType, Query};
use super::problem::Problem;
use super::reply::{JSON, Reply, accepts, content, json};
use super::routes::Level;
use super::service::block_in_place;
use crate::App;
use crate::live::{Reveal, TopReport};

pub(super) const REVEAL: Parameter = Parameter {
    name: "reveal",
    kind: ParameterType::OneOf(&["true", "false"]),
    description: "Shows callers in clear; needs the token",
};
pub(super) const MINUTES: Parameter = Parameter {
    name: "minutes",
    kind: ParameterType::Whole(1, 60),
    description: "How far back to look; 15 if absent",
};
pub(super) const LIMIT: Parameter = Parameter {
    name: "limit",
    kind: ParameterType::Text,
    description: "Only callers of this limit",
};
pub(super) const COUNT: Parameter = Parameter {
    name: "count",
    kind: ParameterType::Whole(1, 1024),
    description: "How many callers of each kind; 20 if absent",
};

const MOST_CALLERS: usize = 20;
const MINUTES_BACK: u64 = 15;

/// Once, or once per second for as long as the client reads.
pub(super) fn status(server: &HttpServer, head: &Parts, query: &Query) -> Result<Reply, Problem> {
    let app = &server.app;
    let reveal = reveal(app, head, query)?;
    let mut reply = if accepts(head, "text/event-stream") {
        watch(server, reveal)?
    } else {
        let text = block_in_place(|| app.live().status_text(app, reveal));
        content(JSON, text.map_err(failed)?)
    };
    reply.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    Ok(not_stored(reply))
}

fn watch(server: &HttpServer, reveal: Reveal) -> Result<Reply, Problem> {
    let Some(events) = EventStream::open(server, reveal) else {
        return Err(Problem::unavailable("too many clients watch already; try again later"));
    };
    let mut reply = content(EVENT_STREAM, "");
    // Proxies such as nginx would collect events.
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    reply.headers_mut().insert(unbuffered, HeaderValue::from_static("no"));
    reply.extensions_mut().insert(events);
    Ok(reply)
}

pub(super) fn history(app: &App, query: &Query) -> Result<Reply, Problem> {
    let minutes = number(query, &MINUTES)?.unwrap_or(MINUTES_BACK);
    json(&block_in_place(|| app.live().history(minutes))).map(not_stored)
}

pub(super) fn top(app: &App, head: &Parts, query: &Query) -> Result<Reply, Problem> {
    let reveal = reveal(app, head, query)?;
    let most = number(query, &COUNT)?.and_then(|most| usize::try_from(most).ok());
    let limit = query.iter().find(|(name, _)| *name == LIMIT.name).map(|(_, limit)| &**limit);
    let most = most.unwrap_or(MOST_CALLERS);
    let report = block_in_place(|| TopReport::of(app, limit, most, reveal));
    // One that was removed may still be known.
    let is_unknown = |limit: &&str| report.is_empty() && app.gate().policy().parts(limit).is_none();
    if let Some(limit) = limit.filter(is_unknown) {
        return Err(Problem::not_found(format_args!("there is no limit {limit:?}")));
    }
    json(&report).map(not_stored)
}

/// How much the client may see. Callers in clear are for operators.
fn reveal(app: &App, head: &Parts, query: &Query) -> Result<Reveal, Problem> {
    let value = query.iter().find(|(name, _)| *name == REVEAL.name).map(|(_, value)| &**value);
    match value {
        None | Some("false") => Ok(Reveal::Masked),
        Some("true") => {
            access::admit(&app.access(), Level::Admin, head)?;
            Ok(Reveal::All)
        }
        Some(other) => {
            Err(Problem::bad_request(format_args!("invalid reveal {other:?}; use true or false")))
        }
    }
}

/// A whole number within the bounds of its parameter.
fn number(query: &Query, parameter: &Parameter) -> Result<Option<u64>, Problem> {
    let ParameterType::Whole(least, most) = parameter.kind else { return Ok(None) };
    let name = parameter.name;
    let Some((_, text)) = query.iter().find(|(known, _)| *known == name) else { return Ok(None) };
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.map(Some).ok_or_else(|| {
        Problem::bad_request(format_args!("invalid {name} {text:?}; use {least} to {most}"))
    })
}

fn not_stored(mut reply: Reply) -> Reply {
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

fn failed(why: String) -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, why)
}
