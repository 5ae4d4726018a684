use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{Response, StatusCode};
use serde::Serialize;

use super::problem::Problem;

pub(super) type Reply = Response<Bytes>;

/// Marks a reply to a change that was not needed: it was so already.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unchanged;

pub(super) const JSON: &str = "application/json";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

pub(super) fn json(document: &impl Serialize) -> Result<Reply, Problem> {
    let mut bytes = Vec::new();
    write(document, &mut bytes)?;
    Ok(content(JSON, bytes))
}

pub(super) fn write(document: &impl Serialize, bytes: &mut Vec<u8>) -> Result<(), Problem> {
    serde_json::to_writer(bytes, document)
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error))
}

pub(super) fn content(content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(body.into());
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

pub(super) fn text(text: impl Into<Bytes>) -> Reply {
    content(TEXT, text)
}

/// True if the client names this media type among those it accepts.
pub(super) fn accepts(head: &Parts, media_type: &str) -> bool {
    let lines = head.headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let mut ranges = lines.flat_map(|line| line.split(','));
    let essence = |range: &str| range.split(';').next().unwrap_or_default().trim().to_owned();
    ranges.any(|range| essence(range).eq_ignore_ascii_case(media_type))
}

pub(super) fn no_content() -> Reply {
    let mut reply = Response::new(Bytes::new());
    *reply.status_mut() = StatusCode::NO_CONTENT;
    reply
}
