use std::hash::RandomState;
use std::net::IpAddr;

use spillgate::{Limiter, Quota, SystemClock};

use crate::keys::FlatText;
use crate::peer::{Peer, Sweep};
use crate::terms::Terms;

/// As its documentation begins.
pub struct Spillgate(Limiter<str>);

/// The same, asked in batches.
pub struct SpillgateMany(Limiter<str>);

/// With the hasher of the standard library.
pub struct SpillgateSipHash(Limiter<str, SystemClock, RandomState>);

pub struct SpillgateIp(Limiter<IpAddr>);

const VALID: &str = "terms that are a valid quota";

fn quota(terms: Terms) -> spillgate::QuotaBuilder {
    Quota::per(terms.amount.into(), terms.period).burst(terms.burst.into())
}

impl Peer for Spillgate {
    const NAME: &'static str = "spillgate";
    type Keys = FlatText;

    fn build(terms: Terms, capacity: usize) -> Self {
        let builder = Limiter::builder(quota(terms)).capacity(capacity);
        Self(builder.build().expect(VALID))
    }

    #[inline]
    fn check(&self, key: &str) -> bool {
        self.0.check(key).is_allowed()
    }
}

impl Sweep for Spillgate {
    /// Nobody has to: an idle caller's slot is used again anyway.
    fn sweep(&self) {
        self.0.purge_idle();
    }
}

impl Peer for SpillgateMany {
    const NAME: &'static str = "spillgate-many";
    const BATCHED: bool = true;
    type Keys = FlatText;

    fn build(terms: Terms, capacity: usize) -> Self {
        Self(Spillgate::build(terms, capacity).0)
    }

    #[inline]
    fn check(&self, key: &str) -> bool {
        self.0.check(key).is_allowed()
    }

    #[inline]
    fn check_all<'k>(&self, keys: impl Iterator<Item = &'k str>) -> u64 {
        let decisions = self.0.check_many(keys);
        decisions.map(|decision| u64::from(decision.is_allowed())).sum()
    }
}

impl Peer for SpillgateSipHash {
    const NAME: &'static str = "spillgate-siphash";
    type Keys = FlatText;

    fn build(terms: Terms, capacity: usize) -> Self {
        let builder = Limiter::builder(quota(terms)).capacity(capacity);
        let limiter = builder.hasher(RandomState::new()).build();
        Self(limiter.expect(VALID))
    }

    #[inline]
    fn check(&self, key: &str) -> bool {
        self.0.check(key).is_allowed()
    }
}

impl Peer for SpillgateIp {
    const NAME: &'static str = "spillgate-ip";
    type Keys = Vec<IpAddr>;

    fn build(terms: Terms, capacity: usize) -> Self {
        let builder = Limiter::builder(quota(terms)).capacity(capacity);
        Self(builder.build().expect(VALID))
    }

    #[inline]
    fn check(&self, key: &IpAddr) -> bool {
        self.0.check(key).is_allowed()
    }
}
