use std::hash::RandomState;
use std::net::IpAddr;

use tollgate::{Limiter, Quota, SystemClock};

use crate::keys::FlatText;
use crate::peer::{Peer, Sweep};
use crate::terms::Terms;

/// As its documentation begins.
pub struct Tollgate(Limiter<str>);

/// The same, asked in batches.
pub struct TollgateMany(Limiter<str>);

/// With the hasher of the standard library.
pub struct TollgateSipHash(Limiter<str, SystemClock, RandomState>);

pub struct TollgateIp(Limiter<IpAddr>);

const VALID: &str = "terms that are a valid quota";

fn quota(terms: Terms) -> tollgate::QuotaBuilder {
    Quota::per(terms.amount.into(), terms.period).burst(terms.burst.into())
}

impl Peer for Tollgate {
    const NAME: &'static str = "tollgate";
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

impl Sweep for Tollgate {
    /// Nobody has to: an idle client's slot is used again anyway.
    fn sweep(&self) {
        self.0.purge_idle();
    }
}

impl Peer for TollgateMany {
    const NAME: &'static str = "tollgate-many";
    const BATCHED: bool = true;
    type Keys = FlatText;

    fn build(terms: Terms, capacity: usize) -> Self {
        Self(Tollgate::build(terms, capacity).0)
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

impl Peer for TollgateSipHash {
    const NAME: &'static str = "tollgate-siphash";
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

impl Peer for TollgateIp {
    const NAME: &'static str = "tollgate-ip";
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
