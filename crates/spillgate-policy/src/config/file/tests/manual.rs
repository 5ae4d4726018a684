use super::super::decode;
use super::{COMPLETE, problems};

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
    let (_, after) = after.split_once("```toml,invalid\n").unwrap();
    let (policy, after) = after.split_once("```").unwrap();
    let (_, after) = after.split_once("```text\n").unwrap();
    let (shown, _) = after.split_once("```").unwrap();
    let (_, problems) = decode(policy, Some("policy.toml"));
    let message: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
    assert_eq!(shown, message);
}
