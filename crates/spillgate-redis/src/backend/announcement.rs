use std::time::Duration;

use crate::{Fingerprint, Name};

/// What a node tells of itself, and wants to know of the others.
#[derive(Clone, Copy, Debug)]
pub struct Announcement {
    /// Who is alive; `None` if that is nobody's business.
    pub joins: Option<Member>,
    /// Who is gone, or was announced otherwise before.
    pub leaves: Option<Member>,
    /// For how long nodes count as alive.
    pub lifetime: Duration,
    /// True if the fingerprints of the others are wanted, which takes a look at each of them.
    pub lists: bool,
}

/// A node, as it is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// A name that nobody else has.
    pub node: Name,
    /// What it shares by; `None` if it does not say, as nodes of earlier versions.
    pub fingerprint: Option<Fingerprint>,
}

/// Which nodes are alive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// How many there are, the one that asks included if it has [joined](Announcement::joins).
    pub count: u32,
    /// What the others share by, and how many of them do; `None` if they were not listed.
    pub others: Option<Vec<(Option<Fingerprint>, u32)>>,
    /// How many other prefixes nodes use the same engine with, as far as that can be known.
    pub other_prefixes: u32,
}
