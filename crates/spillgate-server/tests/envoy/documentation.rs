//! What is written for operators is true.

use spillgate::AlgorithmKind;
use spillgate_policy::Policy;
use spillgate_server::envoy::parse;

const PAGE: &str = include_str!("../../../../docs/envoy.md");

/// The blocks of a language in the page.
fn blocks(language: &str) -> Vec<&'static str> {
    let blocks = PAGE.split("```").skip(1).step_by(2);
    blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n')).collect()
}

#[test]
fn the_rules_that_the_page_shows_are_right() {
    let [policy] = blocks("toml")[..] else { panic!("one policy") };
    let policy = Policy::from_toml(policy).unwrap();
    assert_eq!(policy.domains().collect::<Vec<_>>(), ["edge"]);
    let file = blocks("yaml").into_iter().find(|block| block.starts_with("domain:")).unwrap();
    let domain = parse("page", file, AlgorithmKind::FixedWindow).unwrap();
    assert_eq!(domain.nodes.len(), 2);
}

#[test]
fn the_page_has_every_key_that_is_known() {
    for (text, what) in [
        ("x: 1", "the file"),
        ("domain: a\ndescriptors: [{key: a, x: 1}]", "a descriptor"),
        ("domain: a\ndescriptors: [{key: a, rate_limit: {unlimited: true, x: 1}}]", "rate_limit"),
    ] {
        let message = parse("page", text, AlgorithmKind::FixedWindow).unwrap_err().to_string();
        let known = message.split(&format!("{what} has no key \"x\"; known are ")).nth(1).unwrap();
        for key in known.lines().next().unwrap().split(", ") {
            assert!(PAGE.contains(&format!("`{key}`")), "{key}");
        }
    }
}
