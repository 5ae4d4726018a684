//! Descriptors meet what an obviously right search says.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use spillgate_policy::{Domain, Limit, Node, Policy, PolicyBuilder};

use super::{With, counted, met, node};
use crate::common::gate_of;

const KEYS: [&str; 3] = ["a", "b", "a_b"];
const PATTERNS: [&str; 12] =
    ["", "x", "xy", "xyz", "*", "x*", "xy*", "y*", "*y", "x*z", "x*y*z", "*y*"];
const VALUES: [&str; 8] = ["", "x", "xy", "xyz", "y", "x*", "xyyz", "zxz"];

/// A tree that may have limits at any of its nodes, and none of them twice.
fn nodes(depth: u32) -> BoxedStrategy<Vec<Node>> {
    let below = if depth == 0 { Just(Vec::new()).boxed() } else { nodes(depth - 1) };
    let value = (select(&KEYS[..]), select(&PATTERNS[..]), any::<bool>(), below);
    let node = value.prop_map(|(key, value, is_limited, below)| {
        let node = node(key, value).above(below);
        if is_limited { node.with(counted("1/h")) } else { node }
    });
    let once = |nodes: Vec<Node>| {
        let mut seen = BTreeSet::new();
        let is_new = |node: &Node| seen.insert((node.key.clone(), node.value.clone()));
        nodes.into_iter().filter(is_new).collect()
    };
    vec(node, 0..7).prop_map(once).boxed()
}

type Written = BTreeMap<&'static str, &'static str>;

fn limits() -> impl Strategy<Value = Vec<Written>> {
    let pattern = select(&PATTERNS[1..]);
    vec(btree_map(select(&KEYS[..]), pattern, 1..4), 0..8)
}

fn entries() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    vec((select(&KEYS[..]), select(&VALUES[..])), 0..4)
}

/// True if each `*` of a pattern can stand for some text, so that the pattern is the value.
fn matches(pattern: &str, value: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == value,
        Some((start, rest)) => value
            .strip_prefix(start)
            .is_some_and(|value| (0..=value.len()).any(|taken| matches(rest, &value[taken..]))),
    }
}

/// The name of the limit at the node where entries end.
fn in_tree(nodes: &[Node], entries: &[(&str, &str)], above: &str) -> Option<String> {
    let ((key, value), rest) = entries.split_first()?;
    let of_key = || nodes.iter().filter(|node| node.key == *key);
    let is_exact = |node: &&Node| node.value.as_deref() == Some(*value);
    let is_wildcard =
        |node: &&Node| node.value.as_deref().is_some_and(|pattern| matches(pattern, value));
    let found = of_key()
        .find(is_exact)
        .or_else(|| of_key().find(is_wildcard))
        .or_else(|| of_key().find(|node| node.value.is_none()))?;
    let own = found.value.as_ref().map(|value| format!("={value}")).unwrap_or_default();
    let name = format!("{above}/{key}{own}");
    match rest {
        [] => found.limit.as_ref().map(|_| name),
        rest => in_tree(&found.nodes, rest, &name),
    }
}

fn is_met(written: &Written, entries: &[(&str, &str)]) -> bool {
    let keys: BTreeSet<_> = entries.iter().map(|(key, _)| *key).collect();
    let is_named = |(key, value): &(&str, &str)| {
        written.get(key).is_some_and(|pattern| matches(pattern, value))
    };
    keys.len() == entries.len()
        && keys.into_iter().eq(written.keys().copied())
        && entries.iter().all(is_named)
}

fn limit((number, written): (usize, &Written)) -> Limit {
    let limit = Limit::new(format!("l{number}"), "1/h").domain("edge").capacity(8);
    written.iter().fold(limit, |limit, (key, value)| limit.descriptor(*key, *value))
}

proptest! {
    #[test]
    fn a_descriptor_meets_what_a_search_through_all_finds(
        nodes in nodes(2),
        limits in limits(),
        asked in vec(entries(), 1..20),
    ) {
        let builder = limits.iter().enumerate().map(limit).fold(Policy::builder(), PolicyBuilder::limit);
        let domain = Domain { nodes: nodes.clone(), ..Domain::new("edge") };
        let (gate, _) = gate_of(builder.domain(domain).build().unwrap());
        for entries in asked {
            let all = limits.iter().enumerate();
            let names = all.filter(|(_, written)| is_met(written, &entries));
            let names = names.map(|(number, _)| format!("l{number}"));
            let mut expected: Vec<_> = names.chain(in_tree(&nodes, &entries, "edge")).collect();
            expected.sort_unstable();
            prop_assert_eq!(met(&gate, &entries).1, expected, "{:?}", entries);
        }
    }
}
