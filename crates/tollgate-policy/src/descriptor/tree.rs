use std::collections::HashMap;
use std::sync::Arc;

use tollgate::KeyedState;

/// One level of the tree of a domain: its nodes by their keys.
#[derive(Default)]
pub(crate) struct Tree(HashMap<Box<str>, Values, KeyedState>);

/// The nodes of one key.
#[derive(Default)]
struct Values {
    exact: HashMap<Box<str>, Reached, KeyedState>,
    /// By how values begin, in the order in which they are tried.
    prefixes: Vec<(Box<str>, Reached)>,
    /// The key alone.
    any: Option<Box<Reached>>,
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

impl Tree {
    /// Adds a node, and tells whether it was not there yet.
    pub(crate) fn insert(&mut self, key: &str, value: Option<&str>, node: Reached) -> bool {
        let values = self.0.entry(key.into()).or_default();
        match value.map(|value| (value, value.strip_suffix('*'))) {
            None => values.any.replace(Box::new(node)).is_none(),
            Some((value, None)) => values.exact.insert(value.into(), node).is_none(),
            Some((_, Some(prefix))) => {
                let is_new = values.prefixes.iter().all(|(known, _)| **known != *prefix);
                values.prefixes.push((prefix.into(), node));
                is_new
            }
        }
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
        let prefix = || self.prefixes.iter().find(|(prefix, _)| value.starts_with(&**prefix));
        let exact = self.exact.get(value);
        exact.or_else(|| prefix().map(|(_, node)| node)).or(self.any.as_deref())
    }
}
