use std::time::Duration;

use crate::{Fingerprint, Name};

/// What a node announces, and asks about the others.
#[derive(Clone, Copy, Debug)]
pub struct Announcement {
    /// The node that is alive; `None` to only look.
    pub joins: Option<Member>,
    /// A node that leaves, or the previous announcement of this one.
    pub leaves: Option<Member>,
    /// How long nodes count as alive.
    pub lifetime: Duration,
    /// True to list the fingerprints of the others, which costs a look at each of them.
    pub lists: bool,
}

/// A node as announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// A random name.
    pub node: Name,
    /// `None` for nodes of earlier versions.
    pub fingerprint: Option<Fingerprint>,
}

/// The nodes that are alive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// Their number, including the caller if it has [joined](Announcement::joins).
    pub count: u32,
    /// The fingerprints of the others with their counts; `None` if not listed.
    pub others: Option<Vec<(Option<Fingerprint>, u32)>>,
    /// Other prefixes in use on the same Redis, as far as known.
    pub other_prefixes: u32,
}
