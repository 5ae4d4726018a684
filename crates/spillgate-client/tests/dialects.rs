//! Every dialect of rate limit headers, and what is wrong with some of them.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use spillgate::Timestamp;
use spillgate_client::{AnnouncedLimit, Dialect, RateLimitInfo, Unit, parse, parse_at};

/// 2026-11-17T00:00:00Z
const NOW: Timestamp = Timestamp::from_secs(1_794_873_600);

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn read(lines: &[(&str, &str)]) -> RateLimitInfo {
    parse_at(&headers(lines), NOW)
}

fn millis(millis: u64) -> Option<Duration> {
    Some(Duration::from_millis(millis))
}

/// Dialect, name, unit, limit, remaining, milliseconds to the reset.
type Row<'a> = (Dialect, Option<&'a str>, Unit, Option<u64>, Option<u64>, Option<u64>);

/// Whose headers, the headers, and the limits in them.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [Row<'a>]);

fn row(it: &AnnouncedLimit) -> Row<'_> {
    let reset = it.reset_after.map(|time| time.as_millis() as u64);
    (it.dialect, it.name.as_deref(), it.unit, it.limit, it.remaining, reset)
}

#[test]
fn every_dialect_is_read() {
    use Dialect::*;
    use Unit::{ConcurrentRequests, Other, Requests};
    let cases: &[Case<'_>] = &[
        (
            "IETF draft 8 and later",
            &[
                ("RateLimit-Policy", r#""burst";q=100;w=60, "daily";q=1000;w=86400"#),
                ("RateLimit", r#""burst";r=50;t=30, "daily";r=999"#),
            ],
            &[
                (RateLimit, Some("burst"), Requests, Some(100), Some(50), Some(30_000)),
                (RateLimit, Some("daily"), Requests, Some(1000), Some(999), None),
            ],
        ),
        (
            "a name with separators in it, and a partition",
            &[("RateLimit", r#""a;b, c\"d";r=5;t=1, "user";r=1;pk=:YWxpY2U=:"#)],
            &[
                (RateLimit, Some(r#"a;b, c\"d"#), Requests, None, Some(5), Some(1000)),
                (RateLimit, Some("user/:YWxpY2U=:"), Requests, None, Some(1), None),
            ],
        ),
        (
            "units of the IETF's draft",
            &[
                (
                    "RateLimit-Policy",
                    r#""up";q=5;qu="concurrent-requests", "bytes";q=9;qu="content-bytes""#,
                ),
                ("RateLimit", r#""up";r=2, "bytes";r=3;t=1"#),
            ],
            &[
                (RateLimit, Some("up"), ConcurrentRequests, Some(5), Some(2), None),
                (RateLimit, Some("bytes"), Other, Some(9), Some(3), Some(1000)),
            ],
        ),
        (
            "IETF draft 7",
            &[("RateLimit", "limit=100, remaining=50, reset=30"), ("RateLimit-Policy", "100;w=60")],
            &[(RateLimit, None, Requests, Some(100), Some(50), Some(30_000))],
        ),
        (
            "IETF drafts up to 6",
            &[
                ("RateLimit-Limit", "100, 100;w=60, 1000;w=3600"),
                ("RateLimit-Remaining", "50"),
                ("RateLimit-Reset", "30"),
            ],
            &[(RateLimitFields, None, Requests, Some(100), Some(50), Some(30_000))],
        ),
        (
            "GitLab",
            &[
                ("RateLimit-Limit", "600"),
                ("RateLimit-Name", "throttle_authenticated_web"),
                ("RateLimit-Observed", "1"),
                ("RateLimit-Remaining", "599"),
                ("RateLimit-Reset", "1794873660"),
            ],
            &[(
                RateLimitFields,
                Some("throttle_authenticated_web"),
                Requests,
                Some(600),
                Some(599),
                Some(60_000),
            )],
        ),
        (
            "GitHub",
            &[
                ("x-ratelimit-limit", "5000"),
                ("x-ratelimit-remaining", "4999"),
                ("x-ratelimit-used", "1"),
                ("x-ratelimit-reset", "1794877200"),
                ("x-ratelimit-resource", "core"),
            ],
            &[(XRateLimit, Some("core"), Requests, Some(5000), Some(4999), Some(3_600_000))],
        ),
        (
            "Discord",
            &[
                ("X-RateLimit-Limit", "5"),
                ("X-RateLimit-Remaining", "0"),
                ("X-RateLimit-Reset", "1794873601.234"),
                ("X-RateLimit-Reset-After", "1.25"),
                ("X-RateLimit-Bucket", "abcd1234"),
            ],
            &[(XRateLimit, Some("abcd1234"), Requests, Some(5), Some(0), Some(1250))],
        ),
        (
            "Reddit",
            &[
                ("X-Ratelimit-Used", "12"),
                ("X-Ratelimit-Remaining", "987.0"),
                ("X-Ratelimit-Reset", "213.5"),
            ],
            &[(XRateLimit, None, Requests, Some(999), Some(987), Some(213_500))],
        ),
        (
            "X",
            &[
                ("x-rate-limit-limit", "900"),
                ("x-rate-limit-remaining", "899"),
                ("x-rate-limit-reset", "1794874500"),
            ],
            &[(XRateLimitHyphen, None, Requests, Some(900), Some(899), Some(900_000))],
        ),
        (
            "OpenAI",
            &[
                ("x-ratelimit-limit-requests", "60"),
                ("x-ratelimit-limit-tokens", "150000"),
                ("x-ratelimit-remaining-requests", "59"),
                ("x-ratelimit-remaining-tokens", "149984"),
                ("x-ratelimit-reset-requests", "12ms"),
                ("x-ratelimit-reset-tokens", "6m0s"),
            ],
            &[
                (OpenAi, Some("requests"), Requests, Some(60), Some(59), Some(12)),
                (OpenAi, Some("tokens"), Other, Some(150_000), Some(149_984), Some(360_000)),
            ],
        ),
        (
            "Anthropic",
            &[
                ("anthropic-ratelimit-requests-limit", "50"),
                ("anthropic-ratelimit-requests-remaining", "49"),
                ("anthropic-ratelimit-requests-reset", "2026-11-17T00:00:01Z"),
                ("anthropic-ratelimit-tokens-limit", "100000"),
                ("anthropic-ratelimit-tokens-remaining", "99000"),
                ("anthropic-ratelimit-tokens-reset", "2026-11-17T00:01:00.5Z"),
                ("anthropic-ratelimit-input-tokens-limit", "80000"),
                ("anthropic-ratelimit-input-tokens-remaining", "79000"),
                ("anthropic-ratelimit-input-tokens-reset", "2026-11-17T01:00:02+01:00"),
                ("anthropic-ratelimit-output-tokens-limit", "20000"),
                ("anthropic-ratelimit-output-tokens-remaining", "0"),
                ("anthropic-ratelimit-output-tokens-reset", "2026-11-16T16:00:03-08:00"),
            ],
            &[
                (Anthropic, Some("requests"), Requests, Some(50), Some(49), Some(1000)),
                (Anthropic, Some("tokens"), Other, Some(100_000), Some(99_000), Some(60_500)),
                (Anthropic, Some("input-tokens"), Other, Some(80_000), Some(79_000), Some(2000)),
                (Anthropic, Some("output-tokens"), Other, Some(20_000), Some(0), Some(3000)),
            ],
        ),
        (
            "Linear",
            &[
                ("X-RateLimit-Requests-Limit", "1500"),
                ("X-RateLimit-Requests-Remaining", "1499"),
                ("X-RateLimit-Requests-Reset", "1794877200000"),
                ("X-RateLimit-Complexity-Limit", "250000"),
                ("X-RateLimit-Complexity-Remaining", "249900"),
                ("X-RateLimit-Complexity-Reset", "1794873600500"),
            ],
            &[
                (Linear, Some("requests"), Requests, Some(1500), Some(1499), Some(3_600_000)),
                (Linear, Some("complexity"), Other, Some(250_000), Some(249_900), Some(500)),
            ],
        ),
        (
            "Shopify",
            &[("X-Shopify-Shop-Api-Call-Limit", "32/40")],
            &[(Shopify, None, Requests, Some(40), Some(8), None)],
        ),
        (
            "two families that contradict each other: both are reported",
            &[
                ("RateLimit", "\"a\";r=100;t=1"),
                ("X-RateLimit-Limit", "10"),
                ("X-RateLimit-Remaining", "1"),
                ("X-RateLimit-Reset", "60"),
            ],
            &[
                (RateLimit, Some("a"), Requests, None, Some(100), Some(1000)),
                (XRateLimit, None, Requests, Some(10), Some(1), Some(60_000)),
            ],
        ),
        (
            "a header that is there twice: the most cautious value",
            &[
                ("X-RateLimit-Limit", "10"),
                ("X-RateLimit-Remaining", "9, 4"),
                ("X-RateLimit-Remaining", "3"),
                ("X-RateLimit-Reset", "60"),
                ("X-RateLimit-Reset", "120"),
            ],
            &[(XRateLimit, None, Requests, Some(10), Some(3), Some(120_000))],
        ),
    ];
    for (name, lines, expected) in cases {
        let info = read(lines);
        let found: Vec<_> = info.limits.iter().map(row).collect();
        assert_eq!(found, *expected, "{name}");
    }
}

#[test]
fn windows_are_read_where_they_are_announced() {
    for lines in [
        &[("RateLimit-Policy", "\"a\";q=100;w=60"), ("RateLimit", "\"a\";r=1")][..],
        &[("RateLimit", "limit=100, remaining=50"), ("RateLimit-Policy", "10;w=1, 100;w=60")],
        &[("RateLimit-Limit", "100, 100;w=60"), ("RateLimit-Remaining", "5")],
    ] {
        assert_eq!(read(lines).limits[0].window, millis(60_000), "{lines:?}");
    }
}

#[test]
fn retry_after_is_read_in_every_form() {
    let date = ("date", "Tue, 17 Nov 2026 00:00:00 GMT");
    for (lines, expected) in [
        (&[("Retry-After", "120")][..], millis(120_000)),
        (&[("Retry-After", "1.5")], millis(1500)),
        (&[("Retry-After", "0")], millis(0)),
        (&[("Retry-After", " 7 ")], millis(7000)),
        (&[("Retry-After", "Tue, 17 Nov 2026 00:01:00 GMT")], millis(60_000)),
        (&[("Retry-After", "Tuesday, 17-Nov-26 00:01:00 GMT")], millis(60_000)),
        (&[("Retry-After", "Tue Nov 17 00:01:00 2026")], millis(60_000)),
        (&[("Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT")], millis(0)),
        (&[("Retry-After", "1794873605")], millis(5000)),
        (&[("Retry-After", "2026-11-17T00:00:09Z")], millis(9000)),
        (&[("retry-after-ms", "250"), ("Retry-After", "9")], millis(250)),
        (&[("x-ms-retry-after-ms", "750"), ("Retry-After", "9")], millis(750)),
        (&[("retry-after-ms", "250"), ("x-ms-retry-after-ms", "750")], millis(750)),
        (&[("retry-after-ms", "soon"), ("Retry-After", "9")], millis(9000)),
        (&[("Retry-After", "5"), ("Retry-After", "9")], millis(9000)),
        (&[("Retry-After", "-5")], None),
        (&[("Retry-After", "")], None),
        (&[("Retry-After", "soon")], None),
        (&[("Retry-After", "1e3")], None),
        (&[("Retry-After", "inf")], None),
        (&[("Retry-After", "NaN")], None),
        (&[("Retry-After", "1.2.3")], None),
        (&[("Retry-After", "Tue, 17 Nov 2026 00:01:00 GMT"), date], millis(60_000)),
        // The clock of the far side is a minute behind.
        (
            &[
                ("Retry-After", "Mon, 16 Nov 2026 23:59:05 GMT"),
                ("date", "Mon, 16 Nov 2026 23:59:00 GMT"),
            ],
            millis(5000),
        ),
    ] {
        assert_eq!(read(lines).retry_after, expected, "{lines:?}");
    }
    for (value, expected) in [("true", Some(true)), ("False", Some(false)), ("1", None), ("", None)]
    {
        assert_eq!(read(&[("x-should-retry", value)]).should_retry, expected, "{value}");
    }
}

#[test]
fn moments_are_compared_with_the_date_of_the_response() {
    let date = ("date", "Mon, 16 Nov 2026 23:00:00 GMT");
    for (reset, expected) in [
        ("1794870060", 60_000),
        ("1794870060000", 60_000),
        ("2026-11-16T23:01:00Z", 60_000),
        ("Mon, 16 Nov 2026 23:01:00 GMT", 60_000),
        // Times as such are not moments.
        ("60", 60_000),
        ("999999999", 31 * 24 * 3_600_000),
        // The past.
        ("1794869999", 0),
        ("1000000000", 0),
        ("1970-01-01T00:00:00Z", 0),
    ] {
        let lines = [("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", reset), date];
        assert_eq!(read(&lines).limits[0].reset_after, millis(expected), "{reset}");
    }
}

#[test]
fn resets_are_read_in_every_format_and_cut_to_the_longest() {
    let longest = RateLimitInfo::LONGEST.as_millis() as u64;
    for (reset, expected) in [
        ("6m0s", Some(360_000)),
        ("1h2m3.5s", Some(3_723_500)),
        ("12ms", Some(12)),
        ("7.66s", Some(7660)),
        ("2000us", Some(2)),
        ("0s", Some(0)),
        ("0.25", Some(250)),
        ("9999-12-31T23:59:59Z", Some(longest)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", Some(longest)),
        ("253402300799", Some(longest)),
        ("99999999999999999999", Some(longest)),
        ("9999999999999999999999999999999h", Some(longest)),
        ("-1", None),
        ("-1.5s", None),
        ("1x", None),
        ("s", None),
        ("1h-2m", None),
        ("2026-13-45T00:00:00Z", None),
        ("2026-11-17T00:00:00+99", None),
        ("2026-11-17T00:00:00", None),
    ] {
        let lines = [("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", reset)];
        let read = read(&lines).limits[0].reset_after;
        assert_eq!(read, expected.and_then(millis), "{reset}");
    }
}

#[test]
fn amounts_that_mean_nothing_are_left_out() {
    let most = RateLimitInfo::MOST;
    for (limit, remaining, expected) in [
        ("100", "50", Some((Some(100), Some(50)))),
        ("100", "-1", Some((Some(100), None))),
        ("100", "many", Some((Some(100), None))),
        ("100", "", Some((Some(100), None))),
        ("-1", "-1", None),
        ("-1", "0", None),
        ("0", "0", None),
        ("0", "10", None),
        ("unlimited", "5", Some((None, Some(5)))),
        ("unlimited", "unlimited", None),
        ("1000000000", "999999999", Some((Some(1_000_000_000), Some(999_999_999)))),
        ("99999999999999999999999", "99999999999999999999999", Some((Some(most), Some(most)))),
        ("10", "10.9", Some((Some(10), Some(10)))),
    ] {
        let lines = [("x-ratelimit-limit", limit), ("x-ratelimit-remaining", remaining)];
        let found = read(&lines).limits.first().map(|it| (it.limit, it.remaining));
        assert_eq!(found, expected, "{limit} {remaining}");
    }
    for value in ["32", "/", "a/b", "32/0", "-1/40", "1/2/3"] {
        let info = read(&[("x-shopify-shop-api-call-limit", value)]);
        assert!(info.is_empty(), "{value}: {info:?}");
    }
    let bad = [
        "",
        ";",
        ",",
        "\"",
        "\"a",
        "\"a\"",
        "\"a\";r",
        "\"a\";r=",
        "\"a\";r=x",
        "limit=",
        "limit=0, remaining=0",
    ];
    for value in bad {
        let info = read(&[("ratelimit", value), ("ratelimit-policy", value)]);
        assert!(info.is_empty(), "{value}: {info:?}");
    }
    assert!(read(&[]).is_empty());
}

#[test]
fn one_bad_item_does_not_spoil_the_others() {
    let info = read(&[("ratelimit", "\"a\";r=x, ;;, \"b\";r=5;t=1, \"c")]);
    assert_eq!(info.limits.iter().map(|it| it.name.as_deref()).collect::<Vec<_>>(), [Some("b")]);
}

#[test]
fn a_malformed_reset_after_does_not_hide_the_reset() {
    for (after, expected) in [("soon", millis(20_000)), ("", millis(20_000)), ("3", millis(3_000))]
    {
        let info = read(&[
            ("x-ratelimit-limit", "5"),
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset-after", after),
            ("x-ratelimit-reset", "20"),
        ]);
        assert_eq!(info.limits[0].reset_after, expected, "{after:?}");
    }
}

#[test]
fn names_and_numbers_of_limits_are_bounded() {
    let long = "ä".repeat(100);
    let mut lines = HeaderMap::new();
    let name = HeaderValue::from_bytes(b"x-very-long-".repeat(20).as_slice()).unwrap();
    lines.insert("x-ratelimit-bucket", name);
    lines.insert("x-ratelimit-remaining", HeaderValue::from_static("1"));
    let many: Vec<_> = (0..1000).map(|number| format!("\"{number}\";r={number}")).collect();
    lines.insert("ratelimit", many.join(", ").parse().unwrap());
    let info = parse(&lines);
    assert_eq!(info.limits.len(), RateLimitInfo::MAX_LIMITS);
    let named = read(&[("x-ratelimit-bucket", &"b".repeat(500)), ("x-ratelimit-remaining", "1")]);
    assert_eq!(named.limits[0].name.as_deref().map(str::len), Some(64));
    // Not text that a header can be read as.
    let mut lines = HeaderMap::new();
    lines.insert("x-ratelimit-bucket", HeaderValue::from_bytes(long.as_bytes()).unwrap());
    lines.insert("x-ratelimit-remaining", HeaderValue::from_static("1"));
    assert_eq!(parse(&lines).limits[0].name, None);
}

#[test]
fn global_limits_are_recognised() {
    assert!(read(&[("X-RateLimit-Global", "true")]).is_global);
    assert!(read(&[("X-RateLimit-Scope", "global")]).is_global);
    assert!(!read(&[("X-RateLimit-Scope", "user"), ("X-RateLimit-Global", "false")]).is_global);
}

#[test]
fn the_nearest_limit_has_the_smallest_share_left() {
    let info = read(&[
        ("RateLimit-Policy", "\"a\";q=100, \"b\";q=1000"),
        ("RateLimit", "\"a\";r=50;t=1, \"b\";r=100;t=1"),
    ]);
    assert_eq!(info.nearest().unwrap().name.as_deref(), Some("b"));
    assert!(!info.is_exhausted());
    assert!(read(&[]).nearest().is_none());
}

const NAMES: &[&str] = &[
    "retry-after",
    "retry-after-ms",
    "x-ms-retry-after-ms",
    "x-should-retry",
    "date",
    "ratelimit",
    "ratelimit-policy",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "ratelimit-name",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-used",
    "x-ratelimit-reset",
    "x-ratelimit-reset-after",
    "x-ratelimit-bucket",
    "x-rate-limit-limit",
    "x-rate-limit-remaining",
    "x-rate-limit-reset",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
    "anthropic-ratelimit-requests-limit",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
    "x-ratelimit-requests-remaining",
    "x-ratelimit-requests-reset",
    "x-shopify-shop-api-call-limit",
];

/// Values that look like one, and others.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,40}",
        "-?[0-9]{1,15}(\\.[0-9]{1,5})?",
        "([0-9]{1,9}(\\.[0-9])?(h|m|s|ms|us)){1,3}",
        "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})",
        "\"[a-z]{0,3}\";(r|q|t|w|qu|pk)=[0-9a-z\":]{0,20}(;(r|t|w)=[0-9]{1,20})?(, .{0,10})?",
        "(limit|remaining|reset)=[0-9]{1,20}(, (limit|remaining|reset)=-?[0-9]{1,20})?",
        "(Mon|Tue), [0-3][0-9] (Nov|Dec) [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT",
        "[ -~]{0,40}",
        "\\PC{0,20}",
    ]
}

proptest! {
    #[test]
    fn whatever_headers_say_what_is_read_is_bounded(
        lines in prop::collection::vec((0..NAMES.len(), value()), 0..12),
        now in any::<u64>(),
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in &lines {
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                headers.append(NAMES[*name], value);
            }
        }
        let info = parse_at(&headers, Timestamp::from_nanos(now));
        prop_assert!(info.limits.len() <= RateLimitInfo::MAX_LIMITS);
        prop_assert!(info.retry_after <= Some(RateLimitInfo::LONGEST));
        for limit in &info.limits {
            prop_assert!(limit.reset_after <= Some(RateLimitInfo::LONGEST));
            prop_assert!(limit.window <= Some(RateLimitInfo::LONGEST));
            prop_assert!(limit.limit <= Some(RateLimitInfo::MOST) && limit.limit != Some(0));
            prop_assert!(limit.remaining <= Some(RateLimitInfo::MOST));
            prop_assert!(limit.limit.is_some() || limit.remaining.is_some());
            prop_assert!(limit.name.as_ref().is_none_or(|name| (1..=64).contains(&name.len())));
        }
    }
}
