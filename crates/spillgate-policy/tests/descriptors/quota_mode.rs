//! Limits in quota mode: they deny a call together, and count also what is beyond them.

use std::collections::HashMap;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;
use spillgate::AlgorithmKind;
use spillgate_policy::{
    Descriptor, Domain, Limit, Metadata, MetadataValue, Mode, Node, NodeLimit, NodeMode, NodeQuota,
    Policy,
};

use super::{With, call, counted, decide, in_mode, left, named, node, quota};
use crate::common::{TestGate, gate_of};

const QUOTA: NodeMode = NodeMode::Quota;

fn in_quota_mode(key: &str, quota: &str) -> Node {
    node(key, "").with(in_mode(QUOTA, counted(quota)))
}

fn gate_for(nodes: impl IntoIterator<Item = Node>) -> TestGate {
    let domain = Domain { nodes: nodes.into_iter().collect(), ..Domain::new("edge") };
    gate_of(Policy::builder().domain(domain).build().unwrap()).0
}

/// Whether a call passes, and which of its descriptors exceed a quota.
fn told(gate: &TestGate, hits: &[(&str, u64)]) -> (bool, Vec<bool>) {
    let entries: Vec<_> = hits.iter().map(|(key, _)| [(*key, "v")]).collect();
    let asked = entries.iter().zip(hits);
    let asked: Vec<_> = asked
        .map(|(entries, (_, hits))| Descriptor { hits: *hits, ..Descriptor::new(entries) })
        .collect();
    let outcome = decide(gate, &asked);
    let exceeds = outcome.descriptors().map(|state| state.exceeds_quota()).collect();
    (outcome.is_allowed(), exceeds)
}

#[test]
fn a_call_is_denied_once_it_exceeds_all_of_them() {
    let gate = gate_for([in_quota_mode("small", "1/h"), in_quota_mode("large", "2/h")]);
    let both = [("small", 1), ("large", 1)];
    assert_eq!(told(&gate, &both), (true, vec![false, false]));
    assert_eq!(told(&gate, &both), (true, vec![true, false]), "one is enough");
    for _ in 0..3 {
        assert_eq!(told(&gate, &both), (false, vec![true, true]));
    }
    // Beside one that is not in quota mode, too.
    let gate = gate_for([in_quota_mode("small", "1/h"), node("plain", "").with(counted("9/h"))]);
    let both = [("small", 1), ("plain", 1)];
    assert_eq!(told(&gate, &both), (true, vec![false, false]));
    assert_eq!(told(&gate, &both), (false, vec![true, false]));
    assert_eq!(told(&gate, &[("plain", 1)]), (true, vec![false]));
}

#[test]
fn a_call_that_they_deny_spends_nothing_under_others() {
    let shadow = node("shadow", "").with(in_mode(NodeMode::Shadow, counted("9/h")));
    let gate =
        gate_for([in_quota_mode("small", "1/h"), node("plain", "").with(counted("9/h")), shadow]);
    let all: [&[(&str, &str)]; 3] = [&[("plain", "v")], &[("shadow", "v")], &[("small", "v")]];
    assert!(call(&gate, &all).is_allowed());
    for _ in 0..3 {
        let outcome = call(&gate, &all);
        assert!(!outcome.is_allowed());
        let [plain, shadow, small] = &outcome.descriptors().collect::<Vec<_>>()[..] else {
            panic!("{outcome:?}");
        };
        assert!(!plain.is_denied() && small.is_denied());
        assert_eq!(plain.nearest().unwrap().decision().remaining(), 8);
        assert_eq!(shadow.limits().count(), 0, "undecided, as in every call that is denied");
        // It is told as what denies.
        let nearest = outcome.outcome().nearest().unwrap();
        assert_eq!((nearest.name(), nearest.mode()), ("edge/small", Mode::Enforce));
        assert!(outcome.outcome().retry_after() > Some(Duration::ZERO));
        assert_eq!(outcome.outcome().denied_by(), Some("edge/small"));
    }
    assert_eq!(left(&gate, &[("plain", "v")]), 8);
    let look = [("shadow", "v")];
    let outcome = decide(&gate, &[Descriptor { hits: 0, ..Descriptor::new(&look) }]);
    let state = outcome.descriptors().next().unwrap();
    assert_eq!(state.limits().next().unwrap().decision().remaining(), 8);
}

#[test]
fn a_call_that_another_limit_denies_spends_nothing_under_them() {
    let gate = gate_for([in_quota_mode("small", "2/h"), node("plain", "").with(counted("1/h"))]);
    assert_eq!(told(&gate, &[("plain", 1)]), (true, vec![false]));
    for _ in 0..5 {
        assert_eq!(told(&gate, &[("plain", 1), ("small", 1)]), (false, vec![false, false]));
    }
    assert_eq!(told(&gate, &[("small", 2)]), (true, vec![false]));
}

#[test]
fn what_exceeds_a_window_is_counted_and_forgotten_with_it() {
    let domain = Domain { nodes: vec![in_quota_mode("small", "10/min")], ..Domain::new("edge") };
    let (gate, clock) = gate_of(Policy::builder().domain(domain).build().unwrap());
    assert_eq!(told(&gate, &[("small", 8)]), (true, vec![false]));
    assert_eq!(told(&gate, &[("small", 5)]), (false, vec![true]));
    assert_eq!(told(&gate, &[("small", 1)]), (false, vec![true]), "nothing is left of it");
    clock.advance(Duration::from_secs(60));
    assert_eq!(told(&gate, &[("small", 10)]), (true, vec![false]));
}

#[test]
fn whoever_looks_is_denied_after_someone_has_exceeded_it() {
    // Asked before the work, and told after it what it was.
    let gate = gate_for([in_quota_mode("small", "2/h")]);
    for _ in 0..2 {
        assert_eq!(told(&gate, &[("small", 0)]), (true, vec![false]));
        assert_eq!(told(&gate, &[("small", 1)]), (true, vec![false]));
    }
    assert_eq!(told(&gate, &[("small", 0)]), (true, vec![false]), "used up, and not exceeded");
    assert_eq!(told(&gate, &[("small", 1)]), (false, vec![true]));
    assert_eq!(told(&gate, &[("small", 0)]), (false, vec![true]));
}

#[test]
fn whoever_does_not_wait_does_not_keep_a_bucket_from_being_refilled() {
    let bucket =
        NodeQuota::Counted { quota: quota("10/min"), algorithm: AlgorithmKind::TokenBucket };
    let nodes = vec![node("small", "").with(in_mode(QUOTA, NodeLimit::new(bucket)))];
    let domain = Domain { nodes, ..Domain::new("edge") };
    let (gate, clock) = gate_of(Policy::builder().domain(domain).build().unwrap());
    assert_eq!(told(&gate, &[("small", 8)]), (true, vec![false]));
    // Two are left, and three more are owed.
    assert_eq!(told(&gate, &[("small", 5)]), (false, vec![true]));
    let mut passed = 0;
    for _ in 0..60 {
        clock.advance(Duration::from_secs(1));
        passed += usize::from(told(&gate, &[("small", 1)]).0);
    }
    assert_eq!(passed, 7, "ten are refilled in a minute, and three of them were owed");
    assert_eq!(told(&gate, &[("small", 0)]), (false, vec![true]));
}

#[test]
fn one_in_shadow_is_never_exceeded() {
    let both = node("both", "").with(in_mode(NodeMode::ShadowQuota, counted("1/h")));
    let gate = gate_for([both, in_quota_mode("small", "1/h")]);
    assert_eq!(told(&gate, &[("both", 1), ("small", 1)]), (true, vec![false, false]));
    for _ in 0..3 {
        assert_eq!(told(&gate, &[("both", 1), ("small", 1)]), (true, vec![false, true]));
        assert_eq!(told(&gate, &[("both", 1)]), (true, vec![false]));
    }
}

#[test]
fn what_is_replaced_or_unlimited_is_none_of_them() {
    let replaces = vec!["small".to_owned()];
    let gate = gate_for([
        node("small", "").with(in_mode(QUOTA, named("small", counted("1/h")))),
        node("large", "").with(NodeLimit { replaces, ..in_mode(QUOTA, counted("1/h")) }),
        node("free", "").with(in_mode(QUOTA, NodeLimit::new(NodeQuota::Unlimited))),
    ]);
    let all = [("small", 1), ("large", 1), ("free", 1)];
    assert_eq!(told(&gate, &all), (true, vec![false; 3]));
    assert_eq!(told(&gate, &all), (false, vec![false, true, false]));
    assert_eq!(told(&gate, &[("small", 1)]), (true, vec![false]), "nothing was spent of it");
}

#[test]
fn limits_of_the_policy_count_beside_them() {
    let domain = Domain { nodes: vec![in_quota_mode("small", "1/h")], ..Domain::new("edge") };
    let limit = Limit::new("all", "3/h")
        .domain("edge")
        .algorithm(AlgorithmKind::FixedWindow)
        .per(["global"]);
    let (gate, _) = gate_of(Policy::builder().limit(limit).domain(domain).build().unwrap());
    assert_eq!(told(&gate, &[("small", 1)]), (true, vec![false]));
    assert_eq!(told(&gate, &[("small", 1)]), (false, vec![true]));
    assert_eq!(left(&gate, &[("other", "v")]), 2);
}

#[test]
fn metadata_is_told_with_the_state_of_its_limit() {
    let metadata = Metadata::from([("team".to_owned(), MetadataValue::Text("edge".to_owned()))]);
    let limit = NodeLimit { metadata: metadata.clone(), ..counted("1/h") };
    let gate = gate_for([node("a", "").with(limit), node("b", "").with(counted("1/h"))]);
    let outcome = call(&gate, &[&[("a", "v")], &[("b", "v")]]);
    let told: Vec<_> = outcome.outcome().limits().map(|limit| limit.metadata().cloned()).collect();
    assert_eq!(told, [Some(metadata), Some(Metadata::new())]);
}

const LIMITS: [(&str, &str, u64); 3] = [("a", "1/h", 1), ("b", "4/h", 4), ("c", "9/h", 9)];

proptest! {
    /// There, counters only go up, and a descriptor is over the limit if its counter is above it.
    #[test]
    fn calls_are_answered_as_by_counters_that_only_go_up(
        calls in vec(subsequence(LIMITS.to_vec(), 1..4), 1..40),
        hits in vec(0..5_u64, 120),
    ) {
        let gate = gate_for(LIMITS.map(|(key, quota, _)| in_quota_mode(key, quota)));
        let mut counters = HashMap::new();
        let mut hits = hits.into_iter();
        for call in calls {
            let asked: Vec<_> =
                call.iter().map(|(key, ..)| (*key, hits.next().unwrap_or(1))).collect();
            let is_over = |(limit, asked): (&(&str, &str, u64), &(&'static str, u64))| {
                let counter = counters.entry(asked.0).or_insert(0);
                *counter += asked.1;
                *counter > limit.2
            };
            let over: Vec<_> = call.iter().zip(&asked).map(is_over).collect();
            let is_allowed = over.contains(&false);
            prop_assert_eq!(told(&gate, &asked), (is_allowed, over), "{:?}", asked);
        }
    }
}
