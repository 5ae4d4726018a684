//! Rate limit headers of responses.

mod quota;
mod rate_limit_headers;
mod text;

use std::time::Duration;

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use spillgate_policy::Outcome;

pub(crate) use self::quota::Quotas;
pub use self::rate_limit_headers::RateLimitHeaders;
use crate::Refusal;

/// Which rate limit headers responses carry.
///
/// They are on every response to a request that met a limit, and describe the limit that is
/// nearest to denying, as it was when the request was decided.
///
/// | | default | |
/// |---|---|---|
/// | [`rate_limit`](Self::rate_limit) | on | `RateLimit-Policy: "public";q=20;w=2` and `RateLimit: "public";r=4;t=2` |
/// | [`x_rate_limit`](Self::x_rate_limit) | on | `X-RateLimit-Limit: 20`, `X-RateLimit-Remaining: 4`, `X-RateLimit-Reset: 2` |
/// | [`retry_after_ms`](Self::retry_after_ms) | off | `Retry-After-Ms: 1600`, if the request is denied |
///
/// `Retry-After` is always there if waiting helps. Times are rounded up.
///
/// Of a [concurrency limit](spillgate_policy::Limit::concurrent), nobody knows when permits are
/// released: `RateLimit-Policy: "uploads";q=50;qu="concurrent-requests"`, `RateLimit: "uploads";r=12`, no
/// `X-RateLimit-Reset`, and `Retry-After: 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Headers {
    rate_limit: bool,
    x_rate_limit: bool,
    retry_after_ms: bool,
}

impl Headers {
    /// None of them.
    pub fn none() -> Self {
        Self { rate_limit: false, x_rate_limit: false, retry_after_ms: false }
    }

    /// The headers of the IETF's draft: `q` is the most that can be spent at once, `w` the
    /// seconds in which it is refilled, `r` what remains and `t` the seconds until all of
    /// it is back.
    ///
    /// If the service has set them for limits of its own, responses carry both.
    pub fn rate_limit(self, on: bool) -> Self {
        Self { rate_limit: on, ..self }
    }

    /// The headers that have long been in use: the most that can be spent at once, what
    /// remains, and the seconds until all of it is back.
    ///
    /// If the service has set them for a limit of its own, the limit with less remaining wins.
    pub fn x_rate_limit(self, on: bool) -> Self {
        Self { x_rate_limit: on, ..self }
    }

    /// `Retry-After` in milliseconds, which some clients prefer.
    pub fn retry_after_ms(self, on: bool) -> Self {
        Self { retry_after_ms: on, ..self }
    }

    /// The headers of a response to a request with this outcome, if there are any.
    #[inline]
    pub(crate) fn of(self, outcome: &Outcome<'_>, quotas: &Quotas) -> Option<RateLimitHeaders> {
        if !self.rate_limit && !self.x_rate_limit {
            return None;
        }
        let limit = outcome.nearest()?;
        // A share of all requests says nothing about how many of them a caller may send. Rates have
        // a window, so that most responses need not ask.
        if limit.decision().window().is_none() && limit.is_share() {
            return None;
        }
        Some(RateLimitHeaders::of(limit, self, quotas))
    }

    /// The headers of the IETF's draft, if they are on.
    pub(crate) fn rate_limit_of(
        self,
        outcome: &Outcome<'_>,
        quotas: &Quotas,
    ) -> Option<[(HeaderName, HeaderValue); 2]> {
        // A limit that never lets anything pass has no quota.
        let limit = outcome.nearest().filter(|limit| self.rate_limit && !limit.is_closed())?;
        Some(RateLimitHeaders::of(limit, self, quotas).rate_limit())
    }

    /// Adds the headers of a refused request to its response.
    pub(crate) fn write_refusal(
        self,
        headers: &mut HeaderMap,
        refusal: &Refusal<'_>,
        quotas: &Quotas,
    ) {
        if let Some(outcome) = refusal.outcome() {
            self.of(outcome, quotas).into_iter().for_each(|it| it.write(headers));
        }
        let Some(time) = refusal.retry_after() else { return };
        headers.entry(RETRY_AFTER).or_insert_with(|| whole_seconds(time).max(1).into());
        if self.retry_after_ms {
            headers.insert(&RETRY_AFTER_MS, whole_millis(time).into());
        }
    }
}

impl Default for Headers {
    fn default() -> Self {
        Self { rate_limit: true, x_rate_limit: true, retry_after_ms: false }
    }
}

static RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// Whole seconds, rounded up: after that long, the wait is over.
pub(crate) fn whole_seconds(time: Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0))
}

/// Whole milliseconds, rounded up.
pub(crate) fn whole_millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
