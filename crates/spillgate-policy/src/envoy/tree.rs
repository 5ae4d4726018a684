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
    Node(&'t Reached),
    /// Several wildcards of one key, in the order in which they are tried.
    Wildcards(Vec<&'t str>),
}

/// How far entries lead in a tree at no node of which they end.
pub(crate) struct Lost<'t, 'e> {
    /// The key and value of each node that was passed, as they are written.
    pub(crate) above: Vec<(&'t str, Option<&'t str>)>,
    /// The entry for which there is no node: its key, and its value if there are nodes with that
    /// key. `None` if there are no entries.
    pub(crate) key: Option<(&'e str, Option<&'e str>)>,
    /// The keys or values that there are in its place, in their order.
    pub(crate) known: Vec<&'t str>,
}

impl Tree {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(AsRef::as_ref)
    }

    /// Where entries leave the tree; `None` if they end at a node.
    pub(super) fn lost<'t, 'e>(&'t self, entries: &[(&'e str, &'e str)]) -> Option<Lost<'t, 'e>> {
        let (mut tree, mut above) = (self, Vec::new());
        for (key, value) in entries {
            let Some((own, values)) = tree.0.get_key_value(*key) else {
                let mut known: Vec<_> = tree.keys().collect();
                known.sort_unstable();
                return Some(Lost { above, key: Some((*key, None)), known });
            };
            let Some(place) = values.place(value) else {
                let mut known: Vec<_> = values.written.keys().map(AsRef::as_ref).collect();
                known.sort_unstable();
                return Some(Lost { above, key: Some((*key, Some(*value))), known });
            };
            let mut written = values.written.iter().filter(|(_, other)| **other == place);
            above.push((&**own, written.next().map(|(text, _)| &**text)));
            tree = &values.nodes.get(place)?.below;
        }
        let no_entries = Lost { above, key: None, known: Vec::new() };
        entries.is_empty().then_some(no_entries)
    }

    /// Visits everything in the tree by the names of nodes, which begin with this one.
    pub(crate) fn for_each<'t>(&'t self, above: &str, visit: &mut impl FnMut(&str, Found<'t>)) {
        let mut keys: Vec<_> = self.0.iter().collect();
        keys.sort_unstable_by_key(|(key, _)| *key);
        for (key, values) in keys {
            let texts: HashMap<_, _> =
                values.written.iter().map(|(text, place)| (*place, &**text)).collect();
            for (place, node) in values.nodes.iter().enumerate() {
                let name = node_name(above, key, texts.get(&place).copied());
                visit(&name, Found::Node(node));
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
        self.nodes.get(self.place(value)?)
    }

    fn place(&self, value: &str) -> Option<usize> {
        let wildcard = || self.wildcards.iter().find(|(wildcard, _)| wildcard.matches(value));
        let written = self.written.get(value).copied();
        written.or_else(|| wildcard().map(|(_, place)| *place)).or(self.any)
    }
}
