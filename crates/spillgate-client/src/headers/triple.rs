//! Dialects with a header each for limit, remaining and reset.

use std::time::Duration;

use http::HeaderMap;
use spillgate::Timestamp;

use super::value::{amount, limit, lines, parts, time};
use super::{AnnouncedLimit, Dialect, RateLimitInfo, Unit, ietf, name};

/// The headers of one limit: limit, remaining, reset.
type Names = [&'static str; 3];

/// Dialects in which the headers' names say which limit it is.
const NAMED: [(Dialect, Unit, &str, Names); 8] = {
    use Dialect::{Anthropic, Linear, OpenAi};
    use Unit::{Other, Requests};
    [
        (
            OpenAi,
            Requests,
            "requests",
            [
                "x-ratelimit-limit-requests",
                "x-ratelimit-remaining-requests",
                "x-ratelimit-reset-requests",
            ],
        ),
        (
            OpenAi,
            Other,
            "tokens",
            [
                "x-ratelimit-limit-tokens",
                "x-ratelimit-remaining-tokens",
                "x-ratelimit-reset-tokens",
            ],
        ),
        (
            Anthropic,
            Requests,
            "requests",
            [
                "anthropic-ratelimit-requests-limit",
                "anthropic-ratelimit-requests-remaining",
                "anthropic-ratelimit-requests-reset",
            ],
        ),
        (
            Anthropic,
            Other,
            "tokens",
            [
                "anthropic-ratelimit-tokens-limit",
                "anthropic-ratelimit-tokens-remaining",
                "anthropic-ratelimit-tokens-reset",
            ],
        ),
        (
            Anthropic,
            Other,
            "input-tokens",
            [
                "anthropic-ratelimit-input-tokens-limit",
                "anthropic-ratelimit-input-tokens-remaining",
                "anthropic-ratelimit-input-tokens-reset",
            ],
        ),
        (
            Anthropic,
            Other,
            "output-tokens",
            [
                "anthropic-ratelimit-output-tokens-limit",
                "anthropic-ratelimit-output-tokens-remaining",
                "anthropic-ratelimit-output-tokens-reset",
            ],
        ),
        (
            Linear,
            Requests,
            "requests",
            [
                "x-ratelimit-requests-limit",
                "x-ratelimit-requests-remaining",
                "x-ratelimit-requests-reset",
            ],
        ),
        (
            Linear,
            Other,
            "complexity",
            [
                "x-ratelimit-complexity-limit",
                "x-ratelimit-complexity-remaining",
                "x-ratelimit-complexity-reset",
            ],
        ),
    ]
};

/// Adds the limits of all these dialects.
pub(super) fn limits(headers: &HeaderMap, sent: Timestamp, found: &mut Vec<AnnouncedLimit>) {
    found.extend(x_rate_limit(headers, sent));
    found.extend(rate_limit_fields(headers, sent));
    let x = ["x-rate-limit-limit", "x-rate-limit-remaining", "x-rate-limit-reset"];
    found.extend(triple(headers, sent, Dialect::XRateLimitHyphen, x));
    for (dialect, unit, name, names) in NAMED {
        let named = |it| AnnouncedLimit { unit, name: Some(name.into()), ..it };
        found.extend(triple(headers, sent, dialect, names).map(named));
    }
}

/// `X-RateLimit-*`, with what GitHub, Discord and Reddit add to it.
fn x_rate_limit(headers: &HeaderMap, sent: Timestamp) -> Option<AnnouncedLimit> {
    let names = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset-after"];
    let mut it = triple(headers, sent, Dialect::XRateLimit, names)?;
    it.reset_after = it.reset_after.or_else(|| latest(headers, sent, "x-ratelimit-reset"));
    let used = || parts(headers, "x-ratelimit-used").filter_map(amount).max();
    // Reddit announces no limit.
    it.limit = it.limit.or_else(|| limit_of(it.remaining?, used()?));
    let bucket = ["x-ratelimit-bucket", "x-ratelimit-resource"];
    it.name = bucket.iter().flat_map(|header| lines(headers, header)).find_map(name);
    Some(it)
}

fn limit_of(remaining: u64, used: u64) -> Option<u64> {
    let limit = remaining.saturating_add(used).min(RateLimitInfo::MOST);
    (limit > 0).then_some(limit)
}

/// `RateLimit-Limit: 100, 100;w=60`, as in the IETF's drafts up to 6.
fn rate_limit_fields(headers: &HeaderMap, sent: Timestamp) -> Option<AnnouncedLimit> {
    let names = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];
    let mut it = triple(headers, sent, Dialect::RateLimitFields, names)?;
    it.window = it.limit.and_then(|limit| ietf::window_of(headers, limit));
    it.name = lines(headers, "ratelimit-name").find_map(name);
    Some(it)
}

/// Of several values, the most cautious: the least remaining, the latest reset.
fn triple(
    headers: &HeaderMap,
    sent: Timestamp,
    dialect: Dialect,
    [limit_name, remaining, reset]: Names,
) -> Option<AnnouncedLimit> {
    let announced = parts(headers, limit_name).next();
    let all = announced.and_then(limit);
    // An announced limit of 0 or -1 says that there is none.
    if announced.is_some_and(|text| text.starts_with('-') || amount(text) == Some(0)) {
        return None;
    }
    let remaining = parts(headers, remaining).filter_map(amount).min();
    if all.is_none() && remaining.is_none() {
        return None;
    }
    Some(AnnouncedLimit {
        dialect,
        name: None,
        unit: Unit::Requests,
        limit: all,
        remaining,
        reset_after: latest(headers, sent, reset),
        window: None,
    })
}

/// The latest reset of a header, whose values may be dates with a comma or a list.
fn latest(headers: &HeaderMap, sent: Timestamp, header: &'static str) -> Option<Duration> {
    let times = lines(headers, header).filter_map(|text| time(text, sent));
    times.chain(parts(headers, header).filter_map(|text| time(text, sent))).max()
}
