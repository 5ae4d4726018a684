//! Which trailers are forwarded. Some servers merge them into the headers, so a trailer must not
//! carry what a header must not.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue, TRAILER};
use hyper::body::Frame;
use spillgate_policy::Gate;
use spillgate_policy::store::Store;

use super::failure::Failure;
use super::headers::{MAX_FIELDS, words};

/// Fields of the head alone (RFC 9110, section 6.5.1), hop-by-hop fields, and what proxies say about
/// a client. `_` counts as `-`.
static FORBIDDEN: [&str; 43] = [
    // Framing and content.
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    // Routing.
    "host",
    "via",
    // Authentication and origin.
    "authentication-info",
    "authorization",
    "cookie",
    "set-cookie",
    "www-authenticate",
    "cf-connecting-ip",
    "x-original-host",
    "x-original-method",
    "x-original-uri",
    "x-original-url",
    "x-rewrite-url",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    // Request modifiers.
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "expect",
    "max-forwards",
    "origin",
    "pragma",
    "range",
    // Response control.
    "age",
    "date",
    "expires",
    "location",
    "retry-after",
    "vary",
    "warning",
];

static FORBIDDEN_PREFIXES: [&str; 5] = ["if-", "proxy", "ratelimit", "sec-", "x-ratelimit-"];

/// Names that contain one of these identify a client.
static FORBIDDEN_PARTS: [&str; 6] =
    ["forwarded", "client-ip", "clientip", "real-ip", "user-ip", "external-address"];

/// Filters the trailers of one message.
pub(super) struct TrailerFilter {
    /// Named by `Connection`, hence hop-by-hop.
    named: Vec<HeaderName>,
    /// The policy, whose headers must not arrive late. `None` for a response.
    policy: Option<Arc<dyn PolicyView>>,
    max: usize,
}

impl TrailerFilter {
    /// For a request, with at most so many fields and none that the policy reads.
    pub(super) fn of_request(
        named: Vec<HeaderName>,
        policy: &Arc<dyn PolicyView>,
        max: usize,
    ) -> Self {
        Self { named, policy: Some(Arc::clone(policy)), max }
    }

    pub(super) const fn of_response(named: Vec<HeaderName>) -> Self {
        Self { named, policy: None, max: MAX_FIELDS }
    }

    /// Reduces `Trailer` to those that are forwarded.
    pub(super) fn announce(&self, headers: &mut HeaderMap) {
        if !headers.contains_key(TRAILER) {
            return;
        }
        let announced =
            words(headers, &TRAILER).filter_map(|name| HeaderName::from_bytes(name).ok());
        let passing: Vec<_> = announced.filter(|name| self.allows(name)).collect();
        let passing = passing.iter().map(HeaderName::as_str).collect::<Vec<_>>().join(", ");
        match HeaderValue::try_from(passing) {
            Ok(passing) if !passing.is_empty() => headers.insert(TRAILER, passing),
            _ => headers.remove(TRAILER),
        };
    }

    pub(super) fn filter_frame(
        &self,
        polled: Poll<Option<Result<Frame<Bytes>, Failure>>>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        match polled {
            Poll::Ready(Some(Ok(frame))) => {
                let trailers = match frame.into_trailers() {
                    Ok(trailers) => trailers,
                    Err(data) => return Poll::Ready(Some(Ok(data))),
                };
                let passed = self.filter_fields(trailers).transpose();
                Poll::Ready(passed.map(|trailers| trailers.map(Frame::trailers)))
            }
            other => other,
        }
    }

    fn filter_fields(&self, mut trailers: HeaderMap) -> Result<Option<HeaderMap>, Failure> {
        if trailers.len() > self.max {
            return Err(match &self.policy {
                Some(_) => Failure::ClientBroke,
                None => Failure::Ambiguous("too many trailers"),
            });
        }
        let forbidden: Vec<_> =
            trailers.keys().filter(|name| !self.allows(name)).cloned().collect();
        for name in forbidden {
            trailers.remove(name);
        }
        Ok(Some(trailers).filter(|trailers| !trailers.is_empty()))
    }

    fn allows(&self, name: &HeaderName) -> bool {
        let meant = dashed(name);
        let is_read =
            |policy: &Arc<dyn PolicyView>| policy.reads(&|header| dashed(header) == meant);
        !FORBIDDEN.contains(&&*meant)
            && !FORBIDDEN_PREFIXES.iter().any(|prefix| meant.starts_with(prefix))
            && !FORBIDDEN_PARTS.iter().any(|part| meant.contains(part))
            && !self.named.iter().any(|named| dashed(named) == meant)
            && !self.policy.as_ref().is_some_and(is_read)
    }
}

/// A name as servers see it that treat `_` as `-`.
fn dashed(name: &HeaderName) -> Cow<'_, str> {
    let name = name.as_str();
    if name.contains('_') { name.replace('_', "-").into() } else { name.into() }
}

impl fmt::Debug for TrailerFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrailerFilter").field("named", &self.named).finish_non_exhaustive()
    }
}

/// What forwarding asks of the policy in force, whatever its store.
pub(super) trait PolicyView: Send + Sync {
    /// True if the proxy in front of this one at this address is trusted.
    fn trusts(&self, address: IpAddr) -> bool;

    /// True if the policy reads a header of which this is true.
    fn reads(&self, is: &dyn Fn(&HeaderName) -> bool) -> bool;

    /// True if the policy has limits that learn from responses.
    fn learns(&self) -> bool;
}

impl<S: Store> PolicyView for Gate<S> {
    fn trusts(&self, address: IpAddr) -> bool {
        self.policy().trusts(address)
    }

    fn reads(&self, is: &dyn Fn(&HeaderName) -> bool) -> bool {
        self.policy().headers().any(is)
    }

    fn learns(&self) -> bool {
        self.policy().has_adaptive_limits()
    }
}
