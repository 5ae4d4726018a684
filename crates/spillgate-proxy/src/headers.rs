//! Hop-by-hop headers.

use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::{HeaderMap, Version};

static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
static PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Header or trailer fields of a response, in either version: hyper's bound for HTTP/1.1.
pub(super) const MAX_FIELDS: usize = 100;

/// The elements of a list header, such as `Connection`, across all its lines.
pub(super) fn words<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'h [u8]> {
    let lines = headers.get_all(name).iter();
    let words = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    words.map(<[u8]>::trim_ascii).filter(|word| !word.is_empty())
}

/// True if the list header has this element, in any case.
pub(super) fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    words(headers, name).any(|found| found.eq_ignore_ascii_case(word.as_bytes()))
}

/// Removes hop-by-hop headers, and those that `Connection` names. Returns the latter.
pub(super) fn strip(headers: &mut HeaderMap) -> Vec<HeaderName> {
    let mut named = Vec::new();
    if headers.contains_key(CONNECTION) {
        named.extend(
            words(headers, &CONNECTION).filter_map(|word| HeaderName::from_bytes(word).ok()),
        );
        // A client must not remove the framing or the host.
        for name in named.iter().filter(|name| **name != HOST && **name != CONTENT_LENGTH) {
            headers.remove(name);
        }
        headers.remove(CONNECTION);
    }
    let takes_trailers = headers.contains_key(TE) && has_word(headers, &TE, "trailers");
    for name in [&TE, &TRANSFER_ENCODING, &UPGRADE, &PROXY_AUTHENTICATE, &PROXY_AUTHORIZATION] {
        headers.remove(name);
    }
    headers.remove(&KEEP_ALIVE);
    headers.remove(&PROXY_CONNECTION);
    if takes_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    named
}

/// Adds `Via` with the version in which the message arrived.
pub(super) fn add_via(headers: &mut HeaderMap, version: Version) {
    let via = match version {
        Version::HTTP_2 => "2.0 spillgate",
        Version::HTTP_10 => "1.0 spillgate",
        _ => "1.1 spillgate",
    };
    headers.append(VIA, HeaderValue::from_static(via));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hop_by_hop_headers_are_removed_and_others_stay() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-One"),
            ("connection", "x-two,host , content-length"),
            ("x-one", "1"),
            ("x-two", "2"),
            ("x-three", "3"),
            ("host", "app"),
            ("content-length", "5"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("proxy-authorization", "Basic Zm9v"),
            ("te", "gzip, trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        strip(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-length", "host", "te", "x-three"]);
        assert_eq!(headers[TE], "trailers");
    }
}
