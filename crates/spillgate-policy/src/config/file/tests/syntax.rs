use super::{check, problems};

#[test]
fn every_line_with_an_error_of_syntax_is_told_and_the_others_are_still_checked() {
    check(&[
        ("allow = [\"a\"", &["1:13: this is not TOML: unclosed array, expected `]`"]),
        (
            "[[limit]]\nname = public\nquota = 10/s\nmdoe = 1",
            &[
                "2:8: this is not TOML: string values must be quoted, expected literal string",
                "3:9: this is not TOML: string values must be quoted, expected literal string",
                "4:1: limit 1: unknown key \"mdoe\"; did you mean \"mode\"?",
            ],
        ),
        (
            "block = 1\nallow = [\"a\" \"b\" 1]\n[identity]\norder = ",
            &[
                "1:9: block is a number; write a list, such as [\"192.0.2.7\"]",
                "2:14: this is not TOML: missing comma between array elements, expected `,`",
                "4:9: this is not TOML: string values must be quoted, expected literal string",
            ],
        ),
        (
            "[[limit]]\nname = \"a\"\nname = \"b\"\nquota = 1",
            &[
                "3:1: this is not TOML: duplicate key",
                "4:9: limit \"a\": quota is a number; write a text, such as \"10/s burst 20\"",
            ],
        ),
        (
            "block = 2020-13-45\nallow = 1",
            &[
                "1:9: this is not TOML: invalid date, expected month between 01 and 12",
                "2:9: allow is a number; write a list, such as [\"192.0.2.0/24\"]",
            ],
        ),
    ]);
}

#[test]
fn what_follows_a_bad_header_is_not_taken_for_a_part_of_the_section_above() {
    check(&[
        (
            "block = 1\n[[limit]\nname = 1\nquota = 1",
            &[
                "1:9: block is a number; write a list, such as [\"192.0.2.7\"]",
                "2:9: this is not TOML: unclosed array table, expected `]`",
            ],
        ),
        (
            "[identity]\n  [tier.gold\n  callers = 1",
            &["2:13: this is not TOML: unclosed table, expected `]`"],
        ),
    ]);
}

#[test]
fn a_text_that_is_too_long_is_refused_with_one_problem() {
    let mut text = "allow = 1 #".to_owned();
    text.push_str(&" ".repeat((16 << 20) - text.len()));
    assert_eq!(
        problems(&text),
        ["1:9: allow is a number; write a list, such as [\"192.0.2.0/24\"]"]
    );
    text.push(' ');
    assert_eq!(problems(&text), ["1:1: the policy has 16777217 bytes; write at most 16 MiB"]);
}

#[test]
fn a_text_as_deep_as_the_parser_allows_does_not_exhaust_the_stack() {
    let keys = vec!["k"; 79].join(".");
    let text = format!("{}{}", format!("{keys} = {{ ").repeat(79), "}".repeat(79));
    assert_eq!(
        problems(&text),
        [
            "1:1: unknown key \"k\"; known are server, store, proxy, identity, allow, block, path-spelling, limit, override, tier, priority"
        ],
    );
}
