use std::time::Duration;

/// What a response says about rate limits, whatever its dialect.
///
/// See [`parse`](crate::parse).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RateLimitInfo {
    /// How long to wait before the next request. It means something only if this one was refused:
    /// with 429, 503 or 403.
    pub retry_after: Option<Duration>,
    /// What `x-should-retry` says.
    pub should_retry: Option<bool>,
    /// True if a refusal concerns all requests of this client, and not those of one limit.
    pub is_global: bool,
    /// The limits that the request met, at most [`MAX_LIMITS`](Self::MAX_LIMITS).
    pub limits: Vec<AnnouncedLimit>,
}

impl RateLimitInfo {
    /// The longest time that is read: later moments are cut to it.
    pub const LONGEST: Duration = Duration::from_secs(31 * 24 * 60 * 60);

    /// The largest amount that is read, the largest integer of a structured field: larger ones are
    /// cut to it.
    pub const MOST: u64 = 999_999_999_999_999;

    /// How many limits of a response are read.
    pub const MAX_LIMITS: usize = 16;

    /// True if the response says nothing about rate limits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// True if a limit is used up.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.limits.iter().any(|limit| limit.remaining == Some(0))
    }

    /// The limit with the smallest share remaining.
    #[must_use]
    pub fn nearest(&self) -> Option<&AnnouncedLimit> {
        let share = |it: &&AnnouncedLimit| match (it.remaining, it.limit) {
            (Some(remaining), Some(limit)) => remaining as f64 / limit.max(1) as f64,
            (Some(0), None) => 0.0,
            _ => 1.0,
        };
        self.limits.iter().min_by(|one, other| share(one).total_cmp(&share(other)))
    }
}

/// One limit, as a response announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnnouncedLimit {
    /// The headers that it comes from.
    pub dialect: Dialect,
    /// The name that the far side gives it: a policy, a resource, a bucket id. At most 64 bytes.
    pub name: Option<Box<str>>,
    /// What is counted.
    pub unit: Unit,
    /// How much there is in all.
    pub limit: Option<u64>,
    /// How much is left.
    pub remaining: Option<u64>,
    /// The time until all of it is back.
    pub reset_after: Option<Duration>,
    /// The time in which the whole limit is refilled.
    pub window: Option<Duration>,
}

/// A family of headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Dialect {
    /// `RateLimit` and `RateLimit-Policy` of the IETF's drafts 7 and later.
    RateLimit,
    /// `RateLimit-Limit`, `-Remaining`, `-Reset`: the IETF's drafts up to 6, GitLab.
    RateLimitFields,
    /// `X-RateLimit-Limit`, `-Remaining`, `-Reset`: GitHub, Discord, Reddit, Spillgate and most others.
    XRateLimit,
    /// `x-rate-limit-limit`, `-remaining`, `-reset`: X.
    XRateLimitHyphen,
    /// `x-ratelimit-limit-requests`, `-tokens`: OpenAI.
    OpenAi,
    /// `anthropic-ratelimit-requests-limit`, …: Anthropic.
    Anthropic,
    /// `X-RateLimit-Requests-Limit`, `X-RateLimit-Complexity-Limit`, …: Linear.
    Linear,
    /// `X-Shopify-Shop-Api-Call-Limit`: Shopify.
    Shopify,
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Unit {
    /// Requests.
    Requests,
    /// Requests in flight at the same time.
    ConcurrentRequests,
    /// Something of which a request costs an amount that only the far side knows: tokens of a
    /// language model, complexity, bytes.
    Other,
}
