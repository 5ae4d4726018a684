//! What of a response is passed on.

use http::header::{CONNECTION, CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use http::response::Parts;
use http::{HeaderMap, StatusCode, Version};

use super::failure::Failure;
use super::headers::{add_via, strip, words};

/// Says what is wrong with a response whose end is not clear.
pub(super) fn judge(headers: &HeaderMap) -> Result<(), Failure> {
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    let encoding = encodings.next();
    if encoding.is_some() && headers.contains_key(CONTENT_LENGTH) {
        return Err(Failure::Ambiguous("Content-Length beside Transfer-Encoding"));
    }
    if words(headers, &CONTENT_LENGTH).nth(1).is_some() {
        return Err(Failure::Ambiguous("several Content-Length"));
    }
    let is_chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    if encodings.next().is_some() || encoding.is_some_and(|encoding| !is_chunked(encoding)) {
        return Err(Failure::Ambiguous("Transfer-Encoding is not \"chunked\" alone"));
    }
    Ok(())
}

/// Makes the head of a response what a client is to see.
pub(super) fn prepare(head: &mut Parts) {
    let headers = &mut head.headers;
    let upgrade = match head.status {
        StatusCode::SWITCHING_PROTOCOLS => headers.remove(UPGRADE),
        _ => None,
    };
    strip(headers);
    if let Some(protocol) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, protocol);
    }
    add_via(headers, head.version);
    head.version = Version::HTTP_11;
}
