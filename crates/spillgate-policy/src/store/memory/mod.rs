//! What callers have spent, in the memory of this process.

mod spend;
mod store;

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spillgate::{Clock, KeyedState, Limiter, Quota, Seed, SystemClock, TierOf, Timestamp};

use crate::store::acquired::AcquiredPermits;
use crate::store::holds::LimitPermits;
use crate::store::removed::RemovedLimits;
use crate::store::strikes::Strikes;
use crate::store::{LimitSpec, OverrideSpec};
use crate::{Error, Key};

/// Keeps what callers have spent in the memory of this process: the default.
///
/// Its memory is fixed by the capacities of the limits, about 26 bytes per caller.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory<C = SystemClock> {
    clock: C,
    pub(in crate::store) hasher: KeyedState,
}

impl<C: Clock + Clone> Memory<C> {
    /// A store that reads this clock.
    pub fn new(clock: C) -> Self {
        Self { clock, hasher: KeyedState::new() }
    }

    /// The same with the seed of a saved store, without which its state cannot be restored.
    #[must_use]
    pub fn with_seed(self, seed: Seed) -> Self {
        Self { hasher: KeyedState::with_seed(seed), ..self }
    }

    /// The seed, to be saved with the state. A secret: it allows to make keys that collide.
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
            // Permits are not words.
            .capacity(if spec.hold.is_some() { 1 } else { spec.capacity })
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

    pub(in crate::store) fn limiter(
        &self,
        spec: &LimitSpec,
        old: Option<&Limiter<Key, C>>,
    ) -> Result<Arc<Limiter<Key, C>>, Error> {
        let builder = self.builder(spec);
        let built = match old {
            Some(old) => builder.build_from(old),
            None => builder.build(),
        };
        built.map(Arc::new).map_err(|why| refused(spec, &why))
    }

    fn build(&self, spec: &LimitSpec, old: Option<&Held<C>>) -> Result<Kept<C>, Error> {
        let limiter = self.limiter(spec, old.map(|old| &*old.limiter))?;
        Ok(Kept { limiter, permits: None })
    }
}

/// What keeps the words of a limit.
struct Kept<C> {
    limiter: Arc<Limiter<Key, C>>,
    /// Of a limit on concurrency. The limiter then only knows how many each key has.
    permits: Option<Arc<LimitPermits>>,
}

/// The limiters of one policy, and what was spent under limits that it has no more.
pub struct MemoryLimits<C = SystemClock> {
    pub(in crate::store) held: Vec<Held<C>>,
    removed: Mutex<RemovedLimits>,
    /// Shared by all policies of a gate, like the permits themselves.
    pub(in crate::store) acquired: Arc<AcquiredPermits>,
    /// Limits on concurrency that are gone, while somebody holds permits of them: if they come
    /// back, these count.
    pub(in crate::store) removed_permits: Vec<(Box<LimitSpec>, Arc<LimitPermits>)>,
    strikes: Arc<Strikes>,
}

/// A limiter, and what it was made from.
pub(in crate::store) struct Held<C> {
    // In a box, so that the limiters of many limits are close together.
    pub(in crate::store) spec: Box<LimitSpec>,
    pub(in crate::store) limiter: Arc<Limiter<Key, C>>,
    /// Of a limit on concurrency. The limiter then only knows how many each key has.
    pub(in crate::store) permits: Option<Arc<LimitPermits>>,
}

impl<C: Clock> Held<C> {
    /// Gives a limiter the quotas of its limit, in place of those that it has from an
    /// earlier policy.
    fn new(
        spec: &LimitSpec,
        Kept { limiter, permits }: Kept<C>,
        earlier: Option<&LimitSpec>,
    ) -> Result<Self, Error> {
        let set = |result: Result<(), spillgate::Error>| result.map_err(|why| refused(spec, &why));
        let tiers = spec.tiers.iter().map(|(name, quota)| (name.as_str(), *quota));
        set(limiter.set_quotas(spec.quota, tiers))?;
        // Overrides that have not changed are left alone.
        let by_key = |overrides: &[OverrideSpec]| -> HashMap<_, _> {
            overrides.iter().map(|own| (own.key.bytes.clone(), (own.quota, own.until))).collect()
        };
        let old = by_key(earlier.map_or(&[][..], |earlier| &earlier.overrides));
        let new = by_key(&spec.overrides);
        let gone = earlier.iter().flat_map(|earlier| &earlier.overrides);
        for own in gone.filter(|own| !new.contains_key(&own.key.bytes)) {
            limiter.remove_override(&own.key);
        }
        for own in &spec.overrides {
            if old.get(&own.key.bytes) != Some(&(own.quota, own.until)) {
                set(pin(&limiter, &own.key, own.quota, own.until))?;
            }
        }
        Ok(Self { spec: Box::new(spec.clone()), limiter, permits })
    }

    /// True if its words or keys would mean something else.
    fn counts_otherwise(&self, spec: &LimitSpec) -> bool {
        counts_otherwise(&self.spec, spec)
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

/// True if words, keys or permits of one limit would mean something else in another.
pub(in crate::store) fn counts_otherwise(old: &LimitSpec, new: &LimitSpec) -> bool {
    old.algorithm != new.algorithm || old.per != new.per || old.hold.is_some() != new.hold.is_some()
}

/// Gives a caller its own quota, perhaps up to a time.
fn pin<C: Clock>(
    limiter: &Limiter<Key, C>,
    key: &Key,
    quota: Quota,
    until: Option<Timestamp>,
) -> Result<(), spillgate::Error> {
    match until {
        Some(until) => limiter.set_override_until(key, quota, until),
        None => limiter.set_override(key, quota),
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
    pub(in crate::store) fn removed(&self) -> MutexGuard<'_, RemovedLimits> {
        self.removed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fingerprint of a caller under a limit. By name, since places change with the policy.
    fn offender(&self, limit: usize, key: &Key, hasher: &KeyedState) -> u64 {
        hasher.hash_one((self.held[limit].spec.name.as_str(), key))
    }
}

impl<C> fmt::Debug for MemoryLimits<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.held.iter().map(|held| &held.spec.name)).finish()
    }
}
