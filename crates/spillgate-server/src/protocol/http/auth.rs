//! `/auth`: decides a request that a proxy describes in headers.

use std::net::IpAddr;

use http::header::{CACHE_CONTROL, CONTENT_LENGTH, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, Uri};
use spillgate_policy::RequestView;

use super::access::{self, only};
use super::parameters::query;
use super::problem::Problem;
use super::reply::Reply;
use super::routes::{DENY, Level};
use crate::App;

pub(super) const PATH: &str = "/auth";

/// The status before `deny` replaces it.
static STATUS: HeaderName = HeaderName::from_static("x-spillgate-status");

/// Headers in which proxies describe a request. One family counts at a time, and must be complete:
/// what the proxy does not set, its client may.
struct Family {
    uri: HeaderName,
    method: HeaderName,
    host: HeaderName,
    client: HeaderName,
    /// True if the proxy appends the client to a list.
    appends: bool,
}

pub(super) fn described_by() -> impl Iterator<Item = &'static HeaderName> {
    let names =
        |family: &'static Family| [&family.uri, &family.method, &family.host, &family.client];
    [&FORWARDED, &ORIGINAL].into_iter().flat_map(names)
}

/// Set by Traefik and Caddy.
static FORWARDED: Family = Family {
    uri: HeaderName::from_static("x-forwarded-uri"),
    method: HeaderName::from_static("x-forwarded-method"),
    host: HeaderName::from_static("x-forwarded-host"),
    client: HeaderName::from_static("x-forwarded-for"),
    appends: true,
};

/// Set by nginx, as configured.
static ORIGINAL: Family = Family {
    uri: HeaderName::from_static("x-original-uri"),
    method: HeaderName::from_static("x-original-method"),
    host: HeaderName::from_static("x-original-host"),
    client: HeaderName::from_static("x-real-ip"),
    appends: false,
};

/// Allows or refuses a request. A proxy takes an unexpected status for a failure of this server,
/// and may fail open; so invalid requests are refused like denied ones.
pub(super) async fn answer(app: &App, peer: Option<IpAddr>, head: &Parts) -> Reply {
    match decide(app, peer, head).await {
        Ok(reply) => for_proxy(head.uri.query(), reply),
        Err(problem) => refuse(head.uri.query(), problem),
    }
}

pub(super) fn refuse(query: Option<&str>, problem: Problem) -> Reply {
    for_proxy(query, problem.reply())
}

pub(super) fn takes_from(app: &App, peer: Option<IpAddr>) -> bool {
    let is_trusted = |peer| app.gate().policy().trusts(peer) || app.access().takes_auth_from(peer);
    peer.is_some_and(is_trusted)
}

pub(super) fn has_body(headers: &HeaderMap) -> bool {
    let lengths = headers.get_all(CONTENT_LENGTH);
    headers.contains_key(TRANSFER_ENCODING) || lengths.iter().any(|length| length != "0")
}

async fn decide(app: &App, peer: Option<IpAddr>, head: &Parts) -> Result<Reply, Problem> {
    access::admit(&app.access(), Level::Proxy, head)?;
    if let Some((_, deny)) = query(&[DENY], head.uri.query())?.first() {
        denial(deny)?;
    }
    if has_body(&head.headers) {
        return Err(Problem::bad_request(
            "unexpected request body; configure the proxy to send no body, and no Content-Length",
        ));
    }
    let original = Original::new(app, peer, head)?;
    let uri = Uri::default();
    let request = RequestView::new(&original.method, &uri, &head.headers, Some(original.peer))
        .with_path(original.path)
        .with_host(Some(original.host));
    Ok(app.enforcer().verdict(request).await)
}

/// The reply for a proxy, with the status of `deny` if it refuses.
fn for_proxy(query: Option<&str>, mut reply: Reply) -> Reply {
    let status = reply.status();
    reply.headers_mut().insert(&STATUS, HeaderValue::from(status.as_u16()));
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if !status.is_success() {
        // Even if the query is invalid otherwise.
        let pairs = query.unwrap_or_default().split('&');
        let mut denials = pairs.filter_map(|pair| denial(pair.strip_prefix("deny=")?).ok());
        *reply.status_mut() = denials.next().unwrap_or(status);
    }
    reply
}

struct Original<'h> {
    method: Method,
    path: &'h str,
    host: &'h str,
    peer: IpAddr,
}

impl<'h> Original<'h> {
    fn new(app: &App, proxy: Option<IpAddr>, head: &'h Parts) -> Result<Self, Problem> {
        let Some(proxy) = proxy.filter(|proxy| takes_from(app, Some(*proxy))) else {
            return Err(not_a_proxy(proxy));
        };
        let headers = &head.headers;
        let family = match (
            headers.contains_key(&FORWARDED.uri),
            headers.contains_key(&ORIGINAL.uri),
        ) {
            (true, false) => &FORWARDED,
            (false, true) => &ORIGINAL,
            (false, false) => {
                return Err(Problem::bad_request(format_args!(
                    "missing description of the original request; configure the proxy to set {} or {}",
                    FORWARDED.uri, ORIGINAL.uri
                )));
            }
            // One of them is the client's, and it is unknown which.
            (true, true) => {
                return Err(Problem::bad_request(format_args!(
                    "both {} and {} are present; configure the proxy to remove the one that it does not set",
                    FORWARDED.uri, ORIGINAL.uri
                )));
            }
        };
        let value = |name: &HeaderName| {
            let missing = || {
                Problem::bad_request(format_args!("missing {name}; configure the proxy to set it"))
            };
            only(headers, name)?.ok_or_else(missing)
        };
        let (uri, method) = (value(&family.uri)?, value(&family.method)?);
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| {
            Problem::bad_request(format_args!(
                "{} is {method:?}, which is not an HTTP method",
                family.method
            ))
        })?;
        let host = value(&family.host)?;
        // A policy that trusts the proxy finds the client itself. Otherwise it is the proxy's peer.
        let peer =
            if app.gate().policy().trusts(proxy) { proxy } else { family.client(headers)? };
        // Services treat fragments differently, and no honest client sends one.
        if uri.contains('#') {
            return Err(Problem::bad_request("the URI has a fragment"));
        }
        Ok(Self { method, path: path(uri), host, peer })
    }
}

impl Family {
    /// The proxy's peer.
    fn client(&self, headers: &HeaderMap) -> Result<IpAddr, Problem> {
        let name = &self.client;
        let value = if self.appends {
            let mut lines = headers.get_all(name).iter();
            lines.next_back().and_then(|line| line.to_str().ok()?.rsplit(',').next())
        } else {
            only(headers, name)?
        };
        value.and_then(|value| value.trim().parse().ok()).ok_or_else(|| {
            Problem::bad_request(format_args!(
                "missing or invalid {name}; configure the proxy to set it to its client's address"
            ))
        })
    }
}

fn not_a_proxy(peer: Option<IpAddr>) -> Problem {
    let peer = peer.map_or("an unknown address".to_owned(), |peer| peer.to_canonical().to_string());
    Problem::forbidden(format_args!(
        "{peer} is not a trusted proxy; if it is one, add it to auth-allow in [server], or to \
         trusted-proxies in [identity]"
    ))
}

/// The path of a URI, which may be in absolute-form.
fn path(uri: &str) -> &str {
    let path = uri.split('?').next().unwrap_or_default();
    match path.split_once("://") {
        Some((_, rest)) if !path.starts_with('/') => {
            rest.find('/').and_then(|slash| rest.get(slash..)).unwrap_or("/")
        }
        _ => path,
    }
}

/// The status of a refusal: proxies know few.
fn denial(text: &str) -> Result<StatusCode, Problem> {
    // A proxy takes a 5xx for a failure of this server, and may fail open.
    let number = text.parse().ok().filter(|status| (400..500).contains(status));
    number.and_then(|number| StatusCode::from_u16(number).ok()).ok_or_else(|| {
        Problem::bad_request(format_args!("invalid deny {text:?}; use a status such as 403"))
    })
}
