//! What is wrong in an adaptive limit, and how it is said.

use spillgate_policy::{Adaptive, Limit, Policy, Priorities, PriorityRule};

use crate::common::problems;

/// What is wrong in an adaptive limit, on line 3, with these lines after it.
fn limit(adaptive: &str, rest: &str) -> Vec<String> {
    problems(&format!("[[limit]]\nname = 'service'\nadaptive = {{ {adaptive} }}\n{rest}\n"))
}

/// Checks the only problem of each.
fn check(cases: &[(&str, &str, &str)]) {
    for (adaptive, rest, expected) in cases {
        assert_eq!(limit(adaptive, rest), [*expected], "{adaptive} {rest}");
    }
}

#[test]
fn unknown_controllers_and_signals_are_told_with_what_was_meant() {
    check(&[
        (
            "controller = 'atuo', min = 1, max = 9",
            "",
            "line 3, column 27: limit \"service\", adaptive: unknown controller \"atuo\"; did you \
             mean \"auto\"?",
        ),
        (
            "controller = 'vegas', min = 1, max = 9",
            "",
            "line 3, column 27: limit \"service\", adaptive: unknown controller \"vegas\"; use one \
             of auto, target, errors, aimd, load",
        ),
        (
            "signal = 'cpus', target = 0.8, min = 1, max = 9",
            "",
            "line 3, column 23: limit \"service\", adaptive: unknown signal \"cpus\"; did you mean \
             \"cpu\"?",
        ),
        (
            "controller = 'auto', signal = 'cpu', min = 1, max = 9",
            "",
            "line 3, column 44: limit \"service\", adaptive: \"auto\" does not look at \"cpu\"; write \
             signal = \"latency\", or leave it out",
        ),
        (
            "controller = 'aimd', signal = 'queue-wait', min = 1, max = 9",
            "",
            "line 3, column 44: limit \"service\", adaptive: \"aimd\" does not look at \
             \"queue-wait\"; write signal = \"errors\", or leave it out",
        ),
        (
            "control = 'auto', min = 1, max = 9",
            "",
            "line 3, column 14: limit \"service\", adaptive: unknown key \"control\"; did you mean \
             \"controller\"?",
        ),
    ]);
}

#[test]
fn bounds_that_cannot_be_are_told_with_what_would_be_right() {
    check(&[
        (
            "min = 9, max = 1",
            "",
            "line 3, column 20: limit \"service\", adaptive: min is 9, above max, 1; swap them, \
             or write less",
        ),
        (
            "min = 0, max = 9",
            "",
            "line 3, column 20: limit \"service\", adaptive, min: 0 is out of range; use 1 to 1000000",
        ),
        (
            "min = 1, max = 1_000_001",
            "",
            "line 3, column 29: limit \"service\", adaptive, max: 1000001 is out of range; use 1 to \
             1000000",
        ),
        (
            "min = 1.5, max = 9",
            "",
            "line 3, column 20: limit \"service\", adaptive, min: 1.5 is not a number of requests in \
             flight; write one such as 10",
        ),
        (
            "max = 9",
            "",
            "line 3, column 12: limit \"service\", adaptive: there is no min; add min = 10",
        ),
        (
            "min = 9",
            "",
            "line 3, column 12: limit \"service\", adaptive: there is no max; add max = 500",
        ),
        (
            "signal = 'cpu', target = 0.8, min = '10/s'",
            "",
            "line 3, column 12: limit \"service\", adaptive: there is no max; add max = \"200/s\"",
        ),
        (
            "signal = 'cpu', target = 0.8, min = 10, max = '20/s'",
            "",
            "line 3, column 50: limit \"service\", adaptive, min: 10 is a number, and another key \
             has a quota; write quotas for a rate, or numbers for requests in flight, in all keys",
        ),
        (
            "signal = 'cpu', target = 0.8, min = '90/s', max = '20/s'",
            "",
            "line 3, column 50: limit \"service\", adaptive: min is \"90/s\", above max, \"20/s\"; \
             swap them, or write less",
        ),
        (
            "min = '10/s', max = '20/s'",
            "",
            "line 3, column 12: limit \"service\", adaptive: \"auto\" finds how many requests are in \
             flight, and these are quotas; write numbers, or signal = \"cpu\" and a target",
        ),
        (
            "min = 1, max = 9, start = 10",
            "",
            "line 3, column 40: limit \"service\", adaptive: start is 10, not between min and max; \
             write one of these, or leave it out",
        ),
        (
            "min = [1], max = 9",
            "",
            "line 3, column 20: limit \"service\", adaptive: min is a list; write a number or a text, \
             such as 10 or \"10/s\"",
        ),
    ]);
}

#[test]
fn quotas_that_a_moving_bucket_cannot_count_are_refused() {
    for (min, max, why) in [
        ("burst 5", "20/s", "adaptive, min: \"burst 5\" never refills"),
        ("10/x", "20/s", "adaptive, min, quota \"10/x\""),
        ("1/day burst 1", "1/day burst 20000", "can count; use at most"),
    ] {
        let told =
            limit(&format!("signal = 'cpu', target = 0.8, min = '{min}', max = '{max}'"), "");
        assert!(told.len() == 1 && told[0].contains(why), "{told:?}");
        assert!(told[0].starts_with("line 3, "), "{told:?}");
    }
}

#[test]
fn a_target_is_there_where_it_means_something_and_of_the_right_type() {
    check(&[
        (
            "controller = 'target', min = 1, max = 9",
            "",
            "line 3, column 12: limit \"service\", adaptive: \"target\" has no target; add target = \
             \"40ms\"",
        ),
        (
            "signal = 'cpu', min = 1, max = 9",
            "",
            "line 3, column 12: limit \"service\", adaptive: \"load\" has no target; add target = 0.8",
        ),
        (
            "target = '40ms', min = 1, max = 9",
            "",
            "line 3, column 23: limit \"service\", adaptive: \"auto\" has no `target`; remove it, or \
             write controller = \"target\"",
        ),
        (
            "controller = 'target', target = 0.8, min = 1, max = 9",
            "",
            "line 3, column 46: limit \"service\", adaptive, target: 0.8 is not a latency; write one \
             such as \"40ms\"",
        ),
        (
            "controller = 'load', target = '40ms', min = 1, max = 9",
            "",
            "line 3, column 44: limit \"service\", adaptive, target: \"40ms\" is not a load; write one \
             such as 0.8",
        ),
        (
            "signal = 'cpu', target = 80, min = 1, max = 9",
            "",
            "line 3, column 39: limit \"service\", adaptive, target: 80 is out of range; write a load \
             between 0 and 1, such as 0.8",
        ),
        (
            "signal = 'cpu', target = nan, min = 1, max = 9",
            "",
            "line 3, column 39: limit \"service\", adaptive, target: NaN is out of range; write a \
             load between 0 and 1, such as 0.8",
        ),
        (
            "controller = 'target', target = '1h', min = 1, max = 9",
            "",
            "line 3, column 46: limit \"service\", adaptive, target: \"1h\" is out of range; use 1ms \
             to 10min",
        ),
        (
            "controller = 'target', target = 'fast', min = 1, max = 9",
            "",
            "line 3, column 46: limit \"service\", adaptive, target: \"fast\" is not a duration; write \
             a duration, such as \"30s\", \"500ms\" or \"1h\"",
        ),
    ]);
}

#[test]
fn shares_are_between_0_and_1_and_of_one_controller() {
    let errors = |rest: &str| limit(&format!("controller = 'errors', {rest}"), "");
    for (rest, expected) in [
        ("max = 9", "adaptive: \"errors\" has no `max`: it lets every request through at best"),
        ("min = 0", "adaptive, min: 0 is not a share; write one above 0 and up to 1"),
        ("min = 1.1", "adaptive, min: 1.1 is not a share"),
        ("min = '10/s'", "adaptive, min: \"10/s\" is not a share"),
        ("min = 0.5, start = 0.4", "start is 0.4, not between min and max"),
        ("threshold = 1", "adaptive, threshold: 1 is out of range; write a share between 0 and 1"),
        ("threshold = 0.0", "adaptive, threshold: 0 is out of range"),
        ("aggression = 0", "adaptive, aggression: 0 is out of range; use 0.1 to 10"),
        ("aggression = 11", "adaptive, aggression: 11 is out of range"),
    ] {
        let told = errors(rest);
        assert!(told.len() == 1 && told[0].contains(expected), "{rest}: {told:?}");
    }
    check(&[
        (
            "min = 1, max = 9, threshold = 0.9",
            "",
            "line 3, column 44: limit \"service\", adaptive: \"auto\" has no `threshold`; remove it, \
             or write controller = \"errors\"",
        ),
        (
            "controller = 'aimd', min = 1, max = 9, aggression = 2",
            "",
            "line 3, column 66: limit \"service\", adaptive: \"aimd\" has no `aggression`; remove it, \
             or write controller = \"errors\"",
        ),
    ]);
}

#[test]
fn what_means_nothing_beside_adaptive_is_told() {
    for (rest, key) in [
        ("algorithm = 'token-bucket'", "algorithm"),
        ("start = 'empty'", "start"),
        ("capacity = 9", "capacity"),
        ("when-full = 'deny'", "when-full"),
        ("max-debt = 9", "max-debt"),
        ("sharing = 'leased'", "sharing"),
        ("outage = 'open'", "outage"),
        ("cost = 2", "cost"),
        ("settle = { status = '4xx' }", "settle"),
    ] {
        let told = limit("min = 1, max = 9", rest);
        let expected = format!("limit \"service\": a limit with `adaptive` has no `{key}`, since ");
        assert!(told.len() == 1 && told[0].contains(&expected), "{rest}: {told:?}");
        assert!(told[0].starts_with("line 3, column 12: ") && told[0].ends_with("; remove it"));
    }
    let ban =
        limit("signal = 'cpu', target = 0.8, min = '1/s', max = '9/s'", "ban = { strikes = 5 }");
    assert!(ban.len() == 1 && ban[0].contains("has no `ban`"), "{ban:?}");
    let own = limit("min = 1, max = 9", "[[limit.override]]\nquota = '1/s'");
    assert!(own.len() == 1 && own[0].contains("has no `override`"), "{own:?}");
    let edge = limit("min = 1, max = 9", "match = { domain = 'edge' }");
    assert!(edge.iter().any(|it| it.contains("has no `match.domain`")), "{edge:?}");
    let tier = limit("min = 1, max = 9", "[tier.gold]\ncallers = ['ip:192.0.2.1']\nservice = 5");
    assert!(
        tier.len() == 1
            && tier[0].contains("tier \"gold\", limit \"service\": the limit follows load"),
        "{tier:?}"
    );
}

#[test]
fn another_kind_of_limit_is_another_limit() {
    check(&[
        (
            "min = 1, max = 9",
            "quota = '5/s'",
            "line 3, column 12: limit \"service\" has both `quota` and `adaptive`; write two limits",
        ),
        (
            "min = 1, max = 9",
            "concurrent = 5",
            "line 3, column 12: limit \"service\" has both `concurrent` and `adaptive`; write two \
             limits",
        ),
        (
            "min = 1, max = 9",
            "per = 'caller'",
            "line 4, column 7: limit \"service\", per: \"caller\" means nothing here: what is in \
             flight, or let through, is one number for the whole service; write per = \"global\", or \
             leave it out",
        ),
    ]);
    let neither = problems("[[limit]]\nname = 'service'\n");
    assert!(neither[0].contains("has no quota"), "{neither:?}");
}

#[test]
fn everything_is_told_at_once() {
    let told = limit(
        "controller = 'target', target = 5, min = 0, max = 'x', threshold = 2",
        "quota = '1/s'\nban = { strikes = 5 }",
    );
    assert!(told.len() >= 5, "{told:#?}");
}

#[test]
fn what_a_rate_can_have_is_accepted() {
    let rate = "[[limit]]\nname = 'service'\nper = ['ip', 'header:x-tenant']\ncost = 2\n\
                capacity = 9\nwhen-full = 'deny'\nmode = 'shadow'\n\
                adaptive = { signal = 'cpu', target = 0.8, min = '1/s', max = '9/s', start = '5/s' }\n";
    assert!(Policy::from_toml(rate).is_ok());
    for signal in ["process-cpu", "machine-cpu", "cgroup-cpu"] {
        assert!(Policy::from_toml(&rate.replace("'cpu'", &format!("'{signal}'"))).is_ok());
    }
}

#[test]
fn a_builder_is_told_the_same() {
    let limit = |adaptive: Adaptive| {
        let built = Policy::builder().limit(Limit::adaptive("service", adaptive)).build();
        built.unwrap_err().to_string()
    };
    let both = Adaptive::load(0.8, 1..=9).signal(|| None).signal_named("cpu");
    assert!(limit(both).contains("there are both a signal and a closure; remove one"));
    let auto = Adaptive::auto(1..=9).signal(|| None);
    assert!(limit(auto).contains("\"auto\" does not look at a closure"));
    assert!(limit(Adaptive::load(0.0, 1..=9).signal(|| None)).contains("write a load above 0"));
    assert!(
        limit(Adaptive::target(std::time::Duration::ZERO, 1..=9)).contains("is not a duration")
    );
    let rule = PriorityRule::new(spillgate::adaptive::PriorityClass::High);
    let priorities = Priorities::new().rule(rule);
    let built = Policy::builder()
        .limit(Limit::adaptive("service", Adaptive::auto(1..=9)))
        .priority(priorities)
        .build();
    assert!(built.unwrap_err().to_string().contains("rule 1 has no `match`"));
}
