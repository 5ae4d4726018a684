//! Whom a request is for.

use http::header::{HOST, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Request, Uri, Version};

use crate::problem::Problem;

/// Says what is wrong with a request that names no host, or two.
pub(super) fn judge(uri: &Uri, version: Version, headers: &HeaderMap) -> Result<(), Problem> {
    let mut hosts = headers.get_all(HOST).iter().map(HeaderValue::as_bytes);
    let (host, another) = (hosts.next(), hosts.next());
    if another.is_some() {
        return Err(Problem::bad_request("Host must be there once"));
    }
    let authority = uri.authority().map(|authority| authority.as_str().as_bytes());
    if ![host, authority].into_iter().flatten().all(is_host) {
        let detail = "Host must be a name or an address, and perhaps a port";
        return Err(Problem::bad_request(detail));
    }
    match (host, authority) {
        (None, None) if version != Version::HTTP_10 => Err(Problem::bad_request("Host is missing")),
        // RFC 9112, section 3.2.2: also beside a target in absolute-form.
        (None, Some(_)) if version == Version::HTTP_11 => {
            Err(Problem::bad_request("Host is missing"))
        }
        (Some(host), Some(authority)) if !is_same(host, authority, uri.scheme()) => {
            Err(Problem::bad_request("Host and the target of the request must be the same"))
        }
        _ => Ok(()),
    }
}

/// True of a name or an address, the latter in brackets if it has colons, and perhaps a port.
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

/// True if two texts name the same host and port. Names are compared without regard to case,
/// and the port that a scheme has anyway may be left out.
fn is_same(one: &[u8], other: &[u8], scheme: Option<&Scheme>) -> bool {
    let port: &[u8] = if scheme == Some(&Scheme::HTTPS) { b":443" } else { b":80" };
    let bare = |host| <[u8]>::strip_suffix(host, port).unwrap_or(host);
    bare(one).eq_ignore_ascii_case(bare(other))
}

/// Makes the target of a request origin-form, and `Host` what the target says.
pub(super) fn to_origin_form<B>(request: &mut Request<B>) {
    let Some(authority) = request.uri().authority().cloned() else { return };
    set(request.headers_mut(), &authority);
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.unwrap_or(PathAndQuery::from_static("/")).into();
}

/// Names the host that is asked.
pub(super) fn set(headers: &mut HeaderMap, authority: &Authority) {
    if let Ok(host) = HeaderValue::try_from(authority.as_str()) {
        headers.insert(HOST, host);
    }
}
