use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use spillgate::algorithm::{AnyAlgorithm, Word};
use spillgate::{
    Clock, Decision, KeyedState, Limiter, Quota, Seed, Settled, SystemClock, TierOf, Timestamp,
    check_all_at,
};

use super::removed::RemovedLimits;
use super::{LimitSpec, Spend, Store, Usage};
use crate::{Error, Key};

/// Keeps what callers have spent in the memory of this process: the default.
///
/// Its memory is fixed by the capacities of the limits, about 26 bytes a caller.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory<C = SystemClock> {
    clock: C,
    hasher: KeyedState,
}

impl<C: Clock + Clone> Memory<C> {
    /// A store that reads this clock.
    pub fn new(clock: C) -> Self {
        Self { clock, hasher: KeyedState::new() }
    }

    /// The same with the seed of a store that was saved. Without it, what was saved
    /// means nothing.
    #[must_use]
    pub fn with_seed(self, seed: Seed) -> Self {
        Self { hasher: KeyedState::with_seed(seed), ..self }
    }

    /// The seed, to be saved with the state. Whoever knows it can make keys that
    /// collide.
    pub fn seed(&self) -> Seed {
        self.hasher.seed()
    }

    /// The clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    fn builder(&self, spec: &LimitSpec) -> spillgate::LimiterBuilder<Key, C> {
        let names = spec.tiers.iter().map(|(name, _)| name.clone()).collect();
        let builder = Limiter::<Key>::builder(spec.quota)
            .clock(self.clock.clone())
            .hasher(self.hasher)
            .algorithm(spec.algorithm)
            .start(spec.start)
            .capacity(spec.capacity)
            .when_full(spec.when_full);
        let builder = match spec.max_debt {
            Some(tokens) => builder.max_debt(tokens),
            None => builder,
        };
        let builder = spec
            .tiers
            .iter()
            .fold(builder, |builder, (name, quota)| builder.tier(name.clone(), *quota));
        if spec.tiers.is_empty() { builder } else { builder.tier_of(TierNames(names)) }
    }

    fn build(
        &self,
        spec: &LimitSpec,
        old: Option<&Held<C>>,
    ) -> Result<Arc<Limiter<Key, C>>, Error> {
        let builder = self.builder(spec);
        let built = match old {
            Some(old) => builder.build_from(&old.limiter),
            None => builder.build(),
        };
        let limiter = built.map_err(|why| refused(spec, &why))?;
        Ok(Arc::new(limiter))
    }
}

/// The limiters of one policy, and what was spent under limits that it has no more.
pub struct MemoryLimits<C = SystemClock> {
    pub(super) held: Vec<Held<C>>,
    removed: Mutex<RemovedLimits>,
}

/// A limiter, and what it was made from.
pub(super) struct Held<C> {
    // In a box, so that the limiters of many limits are close together.
    pub(super) spec: Box<LimitSpec>,
    pub(super) limiter: Arc<Limiter<Key, C>>,
}

impl<C: Clock> Held<C> {
    /// Gives a limiter the quotas of its limit, in place of those that it has from an
    /// earlier policy.
    fn new(
        spec: &LimitSpec,
        limiter: Arc<Limiter<Key, C>>,
        earlier: Option<&LimitSpec>,
    ) -> Result<Self, Error> {
        let set = |result: Result<(), spillgate::Error>| result.map_err(|why| refused(spec, &why));
        let tiers = spec.tiers.iter().map(|(name, quota)| (name.as_str(), *quota));
        set(limiter.set_quotas(spec.quota, tiers))?;
        // Overrides that have not changed are left alone: they may have been changed at run
        // time since.
        let by_key = |overrides: &[(Key, Quota)]| -> HashMap<_, _> {
            overrides.iter().map(|(key, quota)| (key.bytes.clone(), *quota)).collect()
        };
        let old = by_key(earlier.map_or(&[][..], |earlier| &earlier.overrides));
        let new = by_key(&spec.overrides);
        let gone = earlier.iter().flat_map(|earlier| &earlier.overrides);
        for (key, _) in gone.filter(|(key, _)| !new.contains_key(&key.bytes)) {
            limiter.remove_override(key);
        }
        for (key, quota) in &spec.overrides {
            if old.get(&key.bytes) != Some(quota) {
                set(limiter.set_override(key, *quota))?;
            }
        }
        Ok(Self { spec: Box::new(spec.clone()), limiter })
    }

    /// True if its words or keys would mean something else.
    fn counts_otherwise(&self, spec: &LimitSpec) -> bool {
        self.spec.algorithm != spec.algorithm || self.spec.per != spec.per
    }

    /// True if all that differs can be changed in a running limiter.
    fn is_built_like(&self, spec: &LimitSpec) -> bool {
        let tiers = |spec: &LimitSpec| spec.tiers.iter().map(|(name, _)| name.clone()).collect();
        let (old_tiers, tiers): (Vec<_>, Vec<_>) = (tiers(&self.spec), tiers(spec));
        self.spec.capacity == spec.capacity
            && self.spec.when_full == spec.when_full
            && self.spec.max_debt == spec.max_debt
            && self.spec.start == spec.start
            && old_tiers == tiers
    }
}

fn refused(spec: &LimitSpec, why: &spillgate::Error) -> Error {
    Error::store(format!("limit {:?}: {why}", spec.name))
}

/// Names the tier that a key knows by its place.
struct TierNames(Vec<String>);

impl TierOf<Key> for TierNames {
    fn tier_of<'a>(&'a self, key: &'a Key) -> Option<&'a str> {
        key.tier().and_then(|place| self.0.get(place)).map(String::as_str)
    }
}

impl<C> MemoryLimits<C> {
    pub(super) fn removed(&self) -> MutexGuard<'_, RemovedLimits> {
        self.removed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Clock> MemoryLimits<C> {
    /// Takes an allowed spend back, if nothing has been spent since. Tells whether it did.
    #[expect(clippy::needless_pass_by_value, reason = "a spend is cancelled once")]
    pub fn cancel(&self, spend: Spend) -> bool {
        let spent = spend.decision.and_then(|decision| decision.spent());
        spent.is_some_and(|spent| {
            let limiter = self.limiter(&spend);
            limiter.cancel(limiter.reservation(&spend.key, spend.bucket(), spent))
        })
    }

    /// Makes the caller of a spend owe at least what `word` says, by the algorithm that counts it
    /// and at the store's present time: for what is known of it from elsewhere.
    pub fn raise(&self, spend: &Spend, word: impl Fn(&AnyAlgorithm, Timestamp) -> Word) {
        self.limiter(spend).raise(&spend.key, word);
    }

    fn limiter(&self, spend: &Spend) -> &Limiter<Key, C> {
        &self.held[spend.limit].limiter
    }

    #[inline]
    fn decide(&self, spends: &mut [Spend], now: Timestamp) {
        match spends {
            [spend] => self.decide_one(spend, now),
            spends => self.decide_all(spends, now),
        }
    }

    #[inline]
    fn decide_one(&self, spend: &mut Spend, now: Timestamp) {
        let Spend { key, cost, .. } = &*spend;
        let decision = match spend.bucket() {
            None => self.limiter(spend).check_at(key, *cost, now),
            Some(bucket) => self.limiter(spend).check_with_at(key, bucket, *cost, now),
        };
        spend.decision = Some(decision);
    }

    fn peek(&self, spend: &Spend, cost: u64) -> Decision {
        match spend.bucket() {
            None => self.limiter(spend).peek_n(&spend.key, cost),
            Some(bucket) => self.limiter(spend).peek_with(&spend.key, bucket, cost),
        }
    }

    fn decide_all(&self, spends: &mut [Spend], now: Timestamp) {
        let enforcing = spends.partition_point(|spend| !spend.is_shadow);
        let (enforced, shadow) = spends.split_at_mut(enforcing);
        let mut all: SmallVec<[_; 4]> = enforced
            .iter()
            .map(|spend| match spend.bucket() {
                None => self.limiter(spend).spend(&spend.key, spend.cost),
                Some(bucket) => self.limiter(spend).spend_with(&spend.key, bucket, spend.cost),
            })
            .collect();
        let decided = check_all_at(&mut all[..], now);
        for (spend, decision) in enforced.iter_mut().zip(decided.decisions()) {
            spend.decision = Some(decision);
        }
        if !enforced.iter().any(Spend::is_denied) {
            shadow.iter_mut().for_each(|spend| self.decide_one(spend, now));
        }
    }
}

impl<C: Clock + Clone + 'static> Store for Memory<C> {
    type Limits = MemoryLimits<C>;

    fn is_in_process(&self) -> bool {
        true
    }

    fn open(&self, limits: &[LimitSpec]) -> Result<Self::Limits, Error> {
        let open = |spec| Held::new(spec, self.build(spec, None)?, None);
        let held = limits.iter().map(open).collect::<Result<_, _>>()?;
        Ok(MemoryLimits { held, removed: Mutex::default() })
    }

    fn reopen(&self, old: &Self::Limits, limits: &[LimitSpec]) -> Result<Self::Limits, Error> {
        // What can fail comes first, before a limiter that is in use is changed.
        let mut limiters = Vec::with_capacity(limits.len());
        let named: HashMap<_, _> =
            old.held.iter().map(|held| (held.spec.name.as_str(), held)).collect();
        for spec in limits {
            let old = named.get(spec.name.as_str()).copied();
            let old = old.filter(|held| !held.counts_otherwise(spec));
            let limiter = match old {
                Some(old) if old.is_built_like(spec) => Arc::clone(&old.limiter),
                old => self.build(spec, old)?,
            };
            limiters.push((spec, limiter, old.map(|old| &*old.spec)));
        }
        let now = self.clock.now();
        let mut removed = old.removed().clone();
        let stays: HashSet<_> = limiters
            .iter()
            .filter_map(|(spec, _, earlier)| earlier.map(|_| spec.name.as_str()))
            .collect();
        for gone in old.held.iter().filter(|held| !stays.contains(held.spec.name.as_str())) {
            removed.keep(gone.save(), now, now);
        }
        let reopen = |(spec, limiter, earlier): (_, _, Option<_>)| {
            let held = Held::new(spec, limiter, earlier)?;
            let back = if earlier.is_none() { removed.take(spec, now) } else { None };
            back.iter().for_each(|saved| held.restore(saved, now));
            Ok(held)
        };
        let held = limiters.into_iter().map(reopen).collect::<Result<_, Error>>()?;
        Ok(MemoryLimits { held, removed: Mutex::new(removed) })
    }

    async fn decide(&self, limits: &Self::Limits, spends: &mut [Spend]) -> Result<(), Error> {
        limits.decide(spends, self.clock.now());
        Ok(())
    }

    #[inline]
    fn decide_now(&self, limits: &Self::Limits, spends: &mut [Spend]) -> Option<Result<(), Error>> {
        limits.decide(spends, self.clock.now());
        Some(Ok(()))
    }

    async fn peek(&self, limits: &Self::Limits, spend: &Spend) -> Result<Decision, Error> {
        Ok(limits.peek(spend, spend.cost))
    }

    async fn settle(
        &self,
        limits: &Self::Limits,
        spend: &Spend,
        actual: u64,
    ) -> Result<Settled, Error> {
        let (limiter, key, bucket) = (limits.limiter(spend), &spend.key, spend.bucket());
        if let Some(spent) = spend.decision.and_then(|decision| decision.spent()) {
            return Ok(limiter.settle(limiter.reservation(key, bucket, spent), actual));
        }
        let missing = actual.saturating_sub(spend.cost);
        let unused = spend.cost.saturating_sub(actual);
        match bucket {
            None if missing > 0 => return Ok(limiter.debit_n(key, missing)),
            None => limiter.refund_n(key, unused),
            Some(bucket) if missing > 0 => return Ok(limiter.debit_with(key, bucket, missing)),
            Some(bucket) => limiter.refund_with(key, bucket, unused),
        }
        Ok(Settled { left: limits.peek(spend, 0), uncharged: 0 })
    }

    fn cancel(&self, limits: &Self::Limits, spend: Spend) {
        limits.cancel(spend);
    }

    async fn reset(&self, limits: &Self::Limits, limit: usize, key: &Key) -> Result<(), Error> {
        limits.held[limit].limiter.reset(key);
        Ok(())
    }

    async fn set_override(
        &self,
        limits: &Self::Limits,
        limit: usize,
        key: &Key,
        quota: Option<Quota>,
    ) -> Result<(), Error> {
        let Held { spec, limiter } = &limits.held[limit];
        match quota {
            Some(quota) => limiter.set_override(key, quota).map_err(|why| refused(spec, &why)),
            None => {
                limiter.remove_override(key);
                Ok(())
            }
        }
    }

    fn usage(&self, limits: &Self::Limits, limit: usize) -> Option<Usage> {
        limits.removed().forget(self.clock.now());
        let limiter = &limits.held[limit].limiter;
        Some(Usage { callers: limiter.active_callers() as u64, evictions: limiter.evictions() })
    }
}

impl<C> fmt::Debug for MemoryLimits<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.held.iter().map(|held| &held.spec.name)).finish()
    }
}
