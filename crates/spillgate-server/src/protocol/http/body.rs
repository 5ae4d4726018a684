use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

use super::problem::Problem;
use super::reply::JSON;

pub(super) async fn json(
    head: &Parts,
    body: Incoming,
    most: usize,
    time: Duration,
) -> Result<Bytes, Problem> {
    expect_type(content_type(&head.headers), JSON)?;
    read(body, most, time).await
}

/// JSON, or nothing.
pub(super) async fn optional_json(
    head: &Parts,
    body: Incoming,
    most: usize,
    time: Duration,
) -> Result<Bytes, Problem> {
    let body = read(body, most, time).await?;
    if !body.is_empty() {
        expect_type(content_type(&head.headers), JSON)?;
    }
    Ok(body)
}

pub(super) fn content_type(headers: &HeaderMap) -> &[u8] {
    headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default()
}

/// Refuses another media type: web pages may send some without a preflight request.
pub(super) fn expect_type(given: &[u8], expected: &str) -> Result<(), Problem> {
    let essence = given.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if essence.eq_ignore_ascii_case(expected.as_bytes()) {
        return Ok(());
    }
    let detail = match essence {
        [] => format!("missing Content-Type; send content-type: {expected}"),
        other => format!(
            "unsupported Content-Type {:?}; send content-type: {expected}",
            String::from_utf8_lossy(other)
        ),
    };
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
}

pub(super) async fn none(body: Incoming, time: Duration) -> Result<Bytes, Problem> {
    read(body, 0, time).await.map_err(|problem| match problem.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::bad_request("this route takes no body"),
        _ => problem,
    })
}

pub(super) async fn read(body: Incoming, most: usize, time: Duration) -> Result<Bytes, Problem> {
    let announced = body.size_hint().lower();
    if usize::try_from(announced).is_ok_and(|announced| announced <= most) {
        let read = timeout(time, collect(body, most)).await;
        return read.map_err(|_| {
            let detail =
                format!("timed out after {} s waiting for the request body", time.as_secs());
            Problem::new(StatusCode::REQUEST_TIMEOUT, detail)
        })?;
    }
    Err(too_large(most))
}

/// Most bodies come in one frame, which is not copied.
async fn collect(mut body: Incoming, most: usize) -> Result<Bytes, Problem> {
    let Some(first) = frame(&mut body).await? else { return Ok(Bytes::new()) };
    if first.len() > most {
        return Err(too_large(most));
    }
    let Some(mut next) = frame(&mut body).await? else { return Ok(first) };
    let mut all = BytesMut::from(first);
    loop {
        if all.len() + next.len() > most {
            return Err(too_large(most));
        }
        all.extend_from_slice(&next);
        match frame(&mut body).await? {
            Some(more) => next = more,
            None => return Ok(all.freeze()),
        }
    }
}

/// The next bytes; `None` at the end.
async fn frame(body: &mut Incoming) -> Result<Option<Bytes>, Problem> {
    while !body.is_end_stream() {
        let Some(frame) = body.frame().await else { break };
        let frame = frame.map_err(|error| {
            Problem::bad_request(format_args!("failed to read the request body: {error}"))
        })?;
        // Trailers say nothing here.
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

fn too_large(most: usize) -> Problem {
    let detail = format!("request body larger than {most} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}
