//! Whom a request is for: limits and the upstream see the same host, or the request is refused.

use crate::proxy::frames::{self, Fields};
use crate::proxy::setup::{Proxy, Setup};
use crate::proxy::upstream::{Upstream, ok};

/// A limit that tells whether a request was counted for the host `shop.test`, and another for the
/// rest.
const POLICY: &str = "[[limit]]\nname = 'shop'\nmatch = { host = 'shop.test' }\nquota = '1000/h'\n\
    [[limit]]\nname = 'all'\nquota = '1000000/s'\n";

fn start() -> (Upstream, Proxy) {
    let upstream = Upstream::answering(|_| ok("hello"));
    let proxy = Setup::to(&[upstream.url()]).policy(POLICY).start();
    (upstream, proxy)
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Refused,
    /// The upstream sees this host, and the limit for `shop.test` counts the request or not.
    Passed(&'static str, bool),
}
use Outcome::{Passed, Refused};

#[test]
fn the_host_of_an_absolute_target_counts_and_must_be_that_of_the_header() {
    let (upstream, proxy) = start();
    for (line, host, expected) in [
        ("http://shop.test/ HTTP/1.1", Some("shop.test"), Passed("shop.test", true)),
        ("http://SHOP.test/ HTTP/1.1", Some("shop.TEST"), Passed("SHOP.test", true)),
        ("http://shop.test:80/ HTTP/1.1", Some("shop.test"), Passed("shop.test:80", true)),
        ("http://shop.test/ HTTP/1.1", Some("shop.test:80"), Passed("shop.test", true)),
        ("https://shop.test/ HTTP/1.1", Some("shop.test:443"), Passed("shop.test", true)),
        ("http://shop.test:8080/ HTTP/1.1", Some("shop.test:8080"), Passed("shop.test:8080", true)),
        ("http://shop.test/ HTTP/1.0", None, Passed("shop.test", true)),
        ("http://shop.test/ HTTP/1.0", Some("shop.test"), Passed("shop.test", true)),
        ("http://[::1]/ HTTP/1.1", Some("[::1]:80"), Passed("[::1]", false)),
        ("http://other.test/ HTTP/1.0", None, Passed("other.test", false)),
        ("http://other.test/ HTTP/1.1", Some("shop.test"), Refused),
        ("http://shop.test/ HTTP/1.1", Some("other.test"), Refused),
        ("http://other.test/ HTTP/1.0", Some("shop.test"), Refused),
        ("http://shop.test/ HTTP/1.1", Some(""), Refused),
        // Whoever asks this way names the host twice (RFC 9112, section 3.2.2).
        ("http://shop.test/ HTTP/1.1", None, Refused),
        ("http://shop.test:8080/ HTTP/1.1", Some("shop.test"), Refused),
        ("http://shop.test:443/ HTTP/1.1", Some("shop.test"), Refused),
        ("http://shop.test:080/ HTTP/1.1", Some("shop.test"), Refused),
        ("http://shop.test:/ HTTP/1.1", Some("shop.test"), Refused),
        ("http://shop.test./ HTTP/1.1", Some("shop.test"), Refused),
        ("http://shop.test/ HTTP/1.1", Some("shop.test."), Refused),
        ("http://shop.test@other.test/ HTTP/1.1", Some("shop.test"), Refused),
        ("http://shop.test@other.test/ HTTP/1.1", Some("other.test"), Refused),
        ("http://user@shop.test/ HTTP/1.1", Some("shop.test"), Refused),
        ("http://user@shop.test/ HTTP/1.1", Some("user@shop.test"), Refused),
        ("http://:80/ HTTP/1.1", Some("shop.test"), Refused),
        ("ftp://shop.test/ HTTP/1.1", Some("shop.test"), Refused),
        ("//shop.test/ HTTP/1.1", Some("shop.test"), Passed("shop.test", true)),
    ] {
        let before = upstream.requests().len();
        let mut wire = proxy.connect();
        let host = host.map_or(String::new(), |host| format!("host: {host}\r\n"));
        wire.send(format!("GET {line}\r\n{host}connection: close\r\n\r\n"));
        let response = wire.response("GET").unwrap();
        let counted = response.all("ratelimit-policy").concat().contains("shop");
        let seen = upstream.requests().split_off(before);
        let outcome = (response.status(), seen.first().and_then(|seen| seen.header("host")));
        match expected {
            Passed(name, counts) => {
                assert_eq!(outcome, (200, Some(name)), "{line} {host:?}: {response:?}");
                assert_eq!(counted, counts, "{line} {host:?}: {response:?}");
                assert_eq!(seen[0].header("x-forwarded-host"), Some(name));
            }
            Refused => assert_eq!(outcome, (400, None), "{line} {host:?}: {response:?}"),
        }
    }
}

#[test]
fn the_authority_of_http2_counts_and_must_be_that_of_the_header() {
    let (upstream, proxy) = start();
    for (fields, expected) in [
        (&[(":authority", "shop.test")][..], Some("shop.test")),
        (&[("host", "shop.test")], Some("shop.test")),
        (&[(":authority", "SHOP.test"), ("host", "shop.test")], Some("SHOP.test")),
        (&[(":authority", "shop.test:80"), ("host", "shop.test")], Some("shop.test:80")),
        (&[(":authority", "shop.test"), ("host", "shop.test:80")], Some("shop.test")),
        (&[], None),
        (&[(":authority", "other.test"), ("host", "shop.test")], None),
        (&[(":authority", "shop.test"), ("host", "other.test")], None),
        (&[(":authority", "shop.test:8080"), ("host", "shop.test")], None),
        (&[(":authority", "shop.test."), ("host", "shop.test")], None),
        (&[(":authority", "user@shop.test"), ("host", "shop.test")], None),
        (&[(":authority", "user@shop.test")], None),
        (&[(":authority", ""), ("host", "shop.test")], None),
        (&[("host", "shop.test"), ("host", "shop.test")], None),
    ] {
        let before = upstream.requests().len();
        let mut all = vec![(":method", "GET"), (":scheme", "http"), (":path", "/")];
        all.extend(fields);
        let mut wire = proxy.connect();
        wire.send(frames::request(&all as Fields<'_>, ""));
        frames::await_end(&mut wire);
        let seen = upstream.requests().split_off(before);
        assert_eq!(seen.first().and_then(|seen| seen.header("host")), expected, "{fields:?}");
    }
}
