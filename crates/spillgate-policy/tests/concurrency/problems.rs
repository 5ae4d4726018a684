//! What is wrong in a concurrency limit, and how it is said.

use crate::common::problems;

/// What is wrong in a limit with these lines after its name, on line 2.
fn limit(rest: &str) -> Vec<String> {
    problems(&format!("[[limit]]\nname = 'uploads'\n{rest}\n"))
}

#[test]
fn what_contradicts_a_concurrency_limit_is_told_with_its_line() {
    for (rest, expected) in [
        (
            "quota = '1/s'\nconcurrent = 5",
            "line 4, column 14: limit \"uploads\" has both `quota` \
          and `concurrent`; write two limits",
        ),
        (
            "concurrent = 0",
            "line 3, column 14: limit \"uploads\": concurrent is 0; write at least 1",
        ),
        (
            "concurrent = 1_000_001",
            "line 3, column 14: limit \"uploads\": concurrent is 1000001; \
          write at most 1000000",
        ),
        (
            "concurrent = '5'",
            "line 3, column 14: limit \"uploads\": concurrent is a text; write a \
          number, such as 50, or { limit = 50, ttl = \"30s\" }",
        ),
        (
            "concurrent = {}",
            "line 3, column 14: limit \"uploads\", concurrent has no limit; add \
          limit = 50",
        ),
        (
            "concurrent = { limit = 5, ttl = '2d' }",
            "line 3, column 33: limit \"uploads\", ttl: \
          \"2d\" is out of range; use 1s to 1d",
        ),
        (
            "concurrent = { limit = 5, ttl = '5' }",
            "line 3, column 33: limit \"uploads\", ttl: \"5\" \
          is not a duration; write a duration, such as \"30s\", \"500ms\" or \"1h\"",
        ),
        (
            "concurrent = 5\nalgorithm = 'token-bucket'",
            "line 3, column 14: limit \"uploads\": a \
          limit with `concurrent` has no such `algorithm`",
        ),
        (
            "concurrent = 5\nstart = 'empty'",
            "line 3, column 14: limit \"uploads\": a limit with \
          `concurrent` has no such `start`",
        ),
        (
            "concurrent = 5\nmax-debt = 5",
            "line 3, column 14: limit \"uploads\": a limit with \
          `concurrent` has no such `max-debt`",
        ),
        (
            "concurrent = 5\nsettle = { status = '4xx' }",
            "line 3, column 14: limit \"uploads\": a \
          limit with `concurrent` has no such `settle`",
        ),
        (
            "concurrent = 5\ncost = { header = 'x-cost' }",
            "line 3, column 14: limit \"uploads\": a \
          limit with `concurrent` has no such `cost`",
        ),
        (
            "concurrent = 5\ncost = 6",
            "line 4, column 8: limit \"uploads\": cost is 6, and the limit has 5 permits, so it \
          denies every request; write less",
        ),
        (
            "concurrent = 5\nmatch = { domain = 'edge' }",
            "line 3, column 14: limit \"uploads\": a \
          limit with `concurrent` has no such `match.domain`",
        ),
        (
            "concurrent = 5\nsharing = 'leased'",
            "line 4, column 11: limit \"uploads\", sharing: \
          permits are shared exactly",
        ),
        (
            "concurrent = 5\nwhen-full = 'evict'",
            "line 4, column 13: limit \"uploads\", when-full: \
          permits in use are never evicted",
        ),
        (
            "concurrent = 5\n[[limit.override]]\ncaller = 'user:1'\nquota = '5/s'",
            "line 4, column 1: \
          limit \"uploads\", override 1: the limit is on concurrency; write `concurrent` alone",
        ),
        (
            "quota = '5/s'\n[[limit.override]]\ncaller = 'user:1'\nconcurrent = 5",
            "line 6, column \
          14: limit \"uploads\", override 1: the limit is not on concurrency; write `quota`",
        ),
        (
            "quota = '5/s'\n[[limit.override]]\ncaller = 'user:1'",
            "line 4, column 1: limit \
          \"uploads\", override 1 has no quota",
        ),
        (
            "concurrent = 5\n[tier.gold]\ncallers = ['ip:192.0.2.1']\nuploads = '5/s'",
            "line 6, \
          column 11: tier \"gold\", limit \"uploads\": the limit is on concurrency; write how many",
        ),
        (
            "quota = '5/s'\n[tier.gold]\ncallers = ['ip:192.0.2.1']\nuploads = 5",
            "line 6, column 11: \
          tier \"gold\", limit \"uploads\": a number is not a quota; write a quota",
        ),
        ("", "line 1, column 1: limit \"uploads\" has no quota; add quota"),
    ] {
        let found = limit(rest);
        assert_eq!(found.len(), 1, "{rest}: {found:#?}");
        assert!(found[0].starts_with(expected), "{}\n  should begin with\n{expected}", found[0]);
    }
}

#[test]
fn what_makes_sense_of_a_concurrency_limit_is_accepted() {
    for rest in [
        "concurrent = 1\n",
        "concurrent = 1_000_000\n",
        "concurrent = { limit = 5 }\ncost = 2\nmode = 'shadow'\noutage = 'closed'\n",
        "concurrent = { limit = 5, ttl = '1d' }\nwhen-full = 'deny'\nsharing = 'strict'\n",
        "concurrent = 5\nper = 'global'\nmatch = { path = '/a', method = 'POST' }\n",
        "concurrent = 5\nby-name = true\nper = 'user'\n",
        // A stricter number does not make a rate unreachable, nor the other way round.
        "concurrent = 5\n[[limit]]\nname = 'rate'\nquota = '1/s'\n",
    ] {
        let text = format!("[[limit]]\nname = 'uploads'\n{rest}");
        spillgate_policy::Policy::from_toml(&text).unwrap();
    }
}

#[test]
fn a_builder_is_told_the_same() {
    use std::time::Duration;

    use spillgate_policy::{Limit, Policy};

    for (limit, expected) in [
        (Limit::concurrent("l", 0), "limit \"l\", concurrent: 0 is out of range; use 1 to 1000000"),
        (
            Limit::concurrent("l", 1).permit_ttl(Duration::from_millis(10)),
            "ttl: \"10 ms\" is out of",
        ),
        (Limit::concurrent("l", 1).start_empty(), "no such `start`"),
        (Limit::concurrent("l", 1).cost_of(|_| 1), "no such `cost`"),
        (Limit::concurrent("l", 1).override_for("caller", "user:1", "1/s"), "write `concurrent`"),
        (Limit::new("l", "1/s").concurrent_for("caller", "user:1", 5), "write `quota` alone"),
    ] {
        let error = Policy::builder().limit(limit).build().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\n  should contain\n{expected}");
    }
    Policy::builder()
        .limit(Limit::concurrent("l", 1).permit_ttl(Duration::from_secs(90)))
        .build()
        .unwrap();
}
