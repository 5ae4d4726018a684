//! What a proxy asks about in place of a request: the entries of a descriptor, in a domain.

mod mismatch;
mod name;
mod named;
mod tree;
mod value;

use std::collections::HashMap;

use smallvec::SmallVec;
use spillgate::{KeyedState, Quota};

pub(crate) use self::name::node_name;
pub(crate) use self::named::MOST_ENTRIES;
use self::named::Named;
pub(crate) use self::tree::{Found, Limited, Met, Reached, Tree};
pub(crate) use self::value::{ValuePattern, is_wildcard};
use crate::config::spec::{Metadata, NodeMode};

/// What a proxy asks about: entries of a key and a value each, in an order.
///
/// ```
/// use spillgate_policy::Descriptor;
///
/// let entries = [("remote_address", "203.0.113.7"), ("path", "/login")];
/// let descriptor = Descriptor { hits: 2, ..Descriptor::new(&entries) };
/// ```
#[derive(Clone, Copy)]
pub struct Descriptor<'a> {
    /// The entries: each a key and a value.
    pub entries: &'a [(&'a str, &'a str)],
    /// How often it counts: 0 only looks.
    pub hits: u64,
    /// True if the hits are given back, not taken. That never denies, and gives back no more
    /// than was spent.
    pub gives_back: bool,
    /// A quota that comes with the call, in place of all limits that the descriptor would
    /// meet: a token bucket of the domain and the whole descriptor. It must refill.
    pub quota: Option<Quota>,
}

impl<'a> Descriptor<'a> {
    /// A descriptor that counts once, under the limits of the policy.
    #[must_use]
    pub fn new(entries: &'a [(&'a str, &'a str)]) -> Self {
        Self { entries, hits: 1, gives_back: false, quota: None }
    }
}

// Values may be secrets, so they are not shown.
debug_fields!(self: Descriptor<'_> {
    keys: self.entries.iter().map(|(key, _)| key).collect::<Vec<_>>(),
    hits: self.hits,
    gives_back: self.gives_back,
    quota: self.quota,
});

/// Which limits descriptors meet, by their domain.
#[derive(Default)]
pub(crate) struct Descriptors {
    domains: HashMap<Box<str>, DomainLimits, KeyedState>,
    /// The place of the limit for quotas that come with calls, if there is one.
    pub(crate) call_quota: Option<usize>,
}

/// The limits of one domain.
#[derive(Default)]
pub(crate) struct DomainLimits {
    /// Those for every descriptor.
    any: Vec<usize>,
    /// Those for descriptors of certain entries.
    named: Named,
    tree: Tree,
}

impl Descriptors {
    /// Adds a limit of the policy.
    pub(crate) fn insert(&mut self, scope: &Scope, place: usize) {
        let domain = self.domains.entry(scope.domain.clone()).or_default();
        match &scope.pattern {
            Pattern::Any => domain.any.push(place),
            Pattern::Entries(entries) => domain.named.insert(entries, place),
            Pattern::Node => {}
        }
    }

    /// Adds the tree of a domain.
    pub(crate) fn insert_tree(&mut self, domain: &str, tree: Tree) {
        self.domains.entry(domain.into()).or_default().tree = tree;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }

    pub(crate) fn domain(&self, name: &str) -> Option<&DomainLimits> {
        self.domains.get(name)
    }

    /// The tree of each domain, by name.
    pub(crate) fn trees(&self) -> impl Iterator<Item = (&str, &Tree)> {
        let mut domains: Vec<_> = self.domains.iter().collect();
        domains.sort_unstable_by_key(|(name, _)| *name);
        domains.into_iter().map(|(name, domain)| (&**name, &domain.tree))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.domains.keys().map(AsRef::as_ref)
    }
}

impl DomainLimits {
    /// Where a descriptor ends in the tree.
    pub(crate) fn reach(&self, entries: &[(&str, &str)]) -> Option<&Reached> {
        self.tree.reach(entries)
    }

    /// Visits the limits of the policy that a descriptor meets, in no particular order, and
    /// perhaps some that it does not.
    pub(crate) fn for_each(&self, entries: &[(&str, &str)], visit: &mut impl FnMut(usize)) {
        self.any.iter().for_each(|place| visit(*place));
        if !self.named.is_empty() {
            let mut sorted: SmallVec<[(&str, &str); 8]> = SmallVec::from_slice(entries);
            sorted.sort_unstable();
            self.named.for_each(&sorted, visit);
        }
    }
}

/// Which descriptors a limit is for, and how responses describe it.
pub(crate) struct Scope {
    pub(crate) domain: Box<str>,
    pub(crate) pattern: Pattern,
    /// The name that answers show, if it is not the limit's own.
    pub(crate) shown: Option<Box<str>>,
    /// True if it denies everything.
    pub(crate) is_closed: bool,
    pub(crate) mode: NodeMode,
    /// What responses carry while it is not exceeded.
    pub(crate) metadata: Metadata,
}

/// Which descriptors of its domain a limit is for.
pub(crate) enum Pattern {
    /// All.
    Any,
    /// Those that have exactly these entries, in any order. In the order of the keys.
    Entries(Box<[(Box<str>, ValuePattern)]>),
    /// Those that end at a node of the tree.
    Node,
}

impl Scope {
    pub(crate) fn new(domain: &str, pattern: Pattern) -> Self {
        let domain = domain.into();
        let (mode, metadata) = (NodeMode::default(), Metadata::new());
        Self { domain, pattern, shown: None, is_closed: false, mode, metadata }
    }

    /// True if the limit is one of a tree.
    pub(crate) fn is_node(&self) -> bool {
        matches!(self.pattern, Pattern::Node)
    }

    /// True if the limit is for a descriptor of its domain.
    pub(crate) fn is_for(&self, entries: &[(&str, &str)]) -> bool {
        let Pattern::Entries(wanted) = &self.pattern else { return true };
        let has = |(key, wanted): &(Box<str>, ValuePattern)| {
            let found = entries.iter().find(|(found, _)| *found == &**key);
            found.is_some_and(|(_, value)| wanted.matches(value))
        };
        // Of as many entries as there are keys, each of which is there, none is there twice.
        wanted.len() == entries.len() && wanted.iter().all(has)
    }
}

/// The value of the only entry with a key.
pub(crate) fn only_value<'a>(entries: &[(&'a str, &'a str)], key: &str) -> Option<&'a str> {
    let mut found = entries.iter().filter(|(other, _)| *other == key);
    let (_, value) = found.next()?;
    found.next().is_none().then_some(*value)
}
