use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;

use super::Limiter;
use super::counters::Counters;
use super::overrides::Overrides;
use super::tiers::{Common, TierOf, Tiers};
use crate::algorithm::{AlgorithmKind, Start};
use crate::{Clock, Error, KeyedState, Quota, SystemClock, Timestamp, WhenFull};

/// Builds a [`Limiter`].
///
/// ```
/// use tollgate::{AlgorithmKind, Limiter, WhenFull};
///
/// let limiter = Limiter::<str>::builder("100/min")
///     .algorithm(AlgorithmKind::SlidingWindow)
///     .capacity(1_000_000)
///     .when_full(WhenFull::Deny)
///     .build()?;
/// assert!(limiter.check("203.0.113.7").is_allowed());
/// # Ok::<(), tollgate::Error>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
#[expect(missing_debug_implementations, reason = "a closure cannot be shown")]
pub struct Builder<K: ?Sized, C = SystemClock, S = KeyedState> {
    quota: Result<Quota, Error>,
    kind: AlgorithmKind,
    start: Start,
    capacity: usize,
    when_full: WhenFull,
    clock: C,
    hasher: S,
    tiers: Vec<(String, Result<Quota, Error>, Option<usize>)>,
    resolver: Option<Box<dyn TierOf<K>>>,
    key: PhantomData<fn(&K)>,
}

/// Room for this many clients, in 2.6 MB, unless told otherwise.
const DEFAULT_CAPACITY: usize = 100_000;

impl<K: ?Sized> Builder<K> {
    pub(super) fn new<Q: TryInto<Quota>>(quota: Q) -> Self
    where
        Error: From<Q::Error>,
    {
        Self {
            quota: quota.try_into().map_err(Error::from),
            kind: AlgorithmKind::default(),
            start: Start::default(),
            capacity: DEFAULT_CAPACITY,
            when_full: WhenFull::default(),
            clock: SystemClock,
            hasher: KeyedState::new(),
            tiers: Vec::new(),
            resolver: None,
            key: PhantomData,
        }
    }
}

impl<K: ?Sized, C, S> Builder<K, C, S> {
    /// Spends the quota in another way than a token bucket does.
    pub fn algorithm(mut self, kind: AlgorithmKind) -> Self {
        self.kind = kind;
        self
    }

    /// Chooses what a client never seen may spend. Buckets only.
    pub fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Makes room for so many clients with something spent at once: 100,000 unless
    /// set. Each takes about 26 bytes (52 up to 4,096), from the start. A client counts until
    /// its allowance is whole again.
    pub fn capacity(mut self, clients: usize) -> Self {
        self.capacity = clients;
        self
    }

    /// Chooses what happens to a new client when there is no room.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// Adds a tier: clients whom [`tier_of`](Self::tier_of) gives this name have
    /// this quota, and a table of the limiter's capacity to themselves.
    pub fn tier<Q: TryInto<Quota>>(self, name: impl Into<String>, quota: Q) -> Self
    where
        Error: From<Q::Error>,
    {
        self.add_tier(name.into(), quota.try_into().map_err(Error::from), None)
    }

    /// Adds a [tier](Self::tier) with room for a number of clients of its own.
    pub fn tier_with_capacity<Q: TryInto<Quota>>(
        self,
        name: impl Into<String>,
        quota: Q,
        clients: usize,
    ) -> Self
    where
        Error: From<Q::Error>,
    {
        self.add_tier(name.into(), quota.try_into().map_err(Error::from), Some(clients))
    }

    fn add_tier(
        mut self,
        name: String,
        quota: Result<Quota, Error>,
        capacity: Option<usize>,
    ) -> Self {
        self.tiers.push((name, quota, capacity));
        self
    }

    /// Says which tier a client is in.
    ///
    /// ```
    /// # use tollgate::Limiter;
    /// let limiter = Limiter::<str>::builder("10/s")
    ///     .tier("gold", "100/s burst 200")
    ///     .tier_of(|key: &str| key.starts_with("gold-").then_some("gold"))
    ///     .build()?;
    /// assert_eq!(limiter.check("gold-7").limit(), 200);
    /// assert_eq!(limiter.check("alice").limit(), 10);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn tier_of(mut self, resolver: impl TierOf<K> + 'static) -> Self {
        self.resolver = Some(Box::new(resolver));
        self
    }

    /// Reads another clock than the system's.
    pub fn clock<D: Clock>(self, clock: D) -> Builder<K, D, S> {
        Builder {
            clock,
            quota: self.quota,
            kind: self.kind,
            start: self.start,
            capacity: self.capacity,
            when_full: self.when_full,
            hasher: self.hasher,
            tiers: self.tiers,
            resolver: self.resolver,
            key: PhantomData,
        }
    }

    /// Hashes keys in another way. Clients are told apart by their hash alone, so
    /// the hasher must be keyed with a secret unless all keys can be trusted.
    pub fn hasher<T: BuildHasher + Clone>(self, hasher: T) -> Builder<K, C, T> {
        Builder {
            hasher,
            quota: self.quota,
            kind: self.kind,
            start: self.start,
            capacity: self.capacity,
            when_full: self.when_full,
            clock: self.clock,
            tiers: self.tiers,
            resolver: self.resolver,
            key: PhantomData,
        }
    }
}

impl<K: Hash + ?Sized, C: Clock, S: BuildHasher + Clone> Builder<K, C, S> {
    /// Builds the limiter and takes its memory.
    ///
    /// # Errors
    ///
    /// If a quota is not valid, or not for the algorithm; if the capacity is 0 or
    /// more than memory can be had for; if two tiers have one name.
    pub fn build(self) -> Result<Limiter<K, C, S>, Error> {
        let born = self.clock.now();
        self.build_born(born)
    }

    /// Builds the limiter with what the clients of an old one have spent, in tokens,
    /// up to the new limits; with the old one's hasher and overrides. For changes that
    /// a running limiter cannot make: of its capacity, its tiers, what it does when
    /// full. If the algorithm changes, all start afresh.
    ///
    /// Clients of a tier that is no more take what they have spent along. What is spent
    /// on the old limiter meanwhile may be missed, so nobody should use it by then.
    ///
    /// # Errors
    ///
    /// As for [`build`](Self::build).
    pub fn build_from(mut self, old: &Limiter<K, C, S>) -> Result<Limiter<K, C, S>, Error> {
        self.hasher = old.tiers.base().hasher().clone();
        let limiter = self.build_born(old.born)?;
        let now = limiter.clock.now();
        limiter.restore_at(&old.save(), now, now);
        Ok(limiter)
    }

    fn build_born(self, born: Timestamp) -> Result<Limiter<K, C, S>, Error> {
        let common = Common {
            kind: self.kind,
            start: self.start,
            born,
            when_full: self.when_full,
            hasher: self.hasher,
        };
        let base = common.tier(self.quota?, self.capacity)?;
        let named = self.tiers.into_iter().map(|(name, quota, capacity)| {
            Ok((name, common.tier(quota?, capacity.unwrap_or(self.capacity))?))
        });
        let plain = AtomicBool::new(self.resolver.is_none());
        Ok(Limiter {
            plain,
            tiers: Tiers::new(base, named.collect::<Result<_, Error>>()?, self.resolver)?,
            overrides: Overrides::new(),
            clock: self.clock,
            counters: Counters::new(),
            kind: common.kind,
            start: common.start,
            born: common.born,
            #[cfg(feature = "tokio")]
            queues: super::until_ready::Queues::default(),
            key: PhantomData,
        })
    }
}
