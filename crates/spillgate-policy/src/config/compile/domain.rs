//! Trees of limits for descriptors, which programs give.

use std::collections::HashSet;
use std::sync::Arc;

use spillgate::{AlgorithmKind, Quota, Start, Timestamp, WhenFull};

use super::Compiler;
use crate::Mode;
use crate::config::spec::{At, Domain, Node, NodeLimit, NodeMode, NodeQuota};
use crate::envoy::{Limited, Met, Pattern, Reached, Scope, Tree, node_name};
use crate::policy::part::{Part, Per, per_text};
use crate::policy::rule::{Cost, Matches, Rule};
use crate::store::{LimitSpec, Outage, Sharing};

/// Deeper trees are refused: nobody has written one.
const DEEPEST: usize = 64;

/// Where in a tree a node is.
struct Above<'a> {
    domain: &'a str,
    /// The name of the node above.
    name: &'a str,
    /// What the node above is counted by.
    per: &'a Per,
    depth: usize,
}

impl Compiler<'_> {
    /// The trees of all domains by name. Their limits come after those that there are.
    pub(super) fn domains(
        &mut self,
        domains: &[Domain],
        rules: &mut Vec<Option<Rule>>,
    ) -> Vec<(Box<str>, Tree)> {
        let mut seen = HashSet::new();
        let mut trees = Vec::with_capacity(domains.len());
        for domain in domains {
            if domain.name.is_empty() {
                self.report_node("a domain has no name; give it one, such as \"edge\"".to_owned());
            } else if !seen.insert(&domain.name) {
                let name = &domain.name;
                self.report_node(format!("there are two domains called {name:?}; make them one"));
            }
            let name = node_name("", &domain.name, None);
            let above = Above { domain: &domain.name, name: &name, per: &Per::new(), depth: 0 };
            trees.push((domain.name.as_str().into(), self.tree(&domain.nodes, &above, rules)));
        }
        trees
    }

    fn tree(&mut self, nodes: &[Node], above: &Above<'_>, rules: &mut Vec<Option<Rule>>) -> Tree {
        let mut tree = Tree::default();
        for node in nodes {
            let value = node.value.as_deref();
            let name = node_name(above.name, &node.key, value);
            if node.key.is_empty() {
                self.report_node(format!("{name}: an entry has no key; give it one"));
            }
            if above.depth >= DEEPEST {
                self.report_node(format!(
                    "{name}: a descriptor has at most {DEEPEST} entries here"
                ));
                break;
            }
            let mut per = above.per.clone();
            if node.counts_apart() {
                per.push(Part::Level(Box::new((above.depth, node.key.as_str().into()))));
            }
            let limit = node.limit.as_ref();
            let met = limit.map(|limit| self.met(limit, &name, above.domain, &per, rules));
            let next = Above { name: &name, per: &per, depth: above.depth + 1, ..*above };
            let reached = Reached { met, below: self.tree(&node.nodes, &next, rules) };
            if !tree.insert(&node.key, value, reached) {
                self.report_node(format!("{name} is there twice; write it once"));
            }
        }
        tree
    }

    /// What descriptors meet at a node, whose limit is added to the others.
    fn met(
        &mut self,
        limit: &NodeLimit,
        name: &str,
        domain: &str,
        per: &Per,
        rules: &mut Vec<Option<Rule>>,
    ) -> Met {
        let (quota, algorithm, is_closed) = match limit.quota {
            NodeQuota::Unlimited => return Met::new(Limited::Not, limit),
            NodeQuota::Counted { quota, algorithm } => (Ok(quota), algorithm, false),
            // It is asked for more than there can ever be, so that a call with it is denied
            // as any other is.
            NodeQuota::Closed { period } => {
                (Quota::per(1, period).build(), AlgorithmKind::TokenBucket, true)
            }
        };
        let counted = quota.and_then(|quota| {
            algorithm.with_quota(&quota, Start::Full, Timestamp::ZERO)?;
            Ok(quota)
        });
        let per = if is_closed { Per::new() } else { per.clone() };
        let place = rules.len();
        match counted {
            Err(why) => self.report_node(format!("{name}: {why}")),
            Ok(quota) => {
                let capacity = self.node_capacity(per.is_empty());
                let spec = spec(name.to_owned(), per_text(&per), algorithm, quota, capacity);
                let mode = match limit.mode {
                    NodeMode::Enforce => Mode::Enforce,
                    NodeMode::Shadow | NodeMode::Quota | NodeMode::ShadowQuota => Mode::Shadow,
                };
                let mut rule = Rule::new(spec, per, Matches::default(), mode, Cost::Constant(1));
                rule.scope = Some(Box::new(Scope {
                    shown: limit.name.as_deref().map(Into::into),
                    is_closed,
                    mode: limit.mode,
                    metadata: limit.metadata.clone(),
                    ..Scope::new(domain, Pattern::Node)
                }));
                rules.push(Some(rule));
            }
        }
        Met::new(Limited::By(place), limit)
    }

    /// Reports a problem that is in no file.
    fn report_node(&mut self, message: String) {
        self.report(&At::<()>::from(()), message);
    }
}

/// How many limits there are in a tree that count values apart, if those above do not, or do.
pub(super) fn tables_of(nodes: &[Node], is_open: bool) -> usize {
    let tables = |node: &Node| {
        let is_open = is_open || node.counts_apart();
        let quota = node.limit.as_ref().map(|limit| limit.quota);
        let is_counted = matches!(quota, Some(NodeQuota::Counted { .. }));
        usize::from(is_open && is_counted) + tables_of(&node.nodes, is_open)
    };
    nodes.iter().map(tables).sum()
}

pub(super) fn spec(
    name: String,
    per: String,
    algorithm: AlgorithmKind,
    quota: Quota,
    capacity: usize,
) -> LimitSpec {
    LimitSpec {
        name,
        per,
        algorithm,
        start: Start::default(),
        quota,
        is_by_call: false,
        tiers: Vec::new(),
        overrides: Vec::new(),
        capacity,
        when_full: WhenFull::default(),
        max_debt: None,
        sharing: Sharing::default(),
        outage: Outage::default(),
        hold: None,
    }
}

impl Met {
    fn new(limited: Limited, limit: &NodeLimit) -> Self {
        Self {
            limited,
            name: limit.name.as_deref().map(Arc::from),
            replaces: limit.replaces.iter().map(|name| name.as_str().into()).collect(),
        }
    }
}
