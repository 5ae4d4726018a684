use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

use super::Limiter;
use super::counters::Counters;
use super::manage::rules;
use super::overrides::Overrides;
use super::tiers::{TierOf, Tiers};
use crate::algorithm::{AlgorithmKind, Start};
use crate::sync::AtomicBool;
use crate::{Clock, Error, KeyedState, Quota, SystemClock, Table, Timestamp, WhenFull};

/// Builds a [`Limiter`].
///
/// ```
/// use spillgate::{AlgorithmKind, Limiter, WhenFull};
///
/// let limiter = Limiter::<str>::builder("100/min")
///     .algorithm(AlgorithmKind::SlidingWindow)
///     .capacity(1_000_000)
///     .when_full(WhenFull::Deny)
///     .build()?;
/// assert!(limiter.check("203.0.113.7").is_allowed());
/// # Ok::<(), spillgate::Error>(())
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
    max_debt: Option<u64>,
    tiers: Vec<(String, Result<Quota, Error>)>,
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
            max_debt: None,
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

    /// Lets clients owe no more than `tokens` beyond their burst: what
    /// [settling](Limiter::settle) and [debits](Limiter::debit) would charge beyond it is not
    /// charged. Unless set, that is what a day refills or ten bursts, whichever is more, so
    /// that no mistake locks a client out for ever.
    pub fn max_debt(mut self, tokens: u64) -> Self {
        self.max_debt = Some(tokens);
        self
    }

    /// Adds a tier: clients whom [`tier_of`](Self::tier_of) gives this name have
    /// this quota. All tiers share the limiter's table and its capacity.
    pub fn tier<Q: TryInto<Quota>>(mut self, name: impl Into<String>, quota: Q) -> Self
    where
        Error: From<Q::Error>,
    {
        self.tiers.push((name.into(), quota.try_into().map_err(Error::from)));
        self
    }

    /// Says which tier a client is in.
    ///
    /// ```
    /// # use spillgate::Limiter;
    /// let limiter = Limiter::<str>::builder("10/s")
    ///     .tier("gold", "100/s burst 200")
    ///     .tier_of(|key: &str| key.starts_with("gold-").then_some("gold"))
    ///     .build()?;
    /// assert_eq!(limiter.check("gold-7").limit(), 200);
    /// assert_eq!(limiter.check("alice").limit(), 10);
    /// # Ok::<(), spillgate::Error>(())
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
            max_debt: self.max_debt,
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
            max_debt: self.max_debt,
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
    /// If a quota is not valid, or not for the algorithm; if the tiers have [nothing in
    /// common](AlgorithmKind::with_quotas), or two have one name; if a debt is deeper than a
    /// word can tell; if the capacity is 0 or more than memory can be had for.
    pub fn build(self) -> Result<Limiter<K, C, S>, Error> {
        let born = self.clock.now();
        self.build_born(born)
    }

    /// Builds the limiter with what the clients of an old one have spent, in tokens, as for
    /// [`set_quota`](Limiter::set_quota); with the old one's hasher and overrides. For changes
    /// that a running limiter cannot make: of its capacity, its tiers, what it does when
    /// full. If the algorithm changes, all start afresh.
    ///
    /// What is spent on the old limiter meanwhile may be missed, so nobody should use it by
    /// then.
    ///
    /// # Errors
    ///
    /// As for [`build`](Self::build).
    pub fn build_from(mut self, old: &Limiter<K, C, S>) -> Result<Limiter<K, C, S>, Error> {
        self.hasher = old.table.hasher().clone();
        let is_alike = self.kind == old.kind;
        let limiter = self.build_born(old.born)?;
        if is_alike {
            let now = limiter.clock.now();
            limiter.restore_at(&old.save(), now, now);
        }
        Ok(limiter)
    }

    fn build_born(self, born: Timestamp) -> Result<Limiter<K, C, S>, Error> {
        let named = self.tiers.into_iter().map(|(name, quota)| Ok((name, quota?)));
        let named = named.collect::<Result<Vec<_>, Error>>()?;
        let base = self.quota?;
        let quotas: Vec<_> =
            [base].into_iter().chain(named.iter().map(|(_, quota)| *quota)).collect();
        let rules = rules(self.kind, &quotas, self.start, born, self.max_debt)?;
        let is_plain = self.resolver.is_none();
        let tiers = Tiers::new(base, named, self.resolver)?;
        let table = Table::with_tiers(
            rules.base,
            &rules.tiers,
            self.capacity,
            self.when_full,
            self.hasher,
        )?;
        Ok(Limiter {
            table,
            tiers,
            overrides: Overrides::new(),
            plain: AtomicBool::new(is_plain),
            clock: self.clock,
            counters: Counters::new(),
            kind: self.kind,
            start: self.start,
            born,
            max_debt: self.max_debt,
            #[cfg(feature = "tokio")]
            queues: super::until_ready::Queues::default(),
            key: PhantomData,
        })
    }
}
