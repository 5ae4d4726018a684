//! Validates responses, and prepares their heads for clients.

use http::header::{CONNECTION, CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use http::response::Parts;
use http::{Response, StatusCode, Version};

use super::failure::Failure;
use super::headers::{MAX_FIELDS, add_via, strip};
use super::trailers::TrailerFilter;

/// Refuses a response whose framing is ambiguous, or whose head is too large. The same rules hold
/// for responses to `HEAD`, since caches rely on them.
pub(super) fn validate<B>(response: &Response<B>) -> Result<(), Failure> {
    let headers = response.headers();
    if headers.len() > MAX_FIELDS {
        return Err(Failure::Ambiguous("too many headers"));
    }
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    let encoding = encodings.next();
    if encoding.is_some() && headers.contains_key(CONTENT_LENGTH) {
        return Err(Failure::Ambiguous("both Content-Length and Transfer-Encoding"));
    }
    if encoding.is_some() && response.version() != Version::HTTP_11 {
        return Err(Failure::Ambiguous("Transfer-Encoding outside HTTP/1.1"));
    }
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let length = lengths.next();
    if lengths.next().is_some() {
        return Err(Failure::Ambiguous("duplicate Content-Length"));
    }
    if length.is_some_and(|length| !is_length(length)) {
        return Err(Failure::Ambiguous("invalid Content-Length"));
    }
    let is_chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    if encodings.next().is_some() || encoding.is_some_and(|encoding| !is_chunked(encoding)) {
        return Err(Failure::Ambiguous("unsupported Transfer-Encoding"));
    }
    Ok(())
}

/// True of a decimal number of bytes without a sign.
fn is_length(value: &HeaderValue) -> bool {
    let digits = value.to_str().unwrap_or_default();
    digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u64>().is_ok()
}

/// Prepares the head of a response for the client, with `Via` if configured. Returns the filter of
/// its trailers.
pub(super) fn prepare(head: &mut Parts, via: bool) -> TrailerFilter {
    let headers = &mut head.headers;
    let upgrade = match head.status {
        StatusCode::SWITCHING_PROTOCOLS => headers.remove(UPGRADE),
        _ => None,
    };
    let trailers = TrailerFilter::of_response(strip(headers));
    trailers.announce(headers);
    if head.status.is_informational() || head.status == StatusCode::NO_CONTENT {
        // No content, hence no length (RFC 9110, section 8.6).
        headers.remove(CONTENT_LENGTH);
    }
    if let Some(protocol) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, protocol);
    }
    if via {
        add_via(headers, head.version);
    }
    head.version = Version::HTTP_11;
    trailers
}
