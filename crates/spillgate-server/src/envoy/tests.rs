mod agreement;
mod values;

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use spillgate::AlgorithmKind;
use spillgate_policy::{Domain, Node, NodeMode, NodeQuota, Policy};

use super::parse;

fn read(text: &str) -> Domain {
    parse("edge.yaml", text, AlgorithmKind::FixedWindow).unwrap()
}

fn problems(text: &str) -> Vec<String> {
    parse("edge.yaml", text, AlgorithmKind::FixedWindow).unwrap_err().lines().to_vec()
}

/// The texts of the project's own documentation, put together.
const WHOLE: &str = r#"
# A comment.
domain: messaging
descriptors:
  # Only allow 5 marketing messages a day
  - key: message_type
    value: marketing
    descriptors:
      - key: to_number
        rate_limit:
          unit: day
          requests_per_unit: 5
  - key: to_number
    rate_limit:
      unit: MINUTE
      requests_per_unit: 4_294
      name: minutely
    detailed_metric: true
    value_to_metric: yes
  - {key: remote_address, value: 10.0.0.*, share_threshold: true, rate_limit: {unit: Hour, requests_per_unit: 0}}
  - key: open
    value: 1
    rate_limit:
      unlimited: true
      replaces:
        - name: minutely
        - name: other
  - key: open
    value: true
    shadow_mode: true
    rate_limit: {unit: week, requests_per_unit: 1}
  - key: open
    quota_mode: true
    rate_limit: {unit: year, requests_per_unit: 1}
  - key: known
  - key: empty
    value:
    rate_limit:
    descriptors:
"#;

#[test]
fn everything_that_a_file_can_say_is_read() {
    let domain = read(WHOLE);
    assert_eq!(domain.name, "messaging");
    let [marketing, number, address, one, yes, open, known, empty] = &domain.nodes[..] else {
        panic!("{domain:?}");
    };
    assert_eq!((&*marketing.key, marketing.value.as_deref()), ("message_type", Some("marketing")));
    assert!(marketing.limit.is_none());
    let [to_number] = &marketing.nodes[..] else { panic!("{marketing:?}") };
    assert_eq!(quota(to_number), (Some(("5/day", AlgorithmKind::FixedWindow)), NodeMode::Enforce));

    assert_eq!(number.value, None);
    assert_eq!(quota(number).0.unwrap().0, "4294/min");
    assert_eq!(number.limit.as_ref().unwrap().name.as_deref(), Some("minutely"));

    assert_eq!(address.value.as_deref(), Some("10.0.0.*"));
    assert!(address.shares_values && !number.shares_values);
    let hour = NodeQuota::Closed { period: Duration::from_secs(3600) };
    assert_eq!(address.limit.as_ref().unwrap().quota, hour);

    assert_eq!(one.value.as_deref(), Some("1"));
    let unlimited = one.limit.as_ref().unwrap();
    assert_eq!(unlimited.quota, NodeQuota::Unlimited);
    assert_eq!(unlimited.replaces, ["minutely", "other"]);
    assert_eq!(yes.value.as_deref(), Some("true"));
    assert_eq!(quota(yes), (Some(("1/week", AlgorithmKind::FixedWindow)), NodeMode::Shadow));
    assert_eq!(quota(open).1, NodeMode::Quota);
    for node in [known, empty] {
        assert!(node.value.is_none() && node.limit.is_none() && node.nodes.is_empty());
    }
}

fn quota(node: &Node) -> (Option<(&'static str, AlgorithmKind)>, NodeMode) {
    let limit = node.limit.as_ref().unwrap();
    let counted = match limit.quota {
        NodeQuota::Counted { quota, algorithm } => Some((&*quota.to_string().leak(), algorithm)),
        _ => None,
    };
    (counted, limit.mode)
}

#[test]
fn another_algorithm_is_that_of_every_limit() {
    let text =
        "domain: a\ndescriptors:\n- {key: k, rate_limit: {unit: second, requests_per_unit: 3}}";
    let domain = parse("a.yaml", text, AlgorithmKind::TokenBucket).unwrap();
    assert_eq!(quota(&domain.nodes[0]).0, Some(("3/s", AlgorithmKind::TokenBucket)));
}

#[test]
fn a_month_has_30_days_a_year_365_and_any_number_can_be_counted() {
    for (unit, days) in [("month", 30), ("year", 365), ("day", 1), ("week", 7)] {
        let text = format!(
            "domain: a\ndescriptors:\n- {{key: k, rate_limit: {{unit: {unit}, requests_per_unit: 2}}}}"
        );
        let limit = read(&text).nodes.remove(0).limit.unwrap();
        let NodeQuota::Counted { quota, .. } = limit.quota else { panic!("{limit:?}") };
        assert_eq!(quota.period(), Some(Duration::from_secs(days * 24 * 3600)), "{unit}");
    }
    for unit in ["second", "minute", "hour", "day", "week", "month", "year"] {
        let text = format!(
            "domain: a\ndescriptors:\n- key: k\n  rate_limit: {{unit: {unit}, requests_per_unit: 4294967295}}"
        );
        parse("a", &text, AlgorithmKind::FixedWindow).unwrap();
        // A bucket has whole nanoseconds between two tokens.
        let bucket = parse("a", &text, AlgorithmKind::TokenBucket);
        let is_kept = unit != "minute";
        assert_eq!(bucket.is_ok(), is_kept, "{unit}: {bucket:?}");
    }
}

#[test]
fn aliases_and_merges_repeat_what_was_written_once() {
    let text = "domain: a\ndescriptors:\n- key: one\n  rate_limit: &ten {unit: second, requests_per_unit: 10}\n\
                - key: two\n  rate_limit: *ten\n\
                - key: three\n  rate_limit: {<<: *ten, unit: hour}\n";
    let domain = read(text);
    let quotas: Vec<_> = domain.nodes.iter().map(|node| quota(node).0.unwrap().0).collect();
    assert_eq!(quotas, ["10/s", "10/s", "10/h"]);
}

const START: &str = "domain: a\ndescriptors:\n";

/// Files and descriptors that are wrong, each with what is told.
fn wrong_files() -> Vec<(String, &'static str)> {
    vec![
        (String::new(), "1: the file is empty; write domain: and descriptors:"),
        ("domain: ''\n".to_owned(), "1: the domain is empty; name it"),
        ("descriptors: []\n".to_owned(), "1: the domain is empty; name it"),
        ("- a\n".to_owned(), "1: the file must be a table, and is a list"),
        (
            "domain: a\nlimits: 1\n".to_owned(),
            "2: the file has no key \"limits\"; known are domain, descriptors",
        ),
        ("domain: a\ndomain: b\n".to_owned(), "2: \"domain\" is there twice, first in line 1"),
        (
            "domain: a\n---\ndomain: b\n".to_owned(),
            "2: there is a second document; write it in another file",
        ),
        ("domain: [a\n".to_owned(), "this is no YAML:"),
        ("domain: {a: 1}\n".to_owned(), "1: domain must be a text, and is a table"),
        (
            "domain: a\ndescriptors: 1\n".to_owned(),
            "2: descriptors must be a list, and is a single value",
        ),
        (format!("{START}- text\n"), "3: a descriptor must be a table, and is a single value"),
        (
            format!("{START}- {{key: k, value: {}}}\n", "v".repeat(1025)),
            "3: value has more than 1024 bytes",
        ),
        (format!("{START}- value: v\n"), "3: the descriptor's key is empty; name it"),
        (
            format!("{START}- key: k\n  limit: 1\n"),
            "4: a descriptor has no key \"limit\"; known are key, value,",
        ),
        (format!("{START}- key: k\n  shadow_mode: 7\n"), "4: shadow_mode must be true or false"),
        (format!("{START}- key: k\n  shadow_mode: tRUE\n"), "4: shadow_mode must be true or false"),
        (
            format!("{START}- value: v\n  key: k*\n"),
            "4: a \"*\" in a key has no meaning; write it in the value",
        ),
        (
            format!("{START}- key: k\n  metadata: 5\n"),
            "4: metadata must be a table, and is a single value",
        ),
        (
            format!("{START}- key: k\n  metadata:\n    a: [1, .nan]\n"),
            "5: .nan in metadata is not a JSON number; quote it",
        ),
        (
            format!("{START}- key: k\n  metadata: {{a: {{b: -.INF}}}}\n"),
            "4: -.INF in metadata is not a JSON number",
        ),
        (
            format!("{START}- key: k\n  metadata: {{a: 1e999}}\n"),
            "4: 1e999 in metadata is not a JSON number",
        ),
        (
            format!("{START}- key: k\n  share_threshold: true\n"),
            "4: share_threshold is for a value with \"*\" in it; leave it out",
        ),
        (
            format!("{START}- {{key: k, value: v, share_threshold: true}}\n"),
            "3: share_threshold is for a value with \"*\" in it; leave it out",
        ),
        (
            format!("{START}- key: k\n- key: k\n"),
            "4: the descriptor has the same key as that of line 3; keep one",
        ),
        (
            format!("{START}- {{key: k, value: v}}\n- {{key: k, value: v}}\n"),
            "4: the descriptor has the same key and the same value as that of line 3; keep one",
        ),
        (
            format!("domain: a\ndescriptors: {}", "[".repeat(200)),
            "2: this is nested more than 128 deep",
        ),
    ]
}

/// The same in `rate_limit`.
fn wrong_limits() -> Vec<(String, &'static str)> {
    let limit = |limit: &str| format!("{START}- key: k\n  rate_limit: {limit}\n");
    vec![
        (limit("5"), "4: rate_limit must be a table, and is a single value"),
        (limit("{requests_per_unit: 5}"), "4: rate_limit has no unit; write second, minute, hour,"),
        (
            limit("{unit: fortnight, requests_per_unit: 5}"),
            "4: the unit is \"fortnight\"; write second,",
        ),
        (
            limit("{unit: unknown, requests_per_unit: 5}"),
            "4: the unit is \"unknown\"; write second,",
        ),
        (
            limit("{unit: second, unlimited: true}"),
            "4: what is unlimited has no unit; leave one of them out",
        ),
        (
            limit("{unit: second, requests_per_unit: -1}"),
            "4: requests_per_unit must be a whole number up to 4294967295",
        ),
        (
            limit("{unit: second, requests_per_unit: 4294967296}"),
            "4: requests_per_unit must be a whole number up to 4294967295",
        ),
        (
            limit("{unit: second, requests_per_unit: \"5\"}"),
            "4: requests_per_unit must be a whole number up to 4294967295",
        ),
        (
            limit("{unit: second, requests_per_unit: 5, burst: 6}"),
            "4: rate_limit has no key \"burst\"; known are unit,",
        ),
        (
            limit("{unlimited: true, replaces: [{name: ''}]}"),
            "4: an entry of replaces has no name; name a limit",
        ),
        (
            limit("{unlimited: true, name: n, replaces: [{name: n}]}"),
            "4: \"n\" replaces itself; leave it out",
        ),
        (
            limit("{unlimited: true, replaces: [n]}"),
            "4: an entry of replaces must be a table, and is a single value",
        ),
        (
            limit("&a {unlimited: true, replaces: *a}"),
            "4: the alias refers to what it is itself part of",
        ),
        (limit("*none"), "4: this is no YAML:"),
    ]
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (text, expected) in wrong_files().into_iter().chain(wrong_limits()) {
        let message = problems(&text);
        let is_told = message[0].starts_with("edge.yaml:") && message[0].contains(expected);
        assert!(is_told && message.len() == 1, "{text}\n{message:?}");
    }
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let text = "domain: a\nextra: 1\ndescriptors:\n- value: v\n- key: k\n  rate_limit: {unit: x}\n";
    let lines: Vec<_> = problems(text)
        .iter()
        .map(|message| message.split(':').nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(lines, ["2", "4", "6"]);
}

#[test]
fn a_short_text_cannot_mean_more_than_memory_holds() {
    let mut text = "domain: a\ndescriptors:\n".to_owned();
    text.push_str("- key: k0\n  descriptors: &l0 [{key: a}, {key: b}, {key: c}, {key: d}]\n");
    for level in 1..20 {
        let below = level - 1;
        let entries =
            ["a", "b", "c", "d"].map(|key| format!("{{key: {key}, descriptors: *l{below}}}"));
        text.push_str(&format!(
            "- key: k{level}\n  descriptors: &l{level} [{}]\n",
            entries.join(", ")
        ));
    }
    let message = problems(&text);
    assert!(
        message.iter().any(|message| message.contains("there are more than 100000 descriptors")),
        "{message:?}"
    );
    assert!(message.len() <= 100);
}

#[test]
fn a_chain_of_aliases_is_not_deeper_than_what_is_written_out() {
    let mut text = "domain: a\ndescriptors:\n- &l0 [a]\n".to_owned();
    for level in 1..10_000 {
        let below = level - 1;
        text.push_str(&format!("- &l{level} [*l{below}]\n"));
    }
    assert_eq!(problems(&text), ["edge.yaml:131: this is nested more than 128 deep"]);
}

#[test]
fn descriptors_may_be_nested_only_so_deep() {
    let mut text = "domain: a\n".to_owned();
    for level in 0..40 {
        let indent = "  ".repeat(level);
        text.push_str(&format!("{indent}descriptors:\n{indent}- key: k\n"));
    }
    let message = problems(&text);
    assert_eq!(message, ["edge.yaml:66: descriptors are nested more than 32 deep"]);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(pieces in vec(select(&PIECES[..]), 0..60)) {
        let text = pieces.concat();
        match parse("file", &text, AlgorithmKind::FixedWindow) {
            Ok(domain) => prop_assert!(Policy::builder().domain(domain).build().is_ok()),
            Err(problems) => prop_assert!(!problems.lines().is_empty()),
        }
    }
}

/// What such files consist of, and what they might.
const PIECES: [&str; 40] = [
    "domain: a\n",
    "descriptors:\n",
    "- ",
    "  ",
    "    ",
    "\n",
    "key: k\n",
    "key: ",
    "value: v*\n",
    "value: ",
    "rate_limit:\n",
    "rate_limit: ",
    "{unit: hour, requests_per_unit: 5}\n",
    "unlimited: true\n",
    "unit: second\n",
    "requests_per_unit: 0\n",
    "replaces: [{name: n}]\n",
    "name: n\n",
    "shadow_mode: yes\n",
    "&a ",
    "*a\n",
    "<<: *a\n",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "'",
    "\"",
    "|\n",
    ">\n",
    "!!str ",
    "? ",
    "---\n",
    "...\n",
    "# c\n",
    "\t",
    "\u{feff}",
    "\u{e9}",
];
