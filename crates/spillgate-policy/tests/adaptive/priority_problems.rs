//! What is wrong in priorities, and how it is said.

use crate::common::problems;

/// What is wrong in priorities, which begin on line 5.
fn priority(text: &str) -> Vec<String> {
    let service = "[[limit]]\nname = 'service'\nadaptive = { min = 1, max = 9 }\n";
    problems(&format!("{service}[tier.gold]\ncallers = ['ip:192.0.2.1']\n{text}\n"))
}

#[test]
fn priorities_that_cannot_be_are_told_with_what_would_be_right() {
    for (text, expected) in [
        (
            "[priority]\ndefault = 'hihg'",
            "line 7, column 11: priority, default: unknown class \"hihg\"; did you mean \"high\"?",
        ),
        (
            "[priority]\ntier = { gold = 'top' }",
            "line 7, column 17: priority, tier \"gold\": unknown class \"top\"; use one of sheddable, \
             low, normal, high, critical",
        ),
        (
            "[priority]\ntier = { glod = 'high' }",
            "line 7, column 17: priority, tier: there is no tier \"glod\"; did you mean \"gold\"?",
        ),
        (
            "[priority]\nheader = 'x-priority'",
            "line 7, column 10: priority, header: it is believed from trusted proxies only, and there \
             are none; name the `trusted-proxies` in `identity`, or remove it",
        ),
        (
            "[[priority.rule]]\nclass = 'high'",
            "line 6, column 1: priority, rule 1 has no `match`, so it is for every request; add one, \
             such as match = { path = \"/checkout\" }, or set `default`",
        ),
        (
            "[[priority.rule]]\nclass = 'high'\nmatch = {}",
            "line 6, column 1: priority, rule 1 has no `match`, so it is for every request; add one, \
             such as match = { path = \"/checkout\" }, or set `default`",
        ),
        (
            "[[priority.rule]]\nmatch = { path = '/a' }",
            "line 6, column 1: priority, rule 1 has no class; add class = \"critical\"",
        ),
        (
            "[[priority.rule]]\nclass = 'high'\nmatch = { header = { x-vip = '*' } }",
            "line 6, column 1: priority, rule 1: a header that raises the class is believed from \
             trusted proxies only, and there are none; name the `trusted-proxies`",
        ),
        (
            "[[priority.rule]]\nclass = 'high'\nmatch = { path = 'a' }",
            "line 8, column 18: priority, rule 1: the path \"a\" does not begin with a slash",
        ),
        (
            "[[priority.rule]]\nclass = 'high'\nmatch = { domain = 'a', path = '/a' }",
            "line 8, column 11: priority, rule 1, match: unknown key \"domain\"; known are path, \
             method, host, header",
        ),
        (
            "[priority]\nlevel = 5",
            "line 7, column 1: priority: unknown key \"level\"; known are tier, default, header, rule",
        ),
    ] {
        let told = priority(text);
        let begins = told.len() == 1 && told[0].starts_with(expected.get(..30).unwrap());
        assert!(begins && told[0].contains(expected.get(30..).unwrap()), "{text}: {told:#?}");
    }
}

#[test]
fn priorities_that_nothing_is_shed_by_are_refused() {
    let told = problems("[[limit]]\nname = 'api'\nquota = '5/s'\n[priority]\ndefault = 'low'\n");
    assert_eq!(
        told,
        [
            "line 4, column 1: priority: no limit follows load, so nothing is ever shed by priority; \
          give a limit `adaptive`, or remove [priority]"
        ]
    );
}
