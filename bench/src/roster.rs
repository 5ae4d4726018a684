//! Who takes part.

use std::net::IpAddr;

use crate::peer::{Contender, Peer};
use crate::peers::{
    DashMapBucket, Floor, Governor, GovernorOwned, LeakyBucket, Quota, Ratelimit, Spillgate,
    SpillgateIp, SpillgateMany, SpillgateSipHash, Throttlecrab,
};
use crate::terms::Terms;

/// Someone who can be built when needed.
#[derive(Clone, Copy)]
pub struct Candidate {
    pub name: &'static str,
    build: fn(Terms, usize) -> Box<dyn Contender>,
}

impl Candidate {
    const fn of<P: Peer>() -> Self {
        Self { name: P::NAME, build: |terms, capacity| Box::new(P::build(terms, capacity)) }
    }

    pub fn build(&self, terms: Terms, capacity: usize) -> Box<dyn Contender> {
        (self.build)(terms, capacity)
    }

    /// Whether it is one limiter of its own, rather than the floor or another
    /// way to call the same one.
    pub fn is_limiter(&self) -> bool {
        ![Floor::NAME, SpillgateMany::NAME].contains(&self.name)
    }
}

/// In the order of the tables.
pub const ROSTER: [Candidate; 13] = [
    Candidate::of::<Spillgate>(),
    Candidate::of::<SpillgateMany>(),
    Candidate::of::<SpillgateSipHash>(),
    Candidate::of::<SpillgateIp>(),
    Candidate::of::<Governor<String>>(),
    Candidate::of::<GovernorOwned>(),
    Candidate::of::<Governor<IpAddr>>(),
    Candidate::of::<DashMapBucket>(),
    Candidate::of::<Quota>(),
    Candidate::of::<Ratelimit>(),
    Candidate::of::<Throttlecrab>(),
    Candidate::of::<LeakyBucket>(),
    Candidate::of::<Floor>(),
];

/// What `name` is compared with: spillgate, with the same kind of key.
pub fn baseline_of(name: &str) -> &'static str {
    if name.ends_with("-ip") { SpillgateIp::NAME } else { Spillgate::NAME }
}

/// Whether `name` is somebody else's limiter.
pub fn is_rival(name: &str) -> bool {
    !name.starts_with(Spillgate::NAME) && name != Floor::NAME
}
