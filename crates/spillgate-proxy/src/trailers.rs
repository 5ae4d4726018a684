//! Which trailers pass.
//!
//! Some who receive them put them among the headers. So what a header may not say, or is not
//! believed to say, a trailer does not say either.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue, TRAILER};
use hyper::body::Frame;

use super::failure::Failure;
use super::headers::{MAX_FIELDS, words};
use super::policy_view::PolicyView;

/// What is for the head alone (RFC 9110, section 6.5.1), for one connection, or the word of
/// proxies about a client. `_` stands for `-` as well.
static FORBIDDEN: [&str; 43] = [
    // Where a message ends, and how it is to be read.
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
    // Whom it is for, and how it came.
    "host",
    "via",
    // Who sends it.
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
    // What is wanted.
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
    // What is to be done with a response.
    "age",
    "date",
    "expires",
    "location",
    "retry-after",
    "vary",
    "warning",
];

/// Names that begin so are forbidden as well.
static FORBIDDEN_PREFIXES: [&str; 5] = ["if-", "proxy", "ratelimit", "sec-", "x-ratelimit-"];

/// Names with one of these in them tell who a client is, whoever has made them up.
static FORBIDDEN_PARTS: [&str; 6] =
    ["forwarded", "client-ip", "clientip", "real-ip", "user-ip", "external-address"];

/// Lets the trailers of one message pass, or not.
pub(super) struct TrailerFilter {
    /// What `Connection` names, which is for one connection.
    named: Vec<HeaderName>,
    /// Whose policy goes by headers that may not come late. `None` of a response.
    policy: Option<Arc<dyn PolicyView>>,
    /// How many there may be.
    max: usize,
}

impl TrailerFilter {
    /// For a request: it may have so many, and none that the gate's policy goes by.
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

    /// Announces those alone that may pass.
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

    /// What is passed on of the next part of a body.
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

    /// Those that pass, if there are any.
    fn filter_fields(&self, mut trailers: HeaderMap) -> Result<Option<HeaderMap>, Failure> {
        if trailers.len() > self.max {
            return Err(match &self.policy {
                Some(_) => Failure::ClientBroke,
                None => Failure::Ambiguous("it has too many trailers"),
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

/// A name as those see it to whom `_` is `-`.
fn dashed(name: &HeaderName) -> Cow<'_, str> {
    let name = name.as_str();
    if name.contains('_') { name.replace('_', "-").into() } else { name.into() }
}

impl fmt::Debug for TrailerFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrailerFilter").field("named", &self.named).finish_non_exhaustive()
    }
}
