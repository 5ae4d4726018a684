//! Limits for descriptors: which of them are met, and what is decided about a call.

mod calls;
mod conformance;
mod explain;
mod matching;
mod model;
mod naive;
mod problems;
mod quota_mode;
mod quotas;
mod reload;
mod trees;

use crate::common::TestGate;
use spillgate::{AlgorithmKind, Quota};
use spillgate_policy::{
    Descriptor, DescriptorKind, DescriptorOutcome, Descriptors, Node, NodeLimit, NodeMode,
    NodeQuota,
};

type Entries<'a> = &'a [(&'a str, &'a str)];

fn quota(text: &str) -> Quota {
    text.parse().unwrap()
}

/// What is decided about a call of the domain `edge`.
fn decide(gate: &TestGate, descriptors: &[Descriptor<'_>]) -> DescriptorOutcome<'static> {
    gate.try_decide(&Descriptors { domain: "edge", descriptors }, |it| {
        it.map(DescriptorOutcome::take)
    })
    .unwrap()
    .unwrap()
}

/// What is decided about a call that counts each of some descriptors once.
fn call(gate: &TestGate, descriptors: &[Entries<'_>]) -> DescriptorOutcome<'static> {
    let descriptors: Vec<_> = descriptors.iter().map(|entries| Descriptor::new(entries)).collect();
    decide(gate, &descriptors)
}

/// What a descriptor is, and the names of the limits that it meets.
fn met(gate: &TestGate, entries: Entries<'_>) -> (DescriptorKind, Vec<String>) {
    let outcome = decide(gate, &[Descriptor { hits: 0, ..Descriptor::new(entries) }]);
    let state = outcome.descriptors().next().unwrap();
    let mut names: Vec<_> = state.limits().map(|limit| limit.name().to_owned()).collect();
    names.sort_unstable();
    (state.kind(), names)
}

/// How much is left of the limit nearest to denying, without spending.
fn left(gate: &TestGate, entries: Entries<'_>) -> u64 {
    let outcome = decide(gate, &[Descriptor { hits: 0, ..Descriptor::new(entries) }]);
    let state = outcome.descriptors().next().unwrap();
    state.nearest().unwrap().decision().remaining()
}

/// A node with a value, or any if there is none.
fn node(key: &str, value: &str) -> Node {
    let value = if value.is_empty() { None } else { Some(value.to_owned()) };
    Node { value, ..Node::new(key) }
}

/// A limit that counts in windows, as such trees mostly do.
fn counted(quota: &str) -> NodeLimit {
    let quota = quota.parse().unwrap();
    NodeLimit::new(NodeQuota::Counted { quota, algorithm: AlgorithmKind::FixedWindow })
}

trait With: Sized {
    fn with(self, limit: NodeLimit) -> Self;
    fn above(self, nodes: impl IntoIterator<Item = Node>) -> Self;
}

impl With for Node {
    fn with(self, limit: NodeLimit) -> Self {
        Self { limit: Some(limit), ..self }
    }

    fn above(self, nodes: impl IntoIterator<Item = Node>) -> Self {
        Self { nodes: nodes.into_iter().collect(), ..self }
    }
}

fn named(name: &str, limit: NodeLimit) -> NodeLimit {
    NodeLimit { name: Some(name.to_owned()), ..limit }
}

fn in_mode(mode: NodeMode, limit: NodeLimit) -> NodeLimit {
    NodeLimit { mode, ..limit }
}
