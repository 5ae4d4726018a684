use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;

use governor::clock::DefaultClock;
use governor::state::keyed::DashMapStateStore;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::keys::FlatText;
use crate::peer::{Peer, Sweep};
use crate::terms::Terms;

/// The usual limiter of the `governor` crate, over a `DashMap`.
pub struct Governor<K: Hash + Eq + Clone>(DefaultKeyedRateLimiter<K>);

/// The same, for a caller who happens to have every key as a `String` already.
pub struct GovernorOwned(Governor<String>);

impl<K: Hash + Eq + Clone> Governor<K> {
    fn new(terms: Terms, capacity: usize) -> Self {
        let burst = NonZeroU32::new(terms.burst).expect("a burst above zero");
        let quota = Quota::with_period(terms.interval()).expect("a rate above zero");
        Self(RateLimiter::new(
            quota.allow_burst(burst),
            DashMapStateStore::with_capacity(capacity),
            DefaultClock::default(),
        ))
    }
}

/// It takes only a `&String`, so a `&str` has to be copied into one.
impl Peer for Governor<String> {
    const NAME: &'static str = "governor";
    type Keys = FlatText;

    fn build(terms: Terms, capacity: usize) -> Self {
        Self::new(terms, capacity)
    }

    #[inline]
    fn check(&self, key: &str) -> bool {
        self.0.check_key(&key.to_owned()).is_ok()
    }
}

impl Peer for GovernorOwned {
    const NAME: &'static str = "governor-owned";
    type Keys = Vec<String>;

    fn build(terms: Terms, capacity: usize) -> Self {
        Self(Governor::new(terms, capacity))
    }

    #[inline]
    fn check(&self, key: &String) -> bool {
        self.0.0.check_key(key).is_ok()
    }
}

impl Sweep for Governor<String> {
    fn sweep(&self) {
        self.0.retain_recent();
    }
}

impl Peer for Governor<IpAddr> {
    const NAME: &'static str = "governor-ip";
    type Keys = Vec<IpAddr>;

    fn build(terms: Terms, capacity: usize) -> Self {
        Self::new(terms, capacity)
    }

    #[inline]
    fn check(&self, key: &IpAddr) -> bool {
        self.0.check_key(key).is_ok()
    }
}
