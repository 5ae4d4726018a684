//! Rate limit headers of responses, in every dialect.
//!
//! Nothing here fails: a header that cannot be read counts as absent. Of several values of one header
//! the most cautious counts, and limits of several dialects are all reported.

mod ietf;
mod info;
mod retry_after;
mod triple;
mod value;

use http::HeaderMap;
use http::header::DATE;
use spillgate::{Clock, SystemClock, Timestamp};

pub use self::info::{AnnouncedLimit, Dialect, RateLimitInfo, Unit};

/// Reads what the headers of a response say about rate limits.
///
/// | who | headers | reset |
/// |---|---|---|
/// | RFC 9110 | `Retry-After` | seconds, also with a fraction; an HTTP date |
/// | Azure, OpenAI, Anthropic | `retry-after-ms`, `x-ms-retry-after-ms`, `x-should-retry` | milliseconds |
/// | IETF draft 8 and later, Spillgate | `RateLimit: "name";r=50;t=30`, `RateLimit-Policy: "name";q=100;w=60` | seconds |
/// | IETF draft 7 | `RateLimit: limit=100, remaining=50, reset=30` | seconds |
/// | IETF drafts up to 6 | `RateLimit-Limit`, `-Remaining`, `-Reset` | seconds |
/// | GitLab | the same | epoch seconds |
/// | GitHub | `x-ratelimit-limit`, `-remaining`, `-used`, `-reset`, `-resource` | epoch seconds |
/// | Discord | `X-RateLimit-*`, `-Reset-After`, `-Bucket`, `-Scope`, `-Global` | seconds with a fraction |
/// | Reddit | `X-Ratelimit-Used`, `-Remaining`, `-Reset` | seconds with a fraction |
/// | X | `x-rate-limit-limit`, `-remaining`, `-reset` | epoch seconds |
/// | OpenAI | `x-ratelimit-{limit,remaining,reset}-{requests,tokens}` | `6m0s`, `12ms` |
/// | Anthropic | `anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-{limit,remaining,reset}` | RFC 3339 |
/// | Linear | `X-RateLimit-Requests-*`, `X-RateLimit-Complexity-*` | epoch milliseconds |
/// | Shopify | `X-Shopify-Shop-Api-Call-Limit: 32/40` | – |
///
/// Every reset is read in all of these formats, whatever its header. A number from 10¹² is an epoch in
/// milliseconds, from 10⁹ one in seconds, a smaller one a time in seconds. A moment is compared with the
/// `Date` of the response, so that the clocks of both sides need not agree. A limit that is announced as
/// 0 or −1 is unknown and left out. Amounts and times are cut to [stated maxima](RateLimitInfo::LONGEST).
///
/// ```
/// use std::time::Duration;
///
/// let response = http::Response::builder()
///     .header("ratelimit-policy", r#""public";q=20;w=2"#)
///     .header("ratelimit", r#""public";r=4;t=2"#)
///     .body(())?;
/// let info = spillgate_client::parse(response.headers());
/// let limit = &info.limits[0];
/// assert_eq!((limit.limit, limit.remaining), (Some(20), Some(4)));
/// assert_eq!(limit.reset_after, Some(Duration::from_secs(2)));
/// # Ok::<(), http::Error>(())
/// ```
#[must_use]
pub fn parse(headers: &HeaderMap) -> RateLimitInfo {
    parse_at(headers, SystemClock.now())
}

/// [`parse`] at a given time, which counts where a response has no `Date`.
#[must_use]
pub fn parse_at(headers: &HeaderMap, now: Timestamp) -> RateLimitInfo {
    let date = headers.get(DATE).and_then(|date| value::http_date(date.to_str().ok()?));
    let sent = date.unwrap_or(now);
    let mut limits = Vec::new();
    ietf::limits(headers, sent, &mut limits);
    triple::limits(headers, sent, &mut limits);
    limits.extend(shopify(headers));
    limits.truncate(RateLimitInfo::MAX_LIMITS);
    RateLimitInfo {
        retry_after: retry_after::retry_after(headers, sent),
        should_retry: retry_after::should_retry(headers),
        is_global: is_global(headers),
        limits,
    }
}

/// `X-Shopify-Shop-Api-Call-Limit: 32/40`: used, and the size of a bucket that leaks.
fn shopify(headers: &HeaderMap) -> Option<AnnouncedLimit> {
    let pair = |text: &str| {
        let (used, limit) = text.split_once('/')?;
        Some((value::amount(used.trim())?, value::limit(limit.trim())?))
    };
    let found = value::parts(headers, "x-shopify-shop-api-call-limit").filter_map(pair);
    let (used, limit) = found.min_by_key(|(used, limit)| limit.saturating_sub(*used))?;
    Some(AnnouncedLimit {
        dialect: Dialect::Shopify,
        name: None,
        unit: Unit::Requests,
        limit: Some(limit),
        remaining: Some(limit.saturating_sub(used)),
        reset_after: None,
        window: None,
    })
}

/// Discord's limit of all requests, whatever their bucket.
fn is_global(headers: &HeaderMap) -> bool {
    let says = |header, word: &str| {
        value::lines(headers, header).any(|text| text.eq_ignore_ascii_case(word))
    };
    says("x-ratelimit-global", "true") || says("x-ratelimit-scope", "global")
}

/// The name of a limit, bounded in length.
fn name(text: &str) -> Option<Box<str>> {
    const LONGEST: usize = 64;
    let end = (0..=LONGEST.min(text.len())).rev().find(|end| text.is_char_boundary(*end))?;
    text.get(..end).filter(|name| !name.is_empty()).map(Into::into)
}
