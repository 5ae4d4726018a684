use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{Entry, HeaderName, HeaderValue, RETRY_AFTER};
use tollgate::Decision;
use tollgate_policy::{LimitState, Passage};

use crate::Refusal;
use crate::per_limit::PerLimit;
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

    /// Adds what a passage says to the headers of its response.
    pub(crate) fn write(self, headers: &mut HeaderMap, passage: &Passage, quotas: &Quotas) {
        if !self.rate_limit && !self.x_rate_limit {
            return;
        }
        let Some(limit) = passage.nearest() else { return };
        // At once, since most responses have some already.
        headers.reserve(5);
        let state = State::of(limit);
        quotas.0.with(
            limit,
            || Quota::of(limit),
            |quota| {
                // A tier or an override has another.
                let other;
                let quota = if quota.is_of(limit.decision()) {
                    quota
                } else {
                    other = Quota::of(limit);
                    &other
                };
                if self.rate_limit {
                    // These are lists: what is there already stays.
                    headers.append(&RATE_LIMIT_POLICY, quota.policy.clone());
                    headers.append(&RATE_LIMIT, state.value(&state.whole));
                }
                if self.x_rate_limit {
                    state.insert_x_rate_limit(headers, quota, limit.decision().remaining());
                }
            },
        );
    }

    /// Adds what a refused client has to know to the headers of its response.
    pub(crate) fn write_refusal(
        self,
        headers: &mut HeaderMap,
        refusal: &Refusal<'_>,
        quotas: &Quotas,
    ) {
        if let Some(passage) = refusal.passage() {
            self.write(headers, passage, quotas);
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

static RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
static RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
static X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
static X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
static X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
static RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// The quota of each limit as its headers tell it, written once and not for each
/// response.
#[derive(Default)]
pub(crate) struct Quotas(PerLimit<Quota>);

struct Quota {
    limit: u64,
    window: Option<Duration>,
    /// `"public";q=20;w=2`
    policy: HeaderValue,
    /// `20`
    amount: HeaderValue,
}

impl Quota {
    fn of(limit: LimitState<'_>) -> Self {
        let decision = limit.decision();
        let (limit, window, name) = (decision.limit(), decision.window(), limit.name());
        let mut text = name_of(name);
        let amount = parameter(&mut text, "q", limit);
        if let Some(window) = window {
            parameter(&mut text, "w", whole_seconds(window));
        }
        let text = Bytes::from(text);
        Self { limit, window, amount: value(text.slice(amount)), policy: value(text) }
    }

    fn is_of(&self, decision: &Decision) -> bool {
        self.limit == decision.limit() && self.window == decision.window()
    }
}

/// What is left under a limit: all values are pieces of one text.
struct State {
    text: Bytes,
    /// `"public";r=4;t=2`
    whole: Range<usize>,
    remaining: Range<usize>,
    reset: Option<Range<usize>>,
}

impl State {
    fn of(limit: LimitState<'_>) -> Self {
        let mut text = name_of(limit.name());
        let remaining = parameter(&mut text, "r", limit.decision().remaining());
        let reset = limit.decision().reset_after().map(whole_seconds);
        let reset = reset.map(|reset| parameter(&mut text, "t", reset));
        Self { whole: 0..text.len(), text: text.into(), remaining, reset }
    }

    fn insert_x_rate_limit(&self, headers: &mut HeaderMap, quota: &Quota, remaining: u64) {
        match headers.entry(&X_REMAINING) {
            Entry::Occupied(told) if number(told.get()).is_some_and(|told| told <= remaining) => {
                return;
            }
            Entry::Occupied(mut told) => drop(told.insert(self.value(&self.remaining))),
            Entry::Vacant(place) => drop(place.insert(self.value(&self.remaining))),
        }
        headers.insert(&X_LIMIT, quota.amount.clone());
        match &self.reset {
            Some(reset) => headers.insert(&X_RESET, self.value(reset)),
            None => headers.remove(&X_RESET),
        };
    }

    fn value(&self, piece: &Range<usize>) -> HeaderValue {
        value(self.text.slice(piece.clone()))
    }
}

/// Names of limits and numbers are always a value.
fn value(text: Bytes) -> HeaderValue {
    HeaderValue::from_maybe_shared(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// A name as a string of a structured field, with room for two parameters. Names of
/// limits need not be escaped.
fn name_of(name: &str) -> Vec<u8> {
    let mut text = Vec::with_capacity(name.len() + 40);
    text.push(b'"');
    text.extend_from_slice(name.as_bytes());
    text.push(b'"');
    text
}

fn parameter(text: &mut Vec<u8>, key: &str, value: u64) -> Range<usize> {
    text.push(b';');
    text.extend_from_slice(key.as_bytes());
    text.push(b'=');
    let start = text.len();
    digits(text, value.min(MAX));
    start..text.len()
}

/// The largest integer of a structured field.
const MAX: u64 = 999_999_999_999_999;

fn digits(text: &mut Vec<u8>, mut value: u64) {
    let start = text.len();
    loop {
        text.push(b'0' + (value % 10) as u8);
        value /= 10;
        if value == 0 {
            break;
        }
    }
    text[start..].reverse();
}

/// The number that a header tells.
fn number(value: &HeaderValue) -> Option<u64> {
    value.to_str().ok()?.trim().parse().ok()
}
