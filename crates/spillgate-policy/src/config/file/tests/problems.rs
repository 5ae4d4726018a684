use super::super::decode;
use super::{check, check_limit, problems};

#[test]
fn what_is_missing_is_told_at_the_section_that_lacks_it() {
    check(&[
        (
            "[[limit]]\n[[limit]]\n[[limit]]\nquota = \"1/s\"",
            &[
                "1:1: limit 1 has no name; add name = \"public\"",
                "1:1: limit 1 has no quota; add quota = \"10/s burst 20\"",
                "2:1: limit 2 has no name; add name = \"public\"",
                "2:1: limit 2 has no quota; add quota = \"10/s burst 20\"",
                "3:1: limit 3 has no name; add name = \"public\"",
            ],
        ),
        (
            "[[limit]]\nname = \"public\"",
            &["1:1: limit \"public\" has no quota; add quota = \"10/s burst 20\""],
        ),
        (
            "[identity.api-key]\naccept = \"any\"",
            &["1:1: identity, api-key has no header; add header = \"x-api-key\""],
        ),
    ]);
    check_limit(&[
        (
            "cost = { default = 1 }",
            &["4:8: limit \"public\", cost has no header; add header = \"x-cost\""],
        ),
        (
            "[[limit.override]]\nquota = \"1/s\"\n[[limit.override]]\ncaller = \"ip:::1\"",
            &["6:1: limit \"public\", override 2 has no quota; add quota = \"10/s burst 20\""],
        ),
    ]);
}

#[test]
fn every_problem_is_told_in_the_order_of_the_file() {
    let text = "
[tier.gold]
public = true
[[limit]]
quota = \"µ\"
nmae = \"µ\"
mode = [ ] # the next two are in one line
match = { path = 1, mehtod = \"GET\" }
[[limit]]
name = \"other\"
quota = 10
capacity = -1
[identity]
ipv6-prefix = 129
";
    assert_eq!(
        problems(text),
        [
            "3:10: tier \"gold\": \"public\" is a boolean; write a text, such as \"10/s burst 20\"",
            "4:1: limit 1 has no name; add name = \"public\"",
            "6:1: limit 1: unknown key \"nmae\"; did you mean \"name\"?",
            "7:8: limit 1: mode is a list; write \"enforce\" or \"shadow\"",
            "8:18: limit 1, match: path is a number; write a text, such as \"/users/{id}\"",
            "8:21: limit 1, match: unknown key \"mehtod\"; did you mean \"method\"?",
            "11:9: limit \"other\": quota is a number; write a text, such as \"10/s burst 20\"",
            "12:12: limit \"other\": capacity is -1; write at least 0",
            "14:15: identity: ipv6-prefix is 129; write at most 128",
        ],
    );
}

#[test]
fn columns_are_characters_and_the_file_is_named() {
    let (_, problems) = decode("block = [\"µµµ\", 1]", Some("policy.toml"));
    assert_eq!(
        problems[0].to_string(),
        "policy.toml:1:17: block, entry 2 is a number; write a text, such as \"192.0.2.7\"",
    );
}

#[test]
fn what_may_be_a_secret_is_never_shown() {
    const SECRET: &str = "s3cr3t";
    for text in [
        "allow = \"s3cr3t\"",
        "block = { s3cr3t = 1 }",
        "block = [1, [\"s3cr3t\"], { s3cr3t = \"s3cr3t\" }]",
        "block = [\"s3cr3t\", s3cr3t]",
        "block = \"s3cr3t",
        "identity.api-key = { header = \"h\", accept = { s3cr3t = \"s3cr3t\" } }",
        "identity.api-key = { header = \"h\", accept = [[\"s3cr3t\"], \"s3cr3t\", 1] }",
        "identity.api-key = [\"s3cr3t\"]",
        "tier.gold.callers = \"s3cr3t\"",
        "tier.gold.callers = [[\"s3cr3t\"]]",
        "limit = [{ name = \"n\", quota = \"q\", override = [{ caller = [\"s3cr3t\"] }] }]",
        "limit = [{ name = \"n\", quota = \"q\", override = [\"s3cr3t\"] }]",
        "limit = [{ name = \"n\", quota = \"q\", match.header.cookie = [\"s3cr3t\"] }]",
    ] {
        let problems = problems(text);
        assert!(!problems.is_empty(), "{text}");
        assert!(!problems.iter().any(|problem| problem.contains(SECRET)), "{problems:#?}");
    }
}

#[test]
fn a_long_word_is_cut() {
    let word = "x".repeat(100_000);
    let text = format!("{word} = 1\n[[limit]]\nname = \"{word}\"\ncapacity = {}", "9".repeat(1000));
    let problems = problems(&text);
    assert_eq!(problems.len(), 3);
    assert!(problems.iter().all(|problem| problem.len() < 300), "{problems:#?}");
}
