use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;

use super::problem::Problem;

pub(super) type Reply = Response<Full<Bytes>>;

/// A 200 with a JSON document.
pub(super) fn json(document: &impl Serialize) -> Result<Reply, Problem> {
    // Answers are short.
    let mut bytes = Vec::with_capacity(256);
    serde_json::to_writer(&mut bytes, document)
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error))?;
    Ok(content("application/json", bytes))
}

/// A 200 with a content of this type.
pub(super) fn content(content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    // What is true now is not true for long.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// A 200 with a text.
pub(super) fn text(text: impl Into<Bytes>) -> Reply {
    content("text/plain; charset=utf-8", text)
}

/// A 204.
pub(super) fn nothing() -> Reply {
    let mut reply = Response::new(Full::default());
    *reply.status_mut() = StatusCode::NO_CONTENT;
    reply
}
