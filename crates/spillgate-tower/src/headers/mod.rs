//! Telling clients of their limits.

mod quota;
mod text;
mod told;

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use spillgate_policy::Outcome;

pub(crate) use self::quota::Quotas;
pub(crate) use self::told::Told;
use crate::Refusal;
use crate::round::{whole_millis, whole_seconds};

/// Which headers tell clients of their limits.
///
/// They are on every response to a request that met a limit, and speak for the one that
/// is nearest to denying, as it was when the request was decided.
///
/// | | default | |
/// |---|---|---|
/// | [`rate_limit`](Self::rate_limit) | on | `RateLimit-Policy: "public";q=20;w=2` and `RateLimit: "public";r=4;t=2` |
/// | [`x_rate_limit`](Self::x_rate_limit) | on | `X-RateLimit-Limit: 20`, `X-RateLimit-Remaining: 4`, `X-RateLimit-Reset: 2` |
/// | [`retry_after_ms`](Self::retry_after_ms) | off | `Retry-After-Ms: 1600`, if the request is denied |
///
/// `Retry-After` is always there if waiting helps. Times are rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    rate_limit: bool,
    x_rate_limit: bool,
    retry_after_ms: bool,
}

impl Headers {
    /// None of them.
    #[must_use]
    pub fn none() -> Self {
        Self { rate_limit: false, x_rate_limit: false, retry_after_ms: false }
    }

    /// The headers of the IETF's draft: `q` is the most that can be spent at once, `w` the
    /// seconds in which it is refilled, `r` what remains and `t` the seconds until all of
    /// it is back.
    ///
    /// If the service has set them, too, for limits of its own, both are told.
    #[must_use]
    pub fn rate_limit(self, on: bool) -> Self {
        Self { rate_limit: on, ..self }
    }

    /// The headers that have long been in use: the most that can be spent at once, what
    /// remains, and the seconds until all of it is back.
    ///
    /// If the service has set them, too, for a limit of its own, the limit with less
    /// remaining is told.
    #[must_use]
    pub fn x_rate_limit(self, on: bool) -> Self {
        Self { x_rate_limit: on, ..self }
    }

    /// `Retry-After` in milliseconds, which some clients prefer.
    #[must_use]
    pub fn retry_after_ms(self, on: bool) -> Self {
        Self { retry_after_ms: on, ..self }
    }

    /// What the response to a request tells of its limits, if anything.
    #[inline]
    pub(crate) fn tell(self, outcome: &Outcome<'_>, quotas: &Quotas) -> Option<Told> {
        if !self.rate_limit && !self.x_rate_limit {
            return None;
        }
        Some(Told::of(outcome.nearest()?, self, quotas))
    }

    /// What the headers of the IETF's draft tell of the limits of an outcome, if they are on.
    pub(crate) fn tell_rate_limit(
        self,
        outcome: &Outcome<'_>,
        quotas: &Quotas,
    ) -> Option<[(HeaderName, HeaderValue); 2]> {
        // A limit that lets nothing through has no quota to tell of.
        let limit = outcome.nearest().filter(|limit| self.rate_limit && !limit.is_closed())?;
        Some(Told::of(limit, self, quotas).rate_limit())
    }

    /// Adds what a refused client has to know to the headers of its response.
    pub(crate) fn write_refusal(
        self,
        headers: &mut HeaderMap,
        refusal: &Refusal<'_>,
        quotas: &Quotas,
    ) {
        if let Some(outcome) = refusal.outcome() {
            self.tell(outcome, quotas).into_iter().for_each(|told| told.write(headers));
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
