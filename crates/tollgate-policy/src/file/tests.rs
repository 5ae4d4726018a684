use std::ops::Range;

use proptest::prelude::*;

use super::decode;
use crate::spec::{Accept, At, Cost, Mode};

const COMPLETE: &str = include_str!("complete.toml");

/// A limit that has all it needs, and room for more.
const LIMIT: &str = "[[limit]]\nname = \"public\"\nquota = \"10/s\"\n";

fn problems(text: &str) -> Vec<String> {
    let (_, problems) = decode(text, None);
    problems
        .iter()
        .map(|problem| {
            let place = problem.place().unwrap();
            format!("{}:{}: {}", place.line, place.column, problem.message())
        })
        .collect()
}

/// Checks texts against everything that is wrong in them.
fn check(cases: &[(&str, &[&str])]) {
    for (text, expected) in cases {
        assert_eq!(problems(text), *expected, "{text}");
    }
}

/// As [`check`], for keys of a limit. The text begins in line 4.
fn check_limit(cases: &[(&str, &[&str])]) {
    for (text, expected) in cases {
        assert_eq!(problems(&format!("{LIMIT}{text}")), *expected, "{text}");
    }
}

#[test]
fn an_unknown_key_is_told_with_the_one_that_was_meant_or_all_there_are() {
    check(&[
        ("limits = []", &["1:1: unknown key \"limits\"; did you mean \"limit\"?"]),
        (
            "zone = 1",
            &[
                "1:1: unknown key \"zone\"; known are server, identity, allow, block, limit, override, tier",
            ],
        ),
        (
            "[identity]\ntrusted_proxies = []",
            &["2:1: identity: unknown key \"trusted_proxies\"; did you mean \"trusted-proxies\"?"],
        ),
        (
            "identity.api-key = { header = \"x\", acept = \"any\" }",
            &["1:36: identity, api-key: unknown key \"acept\"; did you mean \"accept\"?"],
        ),
        (
            "identity.user = { header = \"x\", from = 1 }",
            &["1:33: identity, user: unknown key \"from\"; known are accept, header"],
        ),
    ]);
    check_limit(&[
        ("modes = 1", &["4:1: limit \"public\": unknown key \"modes\"; did you mean \"mode\"?"]),
        (
            "match = { paht = \"/\" }",
            &["4:11: limit \"public\", match: unknown key \"paht\"; did you mean \"path\"?"],
        ),
        (
            "cost = { header = \"x\", least = 1 }",
            &["4:24: limit \"public\", cost: unknown key \"least\"; known are default, header"],
        ),
        (
            "settle.statuses = 401",
            &["4:8: limit \"public\", settle: unknown key \"statuses\"; did you mean \"status\"?"],
        ),
    ]);
}

#[test]
fn a_value_of_the_wrong_type_is_told_with_one_that_would_be_right() {
    check(&[
        ("identity = 1", &["1:12: identity is a number; write a table, such as [identity]"]),
        ("allow = true", &["1:9: allow is a boolean; write a list, such as [\"192.0.2.0/24\"]"]),
        (
            "allow = \"192.0.2.7\"",
            &["1:9: allow is a text; write a list, such as [\"192.0.2.0/24\"]"],
        ),
        ("[limit]\nname = 1", &["1:1: limit is a table; write [[limit]] above each"]),
        ("limit = [1]", &["1:10: limit 1 is a number; write a table, such as [[limit]]"]),
        ("[[tier]]\na = 1", &["1:1: tier is a list; write a table, such as [tier.gold]"]),
        (
            "[tier]\ngold = \"10/s\"",
            &["2:8: tier: \"gold\" is a text; write a table, such as [tier.gold]"],
        ),
        (
            "[tier.gold]\npublic = 100",
            &[
                "2:10: tier \"gold\": \"public\" is a number; write a text, such as \"10/s burst 20\"",
            ],
        ),
        (
            "identity.api-key = \"x-api-key\"",
            &[
                "1:20: identity: api-key is a text; write a table, such as { header = \"x-api-key\" }",
            ],
        ),
        (
            "identity.user = { header = \"x\", accept = 1 }",
            &[
                "1:42: identity, user: accept is a number; write \"trusted-proxies\", \"any\", a list \
               of keys or the name of a file",
            ],
        ),
    ]);
    check_limit(&[
        (
            "capacity = \"many\"",
            &["4:12: limit \"public\": capacity is a text; write a number, such as 100000"],
        ),
        (
            "capacity = 1e5",
            &["4:12: limit \"public\": capacity is a decimal number; write a number, such as \
               100000"],
        ),
        (
            "start = 1979-05-27",
            &["4:9: limit \"public\": start is a date; write a text, such as \"empty\""],
        ),
        ("per = 1", &["4:7: limit \"public\": per is a number; write a text, such as \"caller\""]),
        (
            "per = [\"ip\", [], \"user\", 1]",
            &[
                "4:14: limit \"public\": per, entry 2 is a list; write a text, such as \"caller\"",
                "4:26: limit \"public\": per, entry 4 is a number; write a text, such as \"caller\"",
            ],
        ),
        (
            "match = \"/public\"",
            &["4:9: limit \"public\": match is a text; write a table, such as { path = \
               \"/public\" }"],
        ),
        (
            "match.header.x-beta = true",
            &[
                "4:23: limit \"public\", match, header: \"x-beta\" is a boolean; write a text, such \
               as \"*\"",
            ],
        ),
        (
            "cost = \"1\"",
            &["4:8: limit \"public\": cost is a text; write a number, such as 1, or { header = \
               \"x-cost\" }"],
        ),
        (
            "settle.status = 4.5",
            &["4:17: limit \"public\", settle: status is a decimal number; write a text, such as \
               \"4xx\""],
        ),
        (
            "override = { quota = \"1/s\" }",
            &["4:12: limit \"public\": override is a table; write [[limit.override]] above each"],
        ),
    ]);
}

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
fn a_number_out_of_range_is_told_with_the_range() {
    check(&[
        ("identity.ipv4-prefix = 33", &["1:24: identity: ipv4-prefix is 33; write at most 32"]),
        ("identity.ipv4-prefix = 300", &["1:24: identity: ipv4-prefix is 300; write at most 32"]),
        ("identity.ipv6-prefix = -1", &["1:24: identity: ipv6-prefix is -1; write at least 0"]),
    ]);
    check_limit(&[
        ("capacity = -5", &["4:12: limit \"public\": capacity is -5; write at least 0"]),
        (
            "capacity = 0x1_0000_0000_0000_0000",
            &["4:12: limit \"public\": capacity is 0x10000000000000000; write at most \
               18446744073709551615"],
        ),
        (
            "cost = -99999999999999999999999999999999999999999999",
            &[
                "4:8: limit \"public\": cost is -99999999999999999999999999999999999999999999; write \
               at least 0",
            ],
        ),
        (
            "cost = { header = \"x\", default = 0 }",
            &["4:34: limit \"public\", cost: default is 0; write at least 1"],
        ),
        (
            "settle.status = [401, 42]",
            &["4:23: limit \"public\", settle: status, entry 2 is 42; write at least 100"],
        ),
        ("capacity = 18446744073709551615\ncost = +0", &[]),
    ]);
}

#[test]
fn an_empty_list_is_refused_where_nothing_is_no_choice() {
    check(&[
        ("allow = []\nblock = []\nlimit = []\ntier.gold.callers = []", &[]),
        ("identity = { trusted-proxies = [], client-ip = [] }", &[]),
        (
            "identity.order = []",
            &["1:18: identity: order is an empty list; write [\"ip\"], or leave it out"],
        ),
    ]);
    check_limit(&[
        (
            "per = []",
            &["4:7: limit \"public\": per is an empty list; write [\"caller\"], or leave it out"],
        ),
        (
            "match = { path = [], method = [], host = [], header = {} }",
            &[
                "4:18: limit \"public\", match: path is an empty list; write [\"/users/{id}\"], or \
                 leave it out",
                "4:31: limit \"public\", match: method is an empty list; write [\"GET\"], or leave \
                 it out",
                "4:42: limit \"public\", match: host is an empty list; write \
                 [\"api.example.com\"], or leave it out",
            ],
        ),
        (
            "settle.status = []",
            &[
                "4:17: limit \"public\", settle: status is an empty list; write [\"4xx\"], or leave \
               it out",
            ],
        ),
    ]);
}

#[test]
fn an_unknown_mode_is_told_with_all_there_are() {
    check_limit(&[
        (
            "mode = \"shadwo\"",
            &[
                "4:8: limit \"public\": mode is \"shadwo\"; write \"enforce\" or \"shadow\"; did you \
               mean \"shadow\"?",
            ],
        ),
        (
            "mode = \"off\"",
            &["4:8: limit \"public\": mode is \"off\"; write \"enforce\" or \"shadow\""],
        ),
        (
            "mode = false",
            &["4:8: limit \"public\": mode is a boolean; write \"enforce\" or \"shadow\""],
        ),
    ]);
}

#[test]
fn every_problem_is_told_in_the_order_of_the_file() {
    let text = "
[tier.gold]
public = 1
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
            "3:10: tier \"gold\": \"public\" is a number; write a text, such as \"10/s burst 20\"",
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
        ["1:1: unknown key \"k\"; known are server, identity, allow, block, limit, override, tier"],
    );
}

#[test]
fn the_settings_of_a_server_are_skipped() {
    check(&[("[server]\nlisten = \"127.0.0.1:80\"\n[server.tls]\nkey = \"k\"", &[])]);
}

#[test]
fn an_empty_file_is_a_policy_of_nothing() {
    let (spec, problems) = decode("", None);
    assert_eq!(problems, []);
    assert!(spec.limits.is_empty() && spec.allow.is_empty() && spec.tiers.is_empty());
}

#[test]
fn the_complete_example_is_decoded_whole() {
    let (spec, problems) = decode(COMPLETE, None);
    assert_eq!(problems, []);
    assert_eq!(values(&spec.allow), ["192.168.1.0/24"]);
    assert_eq!(values(&spec.block), ["203.0.113.9", "key:leaked-123"]);

    let identity = &spec.identity;
    assert_eq!(values(identity.order.as_ref().unwrap()), ["api-key", "user", "ip"]);
    assert_eq!(identity.api_key.as_ref().unwrap().header.value, "x-api-key");
    assert_eq!(identity.user.as_ref().unwrap().header.value, "x-user-id");
    assert_eq!(identity.tier_header.as_ref().unwrap().value, "x-tier");
    assert_eq!(values(&identity.trusted_proxies), ["10.0.0.0/8", "2001:db8::/32"]);
    assert_eq!(values(identity.client_ip.as_ref().unwrap()), ["x-forwarded-for"]);
    assert_eq!(identity.ipv4_prefix.as_ref().unwrap().value, 32);
    assert_eq!(identity.ipv6_prefix.as_ref().unwrap().value, 64);

    let [public, login, tokens] = &spec.limits[..] else { panic!("{:#?}", spec.limits) };
    assert_eq!(public.name.value, "public");
    assert_eq!(values(&public.matches.path), ["/public/{*rest}"]);
    assert_eq!(values(&public.matches.method), ["GET", "POST"]);
    assert_eq!(values(public.per.as_ref().unwrap()), ["caller"]);
    assert_eq!(public.quota.value, "10/s burst 20");
    assert_eq!(public.algorithm.as_ref().unwrap().value, "token-bucket");
    assert_eq!(public.start.as_ref().unwrap().value, "full");
    assert_eq!(public.capacity.as_ref().unwrap().value, 100_000);
    assert_eq!(public.when_full.as_ref().unwrap().value, "evict");
    assert_eq!(public.mode.as_ref().unwrap().value, Mode::Enforce);
    assert_eq!(public.overrides[0].quota.value, "1000/s");
    assert_eq!(public.overrides[0].parts["caller"].value, "api-key:partner-7");
    assert_eq!(public.overrides[0].parts.len(), 1);
    assert_eq!(values(&login.matches.host), ["example.com", "*.example.com"]);
    assert_eq!(values(&login.settle.as_ref().unwrap().status), ["401", "403"]);
    assert_eq!(tokens.matches.header["x-beta"].value, "*");
    assert_eq!(values(tokens.per.as_ref().unwrap()), ["caller", "path:model"]);
    assert_eq!(tokens.settle.as_ref().unwrap().header.as_ref().unwrap().value, "x-tokens-used");

    let gold = &spec.tiers["gold"];
    assert_eq!(values(&gold.callers), ["api-key:k1", "user:42"]);
    assert_eq!(gold.quotas["public"].value, "100/s burst 200");
    assert_eq!(gold.quotas.len(), 1);
}

fn values(texts: &[At<String>]) -> Vec<&str> {
    texts.iter().map(|text| text.value.as_str()).collect()
}

#[test]
fn values_keep_the_place_where_they_are_written() {
    let (spec, _) = decode(COMPLETE, None);
    let written = |span: &Option<Range<usize>>| COMPLETE.get(span.clone().unwrap()).unwrap();
    assert_eq!(written(&spec.block[1].span), "\"key:leaked-123\"");
    assert_eq!(written(&spec.limits[0].capacity.as_ref().unwrap().span), "100_000");
    assert_eq!(written(&spec.limits[0].mode.as_ref().unwrap().span), "\"enforce\"");
    assert_eq!(written(&spec.limits[0].overrides[0].at.span), "[[limit.override]]");
    assert_eq!(written(&spec.limits[1].settle.as_ref().unwrap().status[0].span), "401");
    assert_eq!(written(&spec.tiers["gold"].quotas["public"].span), "\"100/s burst 200\"");
}

#[test]
fn a_header_can_be_accepted_in_four_ways() {
    let accept = |written: &str| {
        let (spec, problems) =
            decode(&format!("identity.user = {{ header = \"x\"{written} }}"), None);
        assert_eq!(problems, []);
        spec.identity.user.unwrap().accept.value
    };
    assert!(matches!(accept(""), Accept::TrustedProxies));
    assert!(matches!(accept(", accept = \"trusted-proxies\""), Accept::TrustedProxies));
    assert!(matches!(accept(", accept = \"any\""), Accept::Any));
    assert!(matches!(accept(", accept = \"k.txt\""), Accept::File(file) if file == "k.txt"));
    assert!(matches!(accept(", accept = ['a', 'b']"), Accept::Keys(keys) if keys == ["a", "b"]));
}

#[test]
fn a_cost_is_a_number_or_a_header() {
    let cost = |written: &str| {
        let (spec, problems) = decode(&format!("{LIMIT}{written}"), None);
        assert_eq!(problems, []);
        spec.limits[0].cost.clone()
    };
    assert!(cost("").is_none());
    assert!(matches!(cost("cost = 0"), Some(Cost::Constant(At { value: 0, .. }))));
    assert!(matches!(
        cost("cost = { header = 'h', default = 3 }"),
        Some(Cost::Header { name, default: Some(At { value: 3, .. }) }) if name.value == "h",
    ));
    assert!(matches!(cost("cost.header = 'h'"), Some(Cost::Header { default: None, .. })));
}

#[test]
fn what_is_wrong_is_left_out_and_the_rest_is_kept() {
    let (spec, problems) = decode(
        "block = [\"a\", 1, \"b\"]
         [[limit]]
         name = \"no quota\"
         [[limit]]
         name = \"public\"
         quota = \"10/s\"
         capacity = \"many\"
         cost = -1
         ipv4-prefix = 24
         override = [{ caller = \"a\" }, { caller = \"b\", quota = \"1/s\" }]",
        None,
    );
    assert_eq!(problems.len(), 6);
    assert_eq!(values(&spec.block), ["a", "b"]);
    let [_, public] = &spec.limits[..] else { panic!("{:#?}", spec.limits) };
    assert!(public.capacity.is_none() && public.cost.is_none());
    assert_eq!(public.overrides.len(), 1);
}

/// The manual, which lies above the crates.
fn manual() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/policy.md");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_manual_shows_the_complete_example() {
    assert!(manual().contains(&format!("```toml\n{COMPLETE}```\n")));
}

#[test]
fn the_manual_shows_policies_without_problems() {
    let manual = manual();
    let blocks = manual.split("```toml\n").skip(1);
    let policies = blocks.map(|block| block.split("```").next().unwrap());
    for policy in policies {
        assert_eq!(problems(policy), [""; 0], "{policy}");
    }
}

#[test]
fn the_manual_shows_what_is_said_of_a_bad_policy() {
    let manual = manual();
    let (_, after) = manual.split_once("## Errors").unwrap();
    let (_, after) = after.split_once("```toml,fragment\n").unwrap();
    let (policy, after) = after.split_once("```").unwrap();
    let (_, after) = after.split_once("```text\n").unwrap();
    let (shown, _) = after.split_once("```").unwrap();
    let (_, problems) = decode(policy, Some("policy.toml"));
    let told: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
    assert_eq!(shown, told);
}

/// The complete example with some parts taken out, doubled or replaced.
fn mutated() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[\\[\\]{}=\"',.#\n 0-9a-z\u{80}-\u{ffff}-]{0,6}",
        (0..COMPLETE.len(), 0..60_usize).prop_map(|(start, length)| {
            let end = (start + length).min(COMPLETE.len());
            COMPLETE[start..end].to_owned()
        }),
    ];
    let cut = (any::<prop::sample::Index>(), 0..20_usize, part);
    prop::collection::vec(cut, 1..5).prop_map(|cuts| {
        let mut text: Vec<char> = COMPLETE.chars().collect();
        for (start, length, part) in cuts {
            let start = start.index(text.len() + 1);
            let end = (start + length).min(text.len());
            text.splice(start..end, part.chars());
        }
        text.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn any_text_is_decoded_and_its_problems_are_inside_it_in_order(
        text in prop_oneof![3 => mutated(), 1 => any::<String>(), 1 => "[\\[\\]{}=\"a.,\n0-9-]{0,40}"]
    ) {
        let (_, problems) = decode(&text, None);
        let places: Vec<_> = problems
            .iter()
            .map(|problem| problem.place().map(|place| (place.line, place.column)).unwrap())
            .collect();
        prop_assert!(places.is_sorted(), "{:?}", places);
        for (line, column) in places {
            let line = text.split('\n').nth(line - 1).unwrap();
            prop_assert!(column <= line.chars().count() + 1);
        }
    }
}
