use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

use super::Limiter;
use super::accounts::Accounts;
use super::counters::Counters;
use super::manage::rules;
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
pub struct LimiterBuilder<K: ?Sized, C = SystemClock, S = KeyedState> {
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

/// Takes 2.6 MB.
const DEFAULT_CAPACITY: usize = 100_000;

impl<K: ?Sized> LimiterBuilder<K> {
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

impl<K: ?Sized, C, S> LimiterBuilder<K, C, S> {
    /// Sets the algorithm: a token bucket by default.
    pub fn algorithm(mut self, kind: AlgorithmKind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets what a new caller may spend. Token and interval buckets only.
    pub fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Sets how many callers can have something spent at the same time: 100,000 by default, at
    /// about 26 bytes each (52 up to 4,096). A caller counts until it is back at its full quota.
    pub fn capacity(mut self, callers: usize) -> Self {
        self.capacity = callers;
        self
    }

    /// Sets what happens to a new caller when the table is full.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// Limits debt to `tokens` beyond the burst: [settling](Limiter::settle) and
    /// [debits](Limiter::debit) spend no more than that. The default is the refill of one day or
    /// ten bursts, whichever is more, so that no mistake locks a caller out for ever.
    pub fn max_debt(mut self, tokens: u64) -> Self {
        self.max_debt = Some(tokens);
        self
    }

    /// Adds a tier: callers for which [`tier_of`](Self::tier_of) returns this name have this
    /// quota. All tiers share the limiter's table and its capacity.
    pub fn tier<Q: TryInto<Quota>>(mut self, name: impl Into<String>, quota: Q) -> Self
    where
        Error: From<Q::Error>,
    {
        self.tiers.push((name.into(), quota.try_into().map_err(Error::from)));
        self
    }

    /// Sets the function that returns a caller's tier.
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

    /// Sets the clock: the system's by default.
    pub fn clock<D: Clock>(self, clock: D) -> LimiterBuilder<K, D, S> {
        LimiterBuilder {
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

    /// Sets the hasher. Callers are distinguished by their hash alone, so it must be keyed with a
    /// secret unless all keys can be trusted.
    pub fn hasher<T: BuildHasher + Clone>(self, hasher: T) -> LimiterBuilder<K, C, T> {
        LimiterBuilder {
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

impl<K: Hash + ?Sized, C: Clock, S: BuildHasher + Clone> LimiterBuilder<K, C, S> {
    /// Builds the limiter and allocates its memory.
    ///
    /// # Errors
    ///
    /// If a quota is invalid, or the algorithm cannot count it; if tiers are duplicate; if the
    /// maximum debt is more than a word can represent; if the capacity is 0, or there is no memory for it.
    pub fn build(self) -> Result<Limiter<K, C, S>, Error> {
        let born = self.clock.now();
        self.build_born(born)
    }

    /// Builds the limiter with the callers of an old one: with what they have spent, in tokens,
    /// as for [`set_quota`](Limiter::set_quota), and with its hasher and overrides. For changes
    /// that a running limiter cannot make: capacity, tiers, [`WhenFull`]. If the algorithm
    /// changes, all callers start anew.
    ///
    /// Spends on the old limiter during the build may be missed: stop using it before.
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
            limiter.restore_at(&old.save(), now, now, true);
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
            tiers,
            accounts: Accounts::new(&rules.all(&quotas), table.slots()),
            table,
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
