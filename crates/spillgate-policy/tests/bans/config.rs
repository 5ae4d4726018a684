//! The `ban` of a limit in a policy file.

use spillgate_policy::{BanSpec, Limit, Mode, Policy};

/// What is wrong with a ban, in a limit with these other keys.
fn problems(limit: &str, ban: &str) -> Vec<String> {
    let text = format!("[[limit]]\nname = \"api\"\nquota = \"10/s\"\n{limit}\nban = {ban}\n");
    match Policy::from_toml(&text) {
        Ok(_) => Vec::new(),
        Err(error) => error.problems().iter().map(ToString::to_string).collect(),
    }
}

fn problem(limit: &str, ban: &str) -> String {
    let problems = problems(limit, ban);
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems.into_iter().next().unwrap()
}

#[test]
fn every_key_can_be_written() {
    for ban in [
        "{ strikes = 1 }",
        "{ strikes = 100, window = \"1s\", duration = \"365d\", decay = \"365 days\" }",
        "{ strikes = 5, factor = 1, max = \"10m\", jitter = 1 }",
        "{ strikes = 5, factor = 1.5, max = \"2d\", jitter = 0.25 }",
        "{ strikes = 5, on = \"denied\" }",
        "{ strikes = 5, on = 404 }",
        "{ strikes = 5, on = [401, \"5xx\", \"report\"], status = 403, mode = \"shadow\" }",
        "{ strikes = 5, on = [\"denied\", 401], refuse = \"next\", status = 429 }",
    ] {
        assert_eq!(problems("", ban), Vec::<String>::new(), "{ban}");
    }
}

#[test]
fn a_ban_that_makes_no_sense_is_refused_with_its_line_and_a_remedy() {
    for (limit, ban, line, expected) in [
        ("", "{ window = \"1m\" }", 5, "there is no `strikes`; add strikes = 5"),
        ("", "{ strikes = 0 }", 5, "strikes is 0; write at least 1"),
        ("", "{ strikes = 101 }", 5, "strikes is 101; write at most 100"),
        ("", "{ strikes = 5, window = \"10\" }", 5, "window: \"10\" is not a duration"),
        ("", "{ strikes = 5, window = \"500ms\" }", 5, "window: \"500ms\" is out of range; use 1s"),
        ("", "{ strikes = 5, duration = \"366d\" }", 5, "duration: \"366d\" is out of range"),
        ("", "{ strikes = 5, decay = \"366d\" }", 5, "decay: \"366d\" is out of range"),
        ("", "{ strikes = 5, max = \"9m\" }", 5, "max: \"9m\" is less than the `duration`"),
        ("", "{ strikes = 5, factor = 0.5 }", 5, "factor: 0.5 is out of range; use 1 to 100"),
        ("", "{ strikes = 5, factor = nan }", 5, "factor: NaN is out of range; use 1 to 100"),
        ("", "{ strikes = 5, factor = \"2\" }", 5, "factor is a text; write a number, such as 2"),
        ("", "{ strikes = 5, jitter = 2 }", 5, "jitter: 2 is out of range; use 0 to 1"),
        ("", "{ strikes = 5, on = \"denyed\" }", 5, "on: unknown \"denyed\""),
        ("", "{ strikes = 5, on = [] }", 5, "on is an empty list"),
        ("", "{ strikes = 5, on = 99 }", 5, "on is 99; write at least 100"),
        ("", "{ strikes = 5, refuse = \"never\" }", 5, "refuse: unknown \"never\""),
        ("", "{ strikes = 5, refuse = \"next\", on = 404 }", 5, "add \"denied\" to `on`"),
        ("", "{ strikes = 5, refuse = \"next\", on = \"report\" }", 5, "add \"denied\" to `on`"),
        ("", "{ strikes = 5, status = 503 }", 5, "status: 503 is neither 429 nor 403"),
        ("", "{ strikes = 5, mode = \"off\" }", 5, "write \"enforce\" or \"shadow\""),
        ("", "{ strikes = 5, banned = true }", 5, "unknown key \"banned\""),
        ("", "5", 5, "ban is a number; write a table, such as { strikes = 5 }"),
        ("per = \"global\"", "{ strikes = 5 }", 5, "counted per global, which names no caller"),
        ("per = \"header:x-a\"", "{ strikes = 5 }", 5, "add \"caller\", \"ip\""),
        ("mode = \"shadow\"", "{ strikes = 5 }", 4, "write mode = \"shadow\" in `ban` too"),
        (
            "mode = \"enforce\"",
            "{ strikes = 5, refuse = \"next\" }",
            4,
            "refuse = \"next\" lets it pass; remove one",
        ),
        ("match = { domain = \"edge\" }", "{ strikes = 5 }", 5, "descriptors have no caller"),
        ("by-name = true", "{ strikes = 5, on = 401 }", 5, "on: a limit that is only asked by its"),
        ("by-name = true", "{ strikes = 5, on = [\"denied\", \"4xx\"] }", 5, "sees no response"),
    ] {
        let problem = problem(limit, ban);
        assert!(problem.contains(expected), "{limit} {ban}: {problem}");
        assert!(problem.starts_with(&format!("line {line}, ")), "{limit} {ban}: {problem}");
        assert!(problem.contains("limit \"api\""), "{limit} {ban}: {problem}");
    }
}

#[test]
fn a_part_that_is_unknown_is_reported_once() {
    let problem = problem("per = \"colour\"", "{ strikes = 5 }");
    assert!(problem.contains("per: unknown \"colour\""), "{problem}");
}

#[test]
fn a_limit_in_shadow_mode_may_ban_in_shadow_mode_or_only_refuse_the_next() {
    assert!(problems("mode = \"shadow\"", "{ strikes = 5, mode = \"shadow\" }").is_empty());
    assert!(problems("mode = \"shadow\"", "{ strikes = 5, refuse = \"next\" }").is_empty());
}

#[test]
fn a_builder_says_the_same_and_is_checked_the_same() {
    let ban = |ban: BanSpec| {
        let limit = Limit::new("api", "10/s").ban(ban);
        Policy::builder().limit(limit).build().map(drop).map_err(|error| error.to_string())
    };
    let good = BanSpec::new(5)
        .window("1m")
        .duration("1h")
        .factor(3.0)
        .max("2d")
        .decay("1w")
        .jitter(0.5)
        .on(["denied", "401"])
        .refuse_next()
        .mode(Mode::Shadow)
        .status(403);
    assert_eq!(ban(good), Ok(()));
    for (bad, expected) in [
        (BanSpec::new(0), "strikes: 0 is out of range; use 1 to 100"),
        (BanSpec::new(101), "strikes: 101 is out of range"),
        (BanSpec::new(1).duration("soon"), "duration: \"soon\" is not a duration"),
        (BanSpec::new(1).factor(f64::INFINITY), "factor: inf is out of range"),
    ] {
        let error = ban(bad).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
