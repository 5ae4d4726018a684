//! The host of a request.

use http::header::{HOST, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Request, Uri, Version};

use crate::problem::Problem;

/// Refuses a request without a host, or with two.
pub(super) fn validate(uri: &Uri, version: Version, headers: &HeaderMap) -> Result<(), Problem> {
    let mut hosts = headers.get_all(HOST).iter().map(HeaderValue::as_bytes);
    let (host, another) = (hosts.next(), hosts.next());
    if another.is_some() {
        return Err(Problem::bad_request("duplicate Host"));
    }
    let authority = uri.authority().map(|authority| authority.as_str().as_bytes());
    if ![host, authority].into_iter().flatten().all(is_host) {
        let detail = "invalid Host; send a name or an address, with an optional port";
        return Err(Problem::bad_request(detail));
    }
    match (host, authority) {
        (None, None) if version != Version::HTTP_10 => Err(Problem::bad_request("missing Host")),
        // RFC 9112, section 3.2.2: also with a target in absolute-form.
        (None, Some(_)) if version == Version::HTTP_11 => Err(Problem::bad_request("missing Host")),
        (Some(host), Some(authority)) if !is_same(host, authority, uri.scheme()) => {
            Err(Problem::bad_request("Host differs from the authority of the request target"))
        }
        _ => Ok(()),
    }
}

/// True of a name or an address (IPv6 in brackets), with an optional port.
fn is_host(text: &[u8]) -> bool {
    let find = |wanted| text.iter().position(|byte| *byte == wanted);
    let (end, marks): (_, &[u8]) = match text.first() {
        Some(b'[') => (find(b']').map(|bracket| bracket + 1), b"[:.]"),
        _ => (find(b':').or(Some(text.len())), b"-._~%"),
    };
    let Some((name, port)) = end.and_then(|end| text.split_at_checked(end)) else { return false };
    let is_port = match port.split_first() {
        None => true,
        Some((colon, digits)) => *colon == b':' && digits.iter().all(u8::is_ascii_digit),
    };
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || marks.contains(byte);
    is_port && !name.is_empty() && name.iter().all(is_plain)
}

/// True if both are the same host and port. Names are case-insensitive, and the default port of the
/// scheme is optional.
fn is_same(one: &[u8], other: &[u8], scheme: Option<&Scheme>) -> bool {
    let port: &[u8] = if scheme == Some(&Scheme::HTTPS) { b":443" } else { b":80" };
    let bare = |host| <[u8]>::strip_suffix(host, port).unwrap_or(host);
    bare(one).eq_ignore_ascii_case(bare(other))
}

/// Makes the target of a request origin-form, and moves its authority to `Host`.
pub(super) fn to_origin_form<B>(request: &mut Request<B>) {
    let Some(authority) = request.uri().authority().cloned() else { return };
    set(request.headers_mut(), &authority);
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.unwrap_or(PathAndQuery::from_static("/")).into();
}

pub(super) fn set(headers: &mut HeaderMap, authority: &Authority) {
    if let Ok(host) = HeaderValue::try_from(authority.as_str()) {
        headers.insert(HOST, host);
    }
}
