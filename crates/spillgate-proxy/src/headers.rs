//! Headers that are for one connection only.

use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::{HeaderMap, Version};

static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
static PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// How many headers or trailers an upstream may send, in either version: as many as hyper takes
/// of HTTP/1.1.
pub(super) const MAX_FIELDS: usize = 100;

/// The words of a header that is a list, such as `Connection`, all lines together.
pub(super) fn words<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'h [u8]> {
    let lines = headers.get_all(name).iter();
    let words = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    words.map(<[u8]>::trim_ascii).filter(|word| !word.is_empty())
}

/// True if the header has this word, in any case.
pub(super) fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    words(headers, name).any(|found| found.eq_ignore_ascii_case(word.as_bytes()))
}

/// Removes what is for one connection only, and whatever `Connection` names, which is told.
pub(super) fn strip(headers: &mut HeaderMap) -> Vec<HeaderName> {
    let mut named = Vec::new();
    if headers.contains_key(CONNECTION) {
        named.extend(
            words(headers, &CONNECTION).filter_map(|word| HeaderName::from_bytes(word).ok()),
        );
        // Where a request ends and whom it is for is not for a client to take away.
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

/// Says that the message has passed through here, and in which version it came.
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
    fn what_is_for_one_connection_goes_and_the_rest_stays() {
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
