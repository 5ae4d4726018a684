//! What is explained is what is decided then, and nothing is spent by it.

use proptest::collection::vec;
use proptest::prelude::*;
use spillgate_policy::{
    Answer, Descriptor, DescriptorKind, Descriptors, DescriptorsExplanation, Domain, Limit,
    NodeLimit, NodeMode, NodeQuota, Policy,
};

use super::{With, counted, decide, in_mode, named, node, quota};
use crate::common::{TestGate, at_once, gate_of};

fn explain(gate: &TestGate, descriptors: &[Descriptor<'_>]) -> DescriptorsExplanation {
    let question = Descriptors { domain: "edge", descriptors };
    at_once(gate.explain_descriptors(&question)).unwrap()
}

fn policy() -> Policy {
    let closed = NodeLimit::new(NodeQuota::Closed { period: std::time::Duration::from_secs(60) });
    let nodes = [
        node("a", "").with(counted("3/h")),
        node("b", "x").with(counted("2/h")).above([node("c", "").with(counted("4/h"))]),
        node("b", "y").with(in_mode(NodeMode::Shadow, counted("1/h"))),
        node("q", "1").with(in_mode(NodeMode::Quota, counted("2/h"))),
        node("q", "2").with(in_mode(NodeMode::Quota, counted("4/h"))),
        node("q", "3").with(in_mode(NodeMode::ShadowQuota, counted("1/h"))),
        node("u", "").with(named("free", NodeLimit::new(NodeQuota::Unlimited))),
        node("k", "").above([node("c", "").with(counted("2/h"))]),
        node("d", "").with(closed),
        node("r", "").with(NodeLimit { replaces: vec!["replaced".to_owned()], ..counted("5/h") }),
        node("s", "").with(named("replaced", counted("1/h"))),
    ];
    let domain = Domain { name: "edge".to_owned(), nodes: nodes.into() };
    let limit = |name: &str, quota: &str| Limit::new(name, quota).domain("edge");
    Policy::builder()
        .limit(limit("by-a", "5/h").descriptor("a", "*"))
        .limit(limit("by-b", "6/h").descriptor("b", "x*").descriptor("c", "*"))
        .domain(domain)
        .build()
        .unwrap()
}

/// Keys and values, of which most are of the policy.
fn entries() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let key = prop::sample::select(vec!["a", "b", "c", "q", "u", "k", "d", "r", "s", "z"]);
    let value = prop::sample::select(vec!["x", "y", "1", "2", "3"]);
    vec((key, value), 1..3)
}

/// The descriptors of a call: how often each counts, whether hits are given back, and whether a
/// quota comes with it.
type Call = Vec<(Vec<(&'static str, &'static str)>, u64, bool, bool)>;

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let descriptor = (entries(), 0..4_u64, prop::bool::weighted(0.1), prop::bool::weighted(0.1));
    vec(vec(descriptor, 1..4), 1..12)
}

proptest! {
    #[test]
    fn a_call_is_allowed_exactly_if_that_is_explained(calls in calls()) {
        let (gate, _) = gate_of(policy());
        // One that is never asked to explain must be in the same state.
        let (plain, _) = gate_of(policy());
        for call in &calls {
            let descriptors: Vec<_> = call.iter().map(|(entries, hits, gives_back, by_call)| {
                let quota = by_call.then(|| quota("1/h burst 3"));
                Descriptor { entries, hits: *hits, gives_back: *gives_back, quota }
            }).collect();
            let explained = explain(&gate, &descriptors);
            let again = explain(&gate, &descriptors);
            prop_assert_eq!(explained.to_string(), again.to_string());
            let decided = decide(&gate, &descriptors);
            let expected = if decided.is_allowed() { Answer::Allowed } else { Answer::Denied };
            prop_assert_eq!(explained.answer, expected, "{}", explained);
            prop_assert_eq!(decide(&plain, &descriptors).is_allowed(), decided.is_allowed());
            for (explained, state) in explained.descriptors.iter().zip(decided.descriptors()) {
                prop_assert_eq!(explained.kind, state.kind());
                // Limits of a denied call that do not enforce are not decided.
                let met = explained.limits.iter().filter(|limit| limit.state.is_some());
                let mut met: Vec<_> = met.map(|limit| limit.name.as_str()).collect();
                let mut names: Vec<_> = state.limits().map(|limit| limit.name()).collect();
                met.sort_unstable();
                names.sort_unstable();
                match decided.is_allowed() {
                    true => prop_assert_eq!(met, names),
                    false => prop_assert!(names.iter().all(|name| met.contains(name))),
                }
            }
        }
    }
}

fn text(entries: &[(&str, &str)]) -> String {
    let (gate, _) = gate_of(policy());
    explain(&gate, &[Descriptor::new(entries)]).to_string()
}

#[test]
fn why_a_descriptor_is_not_limited_is_told_with_the_closest_rule() {
    for (entries, expected) in [
        (&[("aa", "1")][..], "no rule for the key \"aa\" below edge; use one of"),
        (&[("b", "z")], "no rule for \"b\" below edge has this value; use one of x, y"),
        (&[("b", "x"), ("d", "1")], "no rule for the key \"d\" below edge/b=x; use one of c"),
        (&[("a", "1"), ("c", "1")], "nothing below edge/a, and it goes on with \"c\""),
        (&[("k", "1")], "ends at a rule that has no limit"),
        (&[("u", "1")], "unlimited, by the rule called \"free\""),
        (&[], "it has no entries"),
        (&[("b", "y"), ("c", "1")], "by-b: not met, the entry \"b\" is not \"x*\""),
        (&[("z", "1")], "by-a: not met, there is no entry \"a\""),
        (&[("a", "1"), ("z", "1")], "by-a: not met, it has an entry \"z\" more"),
        (&[("a", "1"), ("a", "2")], "by-a: not met, the entry \"a\" is there twice"),
        (
            &[("d", "1")],
            "limit    edge/d: denies\n           counted under global, cost 1\n           0 of 0 left, no waiting helps",
        ),
        (&[("b", "y")], "limit    edge/b=y (shadow): passes"),
        (&[("q", "1")], "limit    edge/q=1 (quota mode): passes"),
        (&[("q", "3")], "(shadow, quota mode): passes"),
    ] {
        let shown = text(entries);
        assert!(shown.contains(expected), "{entries:?}: {expected}\n{shown}");
        assert!(!shown.contains("secret"));
    }
}

#[test]
fn the_domain_is_told_if_it_is_not_known_and_values_never_are() {
    let (gate, _) = gate_of(policy());
    let entries = [("a", "hush-hush")];
    let descriptors = [Descriptor::new(&entries)];
    let question = Descriptors { domain: "egde", descriptors: &descriptors };
    let explained = at_once(gate.explain_descriptors(&question)).unwrap();
    assert_eq!(explained.answer, Answer::Allowed);
    assert_eq!(explained.descriptors[0].kind, DescriptorKind::Unknown);
    let why = explained.domain_not_known.unwrap();
    assert!(why.contains("did you mean \"edge\"?"), "{why}");
    let shown = explain(&gate, &descriptors);
    assert!(!shown.to_string().contains("hush") && !format!("{shown:?}").contains("hush"));
    let state = shown.descriptors[0].limits[0].state.as_ref().unwrap();
    assert!(state.key.starts_with("descriptor:a=#"), "{}", state.key);
}

#[test]
fn a_descriptor_whose_rule_another_replaces_is_not_counted() {
    let (gate, _) = gate_of(policy());
    let (replaces, replaced) = ([("r", "1")], [("s", "1")]);
    let descriptors = [Descriptor::new(&replaces), Descriptor::new(&replaced)];
    let explained = explain(&gate, &descriptors);
    assert_eq!(explained.descriptors[1].kind, DescriptorKind::Replaced);
    let shown = explained.to_string();
    assert!(shown.contains("descriptor 2: \"s\": not counted: the rule of another"), "{shown}");
}
