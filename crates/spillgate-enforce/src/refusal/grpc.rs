use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};

use super::{Reason, Refusal, Refuse};
use crate::headers::whole_millis;

/// Refuses as a gRPC service does: with a status and no message.
///
/// A denied call has the code `RESOURCE_EXHAUSTED`, a blocked one `PERMISSION_DENIED`, a banned
/// one either, by the status of its ban, one that names no host where it has to
/// `INVALID_ARGUMENT`. One that is shed, or about which the store could not decide or was not asked
/// for want of capacity, is `UNAVAILABLE`. If waiting helps, the
/// details hold a `google.rpc.RetryInfo`; `grpc-retry-pushback-ms` tells clients that retry
/// by themselves how long to wait, or not to.
///
/// For every body that can be empty, such as tonic's.
#[derive(Clone, Copy, Debug, Default)]
pub struct GrpcStatus;

impl<B: Default> Refuse<B> for GrpcStatus {
    fn refuse(&self, refusal: &Refusal<'_>) -> Response<B> {
        response(refusal, B::default())
    }
}

static STATUS: HeaderName = HeaderName::from_static("grpc-status");
static MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
static DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
static PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// A response that consists of what would be its trailers.
pub(super) fn response<B>(refusal: &Refusal<'_>, body: B) -> Response<B> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type(refusal));
    let code = code(refusal);
    headers.insert(&STATUS, HeaderValue::from(code));
    let message = refusal.detail();
    let pushback = match refusal.retry_after() {
        Some(time) => {
            let details = base64(&status(code, &message, time));
            if let Ok(details) = HeaderValue::try_from(details) {
                headers.insert(&DETAILS, details);
            }
            HeaderValue::from(whole_millis(time))
        }
        None => HeaderValue::from_static("-1"),
    };
    headers.insert(&PUSHBACK, pushback);
    // It needs no percent-encoding: see `Refusal::detail`.
    if let Ok(message) = HeaderValue::try_from(message) {
        headers.insert(&MESSAGE, message);
    }
    response
}

/// Browsers speak a dialect, and are answered in it.
fn content_type(refusal: &Refusal<'_>) -> HeaderValue {
    let asked = refusal.request().headers().get(CONTENT_TYPE);
    let web = asked.filter(|asked| asked.as_bytes().starts_with(b"application/grpc-web"));
    web.cloned().unwrap_or(HeaderValue::from_static("application/grpc"))
}

fn code(refusal: &Refusal<'_>) -> u16 {
    match refusal.reason() {
        Reason::Banned if refusal.status() == StatusCode::FORBIDDEN => 7,
        Reason::Banned => 8,
        Reason::Denied => 8,
        Reason::Blocked => 7,
        Reason::HostRequired => 3,
        Reason::Shed | Reason::StoreFailed | Reason::Overloaded => 14,
    }
}

/// A `google.rpc.Status` with a `google.rpc.RetryInfo`.
fn status(code: u16, message: &str, retry_delay: Duration) -> Vec<u8> {
    let mut duration = Vec::new();
    number(&mut duration, 1, retry_delay.as_secs());
    number(&mut duration, 2, retry_delay.subsec_nanos().into());
    let mut retry_info = Vec::new();
    bytes(&mut retry_info, 1, &duration);
    let mut any = Vec::new();
    bytes(&mut any, 1, b"type.googleapis.com/google.rpc.RetryInfo");
    bytes(&mut any, 2, &retry_info);
    let mut status = Vec::new();
    number(&mut status, 1, code.into());
    bytes(&mut status, 2, message.as_bytes());
    bytes(&mut status, 3, &any);
    status
}

/// A number as a field of a protobuf message.
fn number(message: &mut Vec<u8>, field: u8, value: u64) {
    message.push(field << 3);
    varint(message, value);
}

/// Bytes, a text or another message as a field of a protobuf message.
fn bytes(message: &mut Vec<u8>, field: u8, value: &[u8]) {
    message.push(field << 3 | 2);
    varint(message, value.len() as u64);
    message.extend_from_slice(value);
}

fn varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

/// Base64 without padding, as gRPC asks of binary headers.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let group = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..=chunk.len() {
            let index = group >> (18 - 6 * digit) & 63;
            text.push(char::from(DIGITS[index as usize]));
        }
    }
    text
}
