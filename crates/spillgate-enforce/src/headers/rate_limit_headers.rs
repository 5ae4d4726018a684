use std::fmt;

use http::HeaderMap;
use http::header::{Entry, HeaderName, HeaderValue};
use spillgate_policy::LimitState;

use super::Headers;
use super::quota::{Quotas, Quoted};
use super::text::{Text, number};
use super::whole_seconds;

static RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
static RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
static X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
static X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
static X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// The headers of a response: the state of the limit that is nearest to denying.
pub struct RateLimitHeaders {
    quota: Quoted,
    remaining: u64,
    /// Seconds until all is back.
    reset: Option<u64>,
    headers: Headers,
}

impl RateLimitHeaders {
    pub(super) fn of(limit: LimitState<'_>, headers: Headers, quotas: &Quotas) -> Self {
        let decision = limit.decision();
        Self {
            quota: quotas.of(limit),
            remaining: decision.remaining(),
            reset: decision.reset_after().map(whole_seconds),
            headers,
        }
    }

    /// Adds them to the headers of a response.
    pub fn write(&self, headers: &mut HeaderMap) {
        if self.headers.rate_limit {
            // These are lists: what is there already stays.
            for (name, value) in self.rate_limit() {
                headers.append(name, value);
            }
        }
        if self.headers.x_rate_limit {
            self.write_x_rate_limit(headers);
        }
    }

    /// The headers of the IETF's draft.
    pub(super) fn rate_limit(&self) -> [(HeaderName, HeaderValue); 2] {
        let policy = self.quota.policy.clone();
        [(RATE_LIMIT_POLICY.clone(), policy), (RATE_LIMIT.clone(), self.state())]
    }

    /// `"public";r=4;t=2`
    fn state(&self) -> HeaderValue {
        let mut text = Text::starting_with(self.quota.name());
        text.parameter(b";r=", self.remaining);
        if let Some(reset) = self.reset {
            text.parameter(b";t=", reset);
        }
        text.value()
    }

    fn write_x_rate_limit(&self, headers: &mut HeaderMap) {
        match headers.entry(&X_REMAINING) {
            Entry::Occupied(set) if is_at_most(set.get(), self.remaining) => return,
            Entry::Occupied(mut set) => drop(set.insert(number(self.remaining))),
            Entry::Vacant(place) => drop(place.insert(number(self.remaining))),
        }
        headers.insert(&X_LIMIT, self.quota.amount.clone());
        match self.reset {
            Some(reset) => headers.insert(&X_RESET, number(reset)),
            None => headers.remove(&X_RESET),
        };
    }
}

/// True if the service has set the header for a limit of its own with no more remaining.
fn is_at_most(set: &HeaderValue, remaining: u64) -> bool {
    let set = set.to_str().ok().and_then(|set| set.trim().parse().ok());
    set.is_some_and(|set: u64| set <= remaining)
}

impl fmt::Debug for RateLimitHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitHeaders")
            .field("remaining", &self.remaining)
            .field("reset", &self.reset)
            .finish_non_exhaustive()
    }
}
