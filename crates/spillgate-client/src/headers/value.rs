//! Amounts and times as far sides write them. What cannot be read is `None`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use spillgate::Timestamp;

use super::RateLimitInfo;

/// The values of a header that are text.
pub(super) fn lines<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h str> {
    headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(str::trim)
}

/// The parts of a header's values between commas, without their parameters.
pub(super) fn parts<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h str> {
    let bare = |part: &'h str| part.split(';').next().unwrap_or_default().trim();
    lines(headers, name).flat_map(|line| line.split(',')).map(bare)
}

/// A number that is not negative. Some write whole amounts as decimals.
pub(super) fn decimal(text: &str) -> Option<f64> {
    const LONGEST: usize = 40;
    // Rust also reads exponents, "inf" and "NaN", which no far side means.
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    (is_plain && text.len() <= LONGEST).then(|| text.parse().ok())?
}

/// An amount, rounded down: what remains is not overestimated.
pub(super) fn amount(text: &str) -> Option<u64> {
    decimal(text).map(|number| (number as u64).min(RateLimitInfo::MOST))
}

/// The amount of a limit. Zero and negative ones mean that there is none, or that it is unknown.
pub(super) fn limit(text: &str) -> Option<u64> {
    amount(text).filter(|limit| *limit > 0)
}

/// The time from `sent` until a moment, or a time as such: seconds, an epoch in seconds or
/// milliseconds, `6m0s`, RFC 3339, or an HTTP date. Zero if the moment has passed.
pub(super) fn time(text: &str, sent: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Some(number) = decimal(text) {
        return Some(number_of_seconds(number, sent));
    }
    let moment = || rfc3339(text).or_else(|| http_date(text)).map(|moment| moment.since(sent));
    go_duration(text).or_else(moment).map(|time| time.min(RateLimitInfo::LONGEST))
}

/// Small numbers are seconds, large ones moments.
fn number_of_seconds(number: f64, sent: Timestamp) -> Duration {
    const EPOCH_SECONDS: f64 = 1e9;
    const EPOCH_MILLIS: f64 = 1e12;
    if number >= EPOCH_MILLIS {
        return cut(number / 1e3 - seconds_of(sent));
    }
    cut(if number >= EPOCH_SECONDS { number - seconds_of(sent) } else { number })
}

fn seconds_of(moment: Timestamp) -> f64 {
    moment.since(Timestamp::ZERO).as_secs_f64()
}

/// Seconds as a time between zero and the longest one.
pub(super) fn cut(seconds: f64) -> Duration {
    let longest = RateLimitInfo::LONGEST;
    Duration::try_from_secs_f64(seconds.max(0.0)).map_or(longest, |time| time.min(longest))
}

/// A duration as Go writes it: `1h2m3.5s`, `12ms`.
fn go_duration(text: &str) -> Option<Duration> {
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|sign: char| !sign.is_ascii_digit() && sign != '.')?;
        let (number, unit) = rest.split_at(digits);
        let letters = unit.find(|sign: char| sign.is_ascii_digit()).unwrap_or(unit.len());
        let (unit, next) = unit.split_at(letters);
        let factor = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" | "μs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        seconds += decimal(number)? * factor;
        rest = next;
    }
    (!text.is_empty()).then(|| cut(seconds))
}

/// A moment such as `2027-01-01T00:00:00Z` or `2027-01-01T01:00:00+01:00`.
fn rfc3339(text: &str) -> Option<Timestamp> {
    if let Ok(moment) = humantime::parse_rfc3339(text) {
        return Some(timestamp(moment));
    }
    let (local, offset) = text.split_at_checked(text.len().checked_sub("+01:00".len())?)?;
    let moment = timestamp(humantime::parse_rfc3339(&format!("{local}Z")).ok()?);
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let minutes = 60 * hours.parse::<u32>().ok()? + minutes.parse::<u32>().ok()?;
    let ahead = Duration::from_secs(60) * minutes;
    match offset.as_bytes().first()? {
        b'+' => Some(moment - ahead),
        b'-' => Some(moment + ahead),
        _ => None,
    }
}

/// A moment such as `Sun, 06 Nov 1994 08:49:37 GMT`, or in one of the two obsolete forms.
pub(super) fn http_date(text: &str) -> Option<Timestamp> {
    httpdate::parse_http_date(text).ok().map(timestamp)
}

fn timestamp(moment: SystemTime) -> Timestamp {
    Timestamp::ZERO + moment.duration_since(UNIX_EPOCH).unwrap_or_default()
}
