use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{Entry, HeaderName, HeaderValue, RETRY_AFTER};
use tollgate_policy::{LimitState, Passage};

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

    /// Adds what a passage says to the headers of its response.
    pub(crate) fn write(self, headers: &mut HeaderMap, passage: &Passage) {
        if !self.rate_limit && !self.x_rate_limit {
            return;
        }
        let Some(limit) = passage.nearest() else { return };
        let text = Text::of(limit);
        if self.rate_limit {
            text.append_rate_limit(headers);
        }
        if self.x_rate_limit {
            text.insert_x_rate_limit(headers, limit.decision().remaining());
        }
    }

    /// Adds what a refused client has to know to the headers of its response.
    pub(crate) fn write_refusal(self, headers: &mut HeaderMap, refusal: &Refusal<'_>) {
        if let Some(passage) = refusal.passage() {
            self.write(headers, passage);
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

/// What a limit says, written once: all values are pieces of one text.
struct Text {
    bytes: Bytes,
    /// `"public";q=20;w=2`
    policy: Item,
    /// `"public";r=4;t=2`
    state: Item,
}

/// Where in the text a string with its parameters is, and where their values are.
struct Item {
    whole: Range<usize>,
    first: Range<usize>,
    second: Option<Range<usize>>,
}

impl Text {
    fn of(limit: LimitState<'_>) -> Self {
        let (name, decision) = (limit.name(), limit.decision());
        let seconds = |time: Option<Duration>| time.map(whole_seconds);
        let mut text = Vec::with_capacity(2 * (name.len() + 40));
        let window = ("w", seconds(decision.window()));
        let policy = item(&mut text, name, ("q", decision.limit()), window);
        let reset = ("t", seconds(decision.reset_after()));
        let state = item(&mut text, name, ("r", decision.remaining()), reset);
        Self { bytes: text.into(), policy, state }
    }

    /// These are lists: what is there already stays.
    fn append_rate_limit(&self, headers: &mut HeaderMap) {
        headers.append(&RATE_LIMIT_POLICY, self.value(&self.policy.whole));
        headers.append(&RATE_LIMIT, self.value(&self.state.whole));
    }

    fn insert_x_rate_limit(&self, headers: &mut HeaderMap, remaining: u64) {
        match headers.entry(&X_REMAINING) {
            Entry::Occupied(told) if number(told.get()).is_some_and(|told| told <= remaining) => {
                return;
            }
            Entry::Occupied(mut told) => drop(told.insert(self.value(&self.state.first))),
            Entry::Vacant(place) => drop(place.insert(self.value(&self.state.first))),
        }
        headers.insert(&X_LIMIT, self.value(&self.policy.first));
        match &self.state.second {
            Some(reset) => headers.insert(&X_RESET, self.value(reset)),
            None => headers.remove(&X_RESET),
        };
    }

    fn value(&self, piece: &Range<usize>) -> HeaderValue {
        let value = HeaderValue::from_maybe_shared(self.bytes.slice(piece.clone()));
        // Names of limits and numbers are always a value.
        value.unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

/// Writes a string with one or two parameters. Names of limits need not be escaped.
fn item(text: &mut Vec<u8>, name: &str, first: (&str, u64), second: (&str, Option<u64>)) -> Item {
    let start = text.len();
    text.push(b'"');
    text.extend_from_slice(name.as_bytes());
    text.push(b'"');
    let value = parameter(text, first.0, first.1);
    let second = second.1.map(|value| parameter(text, second.0, value));
    Item { whole: start..text.len(), first: value, second }
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
