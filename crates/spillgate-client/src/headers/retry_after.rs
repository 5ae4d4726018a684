//! `Retry-After`, its forms in milliseconds, and `x-should-retry`.

use std::time::Duration;

use http::HeaderMap;
use spillgate::Timestamp;

use super::value::{cut, decimal, lines, time};

/// The longest of what is there. Milliseconds are the better answer to the same question, so they win.
pub(super) fn retry_after(headers: &HeaderMap, sent: Timestamp) -> Option<Duration> {
    let names = ["retry-after-ms", "x-ms-retry-after-ms"];
    let millis = names.iter().flat_map(|name| lines(headers, name)).filter_map(decimal);
    let millis = millis.map(|millis| cut(millis / 1e3)).max();
    millis.or_else(|| lines(headers, "retry-after").filter_map(|text| time(text, sent)).max())
}

/// A single `false` wins.
pub(super) fn should_retry(headers: &HeaderMap) -> Option<bool> {
    let read = |text: &str| match text.to_ascii_lowercase().as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    };
    lines(headers, "x-should-retry").filter_map(read).min()
}
