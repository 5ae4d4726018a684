use std::collections::HashMap;
use std::sync::Arc;

use spillgate::KeyedState;

use super::name::node_name;
use super::value::Wildcard;

/// One level of the tree of a domain: its nodes by their keys.
#[derive(Default)]
pub(crate) struct Tree(HashMap<Box<str>, Values, KeyedState>);

/// The nodes of one key.
#[derive(Default)]
struct Values {
    nodes: Vec<Reached>,
    /// The places of nodes with a value, by that as it is written.
    written: HashMap<Box<str>, usize, KeyedState>,
    /// Those whose value is a wildcard, in the order in which they are tried.
    wildcards: Vec<(Wildcard, usize)>,
    /// That with the key alone.
    any: Option<usize>,
}

/// A node, and what is below it.
pub(crate) struct Reached {
    /// What descriptors meet that end here.
    pub(crate) met: Option<Met>,
    pub(crate) below: Tree,
}

/// What a descriptor meets at a node.
pub(crate) struct Met {
    pub(crate) limited: Limited,
    /// The name that answers show.
    pub(crate) name: Option<Arc<str>>,
    /// The names of those that do not count beside it.
    pub(crate) replaces: Box<[Box<str>]>,
}

/// Whether a node limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limited {
    Not,
    /// By the limit at this place of the policy.
    By(usize),
}

/// What is found on a walk over a tree.
pub(crate) enum Found<'t> {
    /// A node, with what descriptors meet that end there.
    Node(Option<&'t Met>),
    /// Several wildcards of one key, in the order in which they are tried.
    Wildcards(Vec<&'t str>),
}

impl Tree {
    /// Visits everything in the tree by the names of nodes, which begin with this one.
    pub(crate) fn for_each<'t>(&'t self, above: &str, visit: &mut impl FnMut(&str, Found<'t>)) {
        let mut keys: Vec<_> = self.0.iter().collect();
        keys.sort_unstable_by_key(|(key, _)| *key);
        for (key, values) in keys {
            let texts: HashMap<_, _> =
                values.written.iter().map(|(text, place)| (*place, &**text)).collect();
            for (place, node) in values.nodes.iter().enumerate() {
                let name = node_name(above, key, texts.get(&place).copied());
                visit(&name, Found::Node(node.met.as_ref()));
                node.below.for_each(&name, visit);
            }
            if values.wildcards.len() > 1 {
                let tried = values.wildcards.iter().filter_map(|(_, place)| texts.get(place));
                let tried = tried.copied().collect();
                visit(&node_name(above, key, None), Found::Wildcards(tried));
            }
        }
    }

    /// Adds a node, and tells whether it was not there yet.
    pub(crate) fn insert(&mut self, key: &str, value: Option<&str>, node: Reached) -> bool {
        let values = self.0.entry(key.into()).or_default();
        let place = values.nodes.len();
        values.nodes.push(node);
        let Some(value) = value else { return values.any.replace(place).is_none() };
        values.wildcards.extend(Wildcard::of(value).map(|wildcard| (wildcard, place)));
        values.written.insert(value.into(), place).is_none()
    }

    /// The node at which entries end.
    pub(crate) fn reach(&self, entries: &[(&str, &str)]) -> Option<&Reached> {
        let ((key, value), rest) = entries.split_first()?;
        let node = self.0.get(*key)?.find(value)?;
        if rest.is_empty() { Some(node) } else { node.below.reach(rest) }
    }
}

impl Values {
    fn find(&self, value: &str) -> Option<&Reached> {
        let wildcard = || self.wildcards.iter().find(|(wildcard, _)| wildcard.matches(value));
        let written = self.written.get(value).copied();
        let place = written.or_else(|| wildcard().map(|(_, place)| *place)).or(self.any)?;
        self.nodes.get(place)
    }
}
