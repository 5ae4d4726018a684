//! `/auth`: may the request pass that a proxy describes in headers?

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

/// What was decided, in the statuses that clients know, whatever a proxy makes of it.
static STATUS: HeaderName = HeaderName::from_static("x-spillgate-status");

/// Headers in which proxies describe a request. Only one set of them counts at a time, and
/// none of it may be missing: what the proxy does not write, its client may.
struct Family {
    uri: HeaderName,
    method: HeaderName,
    host: HeaderName,
    client: HeaderName,
    /// The client is the last of a list, to which the proxy appends.
    appends: bool,
}

/// All headers in which proxies describe a request.
pub(super) fn described_by() -> impl Iterator<Item = &'static HeaderName> {
    let names =
        |family: &'static Family| [&family.uri, &family.method, &family.host, &family.client];
    [&FORWARDED, &ORIGINAL].into_iter().flat_map(names)
}

/// What Traefik and Caddy write.
static FORWARDED: Family = Family {
    uri: HeaderName::from_static("x-forwarded-uri"),
    method: HeaderName::from_static("x-forwarded-method"),
    host: HeaderName::from_static("x-forwarded-host"),
    client: HeaderName::from_static("x-forwarded-for"),
    appends: true,
};

/// What nginx is told to write.
static ORIGINAL: Family = Family {
    uri: HeaderName::from_static("x-original-uri"),
    method: HeaderName::from_static("x-original-method"),
    host: HeaderName::from_static("x-original-host"),
    client: HeaderName::from_static("x-real-ip"),
    appends: false,
};

/// Lets a request pass or refuses it. A proxy takes a status that it does not expect for a failure
/// of this server, and may be told to go ahead then; so whatever its client makes it send that
/// cannot be understood is refused like all that is denied.
pub(super) async fn answer(app: &App, peer: Option<IpAddr>, head: &Parts) -> Reply {
    match decide(app, peer, head).await {
        Ok(reply) => for_proxy(head.uri.query(), reply),
        Err(problem) => refuse(head.uri.query(), problem),
    }
}

/// Refuses a request, for whatever reason.
pub(super) fn refuse(query: Option<&str>, problem: Problem) -> Reply {
    for_proxy(query, problem.reply())
}

/// True if this is a proxy that may ask about its clients.
pub(super) fn takes_from(app: &App, peer: Option<IpAddr>) -> bool {
    let is_trusted = |peer| app.gate().policy().trusts(peer) || app.access().takes_auth_from(peer);
    peer.is_some_and(is_trusted)
}

/// True if a body follows the head: a description of a request has none.
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

/// The reply as a proxy is to see it.
fn for_proxy(query: Option<&str>, mut reply: Reply) -> Reply {
    let status = reply.status();
    reply.headers_mut().insert(&STATUS, HeaderValue::from(status.as_u16()));
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if !status.is_success() {
        // Whatever else is wrong with the query.
        let pairs = query.unwrap_or_default().split('&');
        let mut denials = pairs.filter_map(|pair| denial(pair.strip_prefix("deny=")?).ok());
        *reply.status_mut() = denials.next().unwrap_or(status);
    }
    reply
}

/// The request that a proxy asks about.
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
            // One of them is the client's own, and it cannot be told which.
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
        // A policy that trusts the proxy finds the client itself, as behind any proxy. If it
        // does not, all that counts is whom the proxy was called by.
        let peer =
            if app.gate().policy().trusts(proxy) { proxy } else { family.client(headers)? };
        // Services differ in what they make of one, and no client that means well sends it.
        if uri.contains('#') {
            return Err(Problem::bad_request("the URI has a fragment"));
        }
        Ok(Self { method, path: path(uri), host, peer })
    }
}

impl Family {
    /// Whom the proxy was called by.
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

/// The path of a URI, which may be a whole one.
fn path(uri: &str) -> &str {
    let path = uri.split('?').next().unwrap_or_default();
    match path.split_once("://") {
        Some((_, rest)) if !path.starts_with('/') => {
            rest.find('/').and_then(|slash| rest.get(slash..)).unwrap_or("/")
        }
        _ => path,
    }
}

/// The status that a refusal is to have: proxies know few of them.
fn denial(text: &str) -> Result<StatusCode, Problem> {
    // A proxy takes a 5xx for a failure of this server, and may go ahead.
    let number = text.parse().ok().filter(|status| (400..500).contains(status));
    number.and_then(|number| StatusCode::from_u16(number).ok()).ok_or_else(|| {
        Problem::bad_request(format_args!("invalid deny {text:?}; use a status such as 403"))
    })
}
