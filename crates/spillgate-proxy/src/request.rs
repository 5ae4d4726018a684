//! Validates requests, and prepares their heads for upstreams.

use std::net::IpAddr;

use http::header::{CONNECTION, HeaderName, HeaderValue};
use http::header::{CONTENT_LENGTH, COOKIE, EXPECT, FORWARDED, HOST, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, Method, Request, StatusCode, Uri, Version};

use super::headers::{add_via, has_word, strip, words};
use super::host;
use super::problem::Problem;
use crate::ClientLimits;

static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
static X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
static X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
/// Removed unless the peer is trusted.
static OTHERS: [HeaderName; 3] = [
    HeaderName::from_static("x-forwarded-port"),
    HeaderName::from_static("x-forwarded-prefix"),
    HeaderName::from_static("x-forwarded-server"),
];

/// The peer of a connection, for `X-Forwarded-*`.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) address: IpAddr,
    /// The address as a header value.
    text: HeaderValue,
    scheme: HeaderValue,
}

impl Sender {
    pub(super) fn new(address: IpAddr, is_secure: bool) -> Option<Self> {
        let address = address.to_canonical();
        let text = HeaderValue::try_from(address.to_string()).ok()?;
        let scheme = HeaderValue::from_static(if is_secure { "https" } else { "http" });
        Some(Self { address, text, scheme })
    }
}

/// Refuses a request that must not reach an upstream.
pub(super) fn validate<B>(request: &Request<B>, limits: &ClientLimits) -> Result<(), Problem> {
    let (method, uri, headers) = (request.method(), request.uri(), request.headers());
    if field_count(headers) > limits.max_headers {
        return Err(Problem::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            format_args!("too many headers; send at most {}", limits.max_headers),
        ));
    }
    // Methods are case-sensitive, but some servers ignore that.
    let is = |other: &Method| method.as_str().eq_ignore_ascii_case(other.as_str());
    if is(&Method::CONNECT) || is(&Method::TRACE) {
        return Err(Problem::method_not_allowed(
            format_args!("{method} is not forwarded"),
            "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT",
        ));
    }
    validate_target(method, uri)?;
    host::validate(uri, request.version(), headers)?;
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_one = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    match (encodings.next(), encodings.next()) {
        (None, _) => {}
        (Some(encoding), None) if is_one(encoding) => {}
        _ => {
            return Err(Problem::bad_request(
                "unsupported Transfer-Encoding; send \"chunked\" alone",
            ));
        }
    }
    if words(headers, &CONTENT_LENGTH).count() > 1 {
        return Err(Problem::bad_request("duplicate Content-Length"));
    }
    Ok(())
}

/// Header fields. HTTP/2 may split a cookie, which counts as one.
fn field_count(headers: &HeaderMap) -> usize {
    headers.len() - headers.get_all(COOKIE).iter().count().saturating_sub(1)
}

fn validate_target(method: &Method, uri: &Uri) -> Result<(), Problem> {
    let is_absolute = uri.scheme().is_some();
    let path = uri.path();
    let is_right = match path {
        "*" => *method == Method::OPTIONS && !is_absolute,
        path => path.starts_with('/') || (is_absolute && path.is_empty()),
    };
    let is_known = uri.scheme_str().is_none_or(|scheme| ["http", "https"].contains(&scheme));
    if !is_right || !is_known || (uri.authority().is_some() && !is_absolute) {
        return Err(Problem::bad_request("invalid request target; send a path or an http URL"));
    }
    Ok(())
}

/// True if the request offers to switch to another protocol than HTTP/2, which is known in advance or
/// negotiated by ALPN.
pub(super) fn may_switch(headers: &HeaderMap) -> bool {
    let mut wanted = headers.get_all(UPGRADE).iter();
    wanted.any(|wanted| !wanted.as_bytes().eq_ignore_ascii_case(b"h2c"))
}

/// The protocol to upgrade to, if there is exactly one that is not HTTP: requests over an upgraded
/// connection would bypass the limits.
pub(super) fn upgrade(head: &Parts) -> Option<HeaderValue> {
    let headers = &head.headers;
    let mut wanted = words(headers, &UPGRADE);
    let (Some(only), None) = (wanted.next(), wanted.next()) else { return None };
    let is_http = ["h2c", "http/", "tls/"].iter().any(|name| {
        only.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name.as_bytes()))
    });
    let is_asked =
        head.version == Version::HTTP_11 && has_word(headers, &CONNECTION, "upgrade") && !is_http;
    headers.get(UPGRADE).filter(|_| is_asked).cloned()
}

/// Prepares the head of a request for an upstream, except for what depends on the upstream. Forwarding
/// headers of a trusted peer are kept. Adds `Via` if configured. Returns the hop-by-hop headers, which
/// must be no trailers either.
pub(super) fn prepare(
    head: &mut Parts,
    sender: &Sender,
    is_trusted: bool,
    upgrade: Option<HeaderValue>,
    via: bool,
) -> Vec<HeaderName> {
    let headers = &mut head.headers;
    let named = strip(headers);
    // hyper answers it when the body is polled.
    headers.remove(EXPECT);
    if let Some(wanted) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, wanted);
    }
    if head.version == Version::HTTP_2 && headers.contains_key(COOKIE) {
        // One header in HTTP/1.1.
        join(headers, &COOKIE, "; ", None);
    }
    set_forwarded(headers, sender, is_trusted);
    if via {
        add_via(headers, head.version);
    }
    head.version = Version::HTTP_11;
    named
}

fn set_forwarded(headers: &mut HeaderMap, sender: &Sender, is_trusted: bool) {
    let host = headers.get(HOST).cloned();
    if !is_trusted {
        for name in &OTHERS {
            headers.remove(name);
        }
        headers.remove(FORWARDED);
        let others: Vec<_> = headers.keys().filter(|name| is_mistakable(name)).cloned().collect();
        for name in others {
            headers.remove(name);
        }
        headers.insert(&X_FORWARDED_FOR, sender.text.clone());
        headers.insert(&X_REAL_IP, sender.text.clone());
        headers.insert(&X_FORWARDED_PROTO, sender.scheme.clone());
        match host {
            Some(host) => headers.insert(&X_FORWARDED_HOST, host),
            None => headers.remove(&X_FORWARDED_HOST),
        };
        return;
    }
    join(headers, &X_FORWARDED_FOR, ", ", Some(sender.text.as_bytes()));
    if headers.contains_key(FORWARDED) {
        let element = match sender.address {
            IpAddr::V4(address) => format!("for={address}"),
            IpAddr::V6(address) => format!("for=\"[{address}]\""),
        };
        join(headers, &FORWARDED, ", ", Some(element.as_bytes()));
    }
    headers.entry(&X_FORWARDED_PROTO).or_insert_with(|| sender.scheme.clone());
    if let Some(host) = host {
        headers.entry(&X_FORWARDED_HOST).or_insert(host);
    }
}

/// True of a name that CGI, which treats `-` as `_`, takes for a forwarding header, for framing, or for
/// the proxy to use (`HTTP_PROXY`).
fn is_mistakable(name: &HeaderName) -> bool {
    let name = name.as_str();
    name == "proxy"
        || name.contains('_') && {
            let meant = name.replace('_', "-");
            let others = [&X_REAL_IP, &CONTENT_LENGTH, &TRANSFER_ENCODING];
            meant.starts_with("x-forwarded-")
                || others.iter().any(|other| **other == meant.as_str())
        }
}

/// Joins the lines of a list header, since some servers read only the first, and appends an element.
fn join(headers: &mut HeaderMap, name: &HeaderName, between: &str, element: Option<&[u8]>) {
    let lines = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let list = lines.chain(element).collect::<Vec<_>>().join(between.as_bytes());
    if let Ok(list) = HeaderValue::try_from(list) {
        headers.insert(name, list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(peer: &str, is_trusted: bool, lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut request = Request::new(());
        *request.version_mut() = Version::HTTP_2;
        *request.uri_mut() = Uri::from_static("https://app.example/path?query");
        for (name, value) in lines {
            request.headers_mut().append(*name, HeaderValue::from_static(value));
        }
        let sender = Sender::new(peer.parse().unwrap(), true).unwrap();
        host::to_origin_form(&mut request);
        let mut head = request.into_parts().0;
        prepare(&mut head, &sender, is_trusted, None, false);
        assert_eq!(head.uri, "/path?query");
        assert_eq!(head.headers[HOST], "app.example");
        head.headers
    }

    const SENT: [(&str, &str); 7] = [
        ("x-forwarded-for", "192.0.2.1"),
        ("x-forwarded-for", "192.0.2.2"),
        ("x-forwarded-proto", "http"),
        ("forwarded", "for=192.0.2.2"),
        ("x-real-ip", "192.0.2.1"),
        ("x_forwarded-for", "192.0.2.1"),
        ("x_other", "1"),
    ];

    #[test]
    fn forwarding_headers_of_untrusted_peers_are_replaced() {
        let headers = prepared("::ffff:203.0.113.7", false, &SENT);
        assert_eq!(headers.get_all(&X_FORWARDED_FOR).iter().count(), 1);
        assert_eq!(headers[&X_FORWARDED_FOR], "203.0.113.7");
        assert_eq!(headers[&X_REAL_IP], "203.0.113.7");
        assert_eq!(headers[&X_FORWARDED_PROTO], "https");
        assert_eq!(headers[&X_FORWARDED_HOST], "app.example");
        assert!(!headers.contains_key(FORWARDED) && !headers.contains_key("x_forwarded-for"));
        assert_eq!(headers["x_other"], "1");
    }

    #[test]
    fn forwarding_headers_of_trusted_peers_are_extended() {
        let headers = prepared("2001:db8::1", true, &SENT);
        assert_eq!(headers[&X_FORWARDED_FOR], "192.0.2.1, 192.0.2.2, 2001:db8::1");
        assert_eq!(headers[FORWARDED], "for=192.0.2.2, for=\"[2001:db8::1]\"");
        assert_eq!(headers[&X_FORWARDED_PROTO], "http");
        assert_eq!(headers[&X_REAL_IP], "192.0.2.1");
    }

    #[test]
    fn split_cookies_are_joined() {
        let headers = prepared("192.0.2.1", false, &[("cookie", "a=1"), ("cookie", "b=2")]);
        assert_eq!(headers.get_all(COOKIE).iter().collect::<Vec<_>>(), ["a=1; b=2"]);
    }
}
