use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smallvec::SmallVec;
use spillgate::algorithm::{AnyAlgorithm, Word};
use spillgate::{
    Clock, Decision, KeyedState, Limiter, Quota, Seed, Settled, SystemClock, TierOf, Timestamp,
    check_all_at,
};

use super::acquired::AcquiredPermits;
use super::holds::LimitPermits;
use super::quota_classes::Classes;
use super::removed::RemovedLimits;
use super::strikes::Strikes;
use super::{BanRule, BanStart, LimitSpec, OverrideSpec, PermitId, Permits, Spend, Store, Usage};
use crate::{Error, Key};

/// Keeps what callers have spent in the memory of this process: the default.
///
/// Its memory is fixed by the capacities of the limits, about 26 bytes per caller.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory<C = SystemClock> {
    clock: C,
    pub(super) hasher: KeyedState,
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

    pub(super) fn limiter(
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
        if !spec.is_by_call {
            let limiter = self.limiter(spec, old.map(|old| &*old.limiter))?;
            return Ok(Kept { limiter, classes: None, permits: None });
        }
        let limiter = self.limiter(spec, None)?;
        let classes = match old.and_then(|old| old.classes.as_ref()) {
            Some(old) => old.rebuild(spec, Arc::clone(&limiter))?,
            None => Classes::new(self.clone(), spec, Arc::clone(&limiter)),
        };
        Ok(Kept { limiter, classes: Some(Arc::new(classes)), permits: None })
    }
}

/// What keeps the words of a limit.
struct Kept<C> {
    limiter: Arc<Limiter<Key, C>>,
    /// In place of the limiter, if quotas come with the calls.
    classes: Option<Arc<Classes<C>>>,
    /// Of a limit on concurrency. The limiter then only knows how many each key has.
    permits: Option<Arc<LimitPermits>>,
}

/// The limiters of one policy, and what was spent under limits that it has no more.
pub struct MemoryLimits<C = SystemClock> {
    pub(super) held: Vec<Held<C>>,
    removed: Mutex<RemovedLimits>,
    /// Shared by all policies of a gate, like the permits themselves.
    pub(super) acquired: Arc<AcquiredPermits>,
    /// Limits on concurrency that are gone, while somebody holds permits of them: if they come
    /// back, these count.
    pub(super) removed_permits: Vec<(Box<LimitSpec>, Arc<LimitPermits>)>,
    strikes: Arc<Strikes>,
}

/// A limiter, and what it was made from.
pub(super) struct Held<C> {
    // In a box, so that the limiters of many limits are close together.
    pub(super) spec: Box<LimitSpec>,
    pub(super) limiter: Arc<Limiter<Key, C>>,
    /// In place of the limiter, if quotas come with the calls.
    pub(super) classes: Option<Arc<Classes<C>>>,
    /// Of a limit on concurrency. The limiter then only knows how many each key has.
    pub(super) permits: Option<Arc<LimitPermits>>,
}

impl<C: Clock> Held<C> {
    /// Gives a limiter the quotas of its limit, in place of those that it has from an
    /// earlier policy.
    fn new(
        spec: &LimitSpec,
        Kept { limiter, classes, permits }: Kept<C>,
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
        Ok(Self { spec: Box::new(spec.clone()), limiter, classes, permits })
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
pub(super) fn counts_otherwise(old: &LimitSpec, new: &LimitSpec) -> bool {
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
    pub(super) fn removed(&self) -> MutexGuard<'_, RemovedLimits> {
        self.removed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fingerprint of a caller under a limit. By name, since places change with the policy.
    fn offender(&self, limit: usize, key: &Key, hasher: &KeyedState) -> u64 {
        hasher.hash_one((self.held[limit].spec.name.as_str(), key))
    }
}

impl<C: Clock + Clone> MemoryLimits<C> {
    /// Takes an allowed spend back, if nothing has been spent since. Returns whether it did.
    #[expect(clippy::needless_pass_by_value, reason = "a spend is cancelled once")]
    pub fn cancel(&self, spend: Spend) -> bool {
        let spent = spend.decision.and_then(|decision| decision.spent());
        let Some(spent) = spent else { return false };
        let cancel = |limiter: &Limiter<Key, C>| {
            limiter.cancel(limiter.reservation(&spend.key, spend.bucket(), spent))
        };
        // What was spent in another class since is copied to this one first, and stays.
        let is_last = cancel(self.limiter(&spend, spent.at));
        if is_last && let Some(classes) = &self.held[spend.limit].classes {
            classes.each().for_each(|limiter| {
                cancel(limiter);
            });
        }
        is_last
    }

    /// Makes the caller of a spend owe at least what `word` says, by the algorithm that counts it
    /// and at the store's present time: for what is known of it from elsewhere.
    pub fn raise(&self, spend: &Spend, word: impl Fn(&AnyAlgorithm, Timestamp) -> Word) {
        let now = self.held[spend.limit].limiter.clock().now();
        self.limiter(spend, now).raise(&spend.key, word);
    }

    /// The limiter of a spend: of its class, if its quota comes with the call.
    #[inline]
    fn limiter(&self, spend: &Spend, now: Timestamp) -> &Limiter<Key, C> {
        let held = &self.held[spend.limit];
        match (&spend.quota, &held.classes) {
            (Some(call), Some(classes)) => classes.table_for(call.class, &spend.key, now),
            _ => &held.limiter,
        }
    }

    // Always, since it is called twice: also after permits were taken.
    #[inline(always)]
    fn decide(&self, spends: &mut [Spend], now: Timestamp) {
        match spends {
            [spend] => self.decide_one(spend, now),
            [] => {}
            spends => self.decide_all(spends, now),
        }
    }

    #[inline]
    fn decide_one(&self, spend: &mut Spend, now: Timestamp) {
        let Spend { key, cost, .. } = &*spend;
        let decision = match spend.bucket() {
            None => self.held[spend.limit].limiter.check_at(key, *cost, now),
            Some(bucket) => self.limiter(spend, now).check_with_at(key, bucket, *cost, now),
        };
        spend.decision = Some(decision);
    }

    fn peek(&self, spend: &Spend, cost: u64, now: Timestamp) -> Decision {
        let Held { limiter, classes, .. } = &self.held[spend.limit];
        match (spend.bucket(), classes) {
            (None, _) => limiter.peek_n(&spend.key, cost),
            (Some(bucket), None) => limiter.peek_with(&spend.key, bucket, cost),
            (Some(bucket), Some(classes)) => {
                classes.table_of(&spend.key, now).peek_with(&spend.key, bucket, cost)
            }
        }
    }

    /// Gives back what a spend with a quota of the call has spent too much, in every class: what
    /// is left in one would count in all.
    fn give_back(&self, spend: &Spend, now: Timestamp, back: impl Fn(&Limiter<Key, C>)) {
        match &self.held[spend.limit].classes {
            Some(classes) => classes.each().for_each(back),
            None => back(self.limiter(spend, now)),
        }
    }

    fn decide_all(&self, spends: &mut [Spend], now: Timestamp) {
        let enforcing = spends.partition_point(|spend| !spend.is_shadow);
        let (enforced, shadow) = spends.split_at_mut(enforcing);
        let mut all: SmallVec<[_; 4]> = enforced
            .iter()
            .map(|spend| match spend.bucket() {
                None => self.limiter(spend, now).spend(&spend.key, spend.cost),
                Some(bucket) => self.limiter(spend, now).spend_with(&spend.key, bucket, spend.cost),
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
        let open = |spec| {
            let permits = self.permits(spec, None);
            Held::new(spec, Kept { permits, ..self.build(spec, None)? }, None)
        };
        let held = limits.iter().map(open).collect::<Result<_, _>>()?;
        Ok(MemoryLimits {
            held,
            removed: Mutex::default(),
            acquired: Arc::default(),
            removed_permits: Vec::new(),
            strikes: Arc::default(),
        })
    }

    fn reopen(
        &self,
        old_limits: &Self::Limits,
        limits: &[LimitSpec],
    ) -> Result<Self::Limits, Error> {
        // What can fail comes first, before a limiter that is in use is changed.
        let mut limiters = Vec::with_capacity(limits.len());
        let named: HashMap<_, _> =
            old_limits.held.iter().map(|held| (held.spec.name.as_str(), held)).collect();
        for spec in limits {
            let old = named.get(spec.name.as_str()).copied();
            let old = old.filter(|held| !held.counts_otherwise(spec));
            let limiter = match old {
                Some(old) if old.is_built_like(spec) => {
                    let (limiter, classes) = (Arc::clone(&old.limiter), old.classes.clone());
                    Kept { limiter, classes, permits: None }
                }
                old => self.build(spec, old)?,
            };
            let limiter = Kept { permits: self.permits(spec, Some(old_limits)), ..limiter };
            limiters.push((spec, limiter, old.map(|old| &*old.spec)));
        }
        let now = self.clock.now();
        let mut removed = old_limits.removed().clone();
        let stays: HashSet<_> = limiters
            .iter()
            .filter_map(|(spec, _, earlier)| earlier.map(|_| spec.name.as_str()))
            .collect();
        let is_gone = |held: &&Held<C>| !stays.contains(held.spec.name.as_str());
        // Permits are not spent: they come back by themselves.
        let words = |held: &&Held<C>| held.permits.is_none();
        for gone in old_limits.held.iter().filter(is_gone).filter(words) {
            removed.keep(gone.save(), now, now);
        }
        let reopen = |(spec, limiter, earlier): (_, _, Option<_>)| {
            let held = Held::new(spec, limiter, earlier)?;
            let has_words = earlier.is_none() && spec.hold.is_none();
            let back = if has_words { removed.take(spec, now) } else { None };
            back.iter().for_each(|saved| held.restore(saved, now));
            Ok(held)
        };
        let held: Vec<_> = limiters.into_iter().map(reopen).collect::<Result<_, Error>>()?;
        held.iter().for_each(|held| held.permits.iter().for_each(|it| it.resize(&held.spec)));
        Ok(MemoryLimits {
            removed_permits: old_limits.removed_permits(&held),
            acquired: Arc::clone(&old_limits.acquired),
            removed: Mutex::new(removed),
            strikes: Arc::clone(&old_limits.strikes),
            held,
        })
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

    fn prefetch(&self, limits: &Self::Limits, limit: usize, keys: impl Iterator<Item = Key>) {
        let Held { limiter, classes, .. } = &limits.held[limit];
        // All are known before the first is loaded, so that no load waits for a hash.
        let clients: SmallVec<[_; 16]> = keys.map(|key| limiter.fingerprint(&key)).collect();
        let Some(classes) = classes else {
            return clients.iter().for_each(|client| limiter.table().prefetch(*client));
        };
        for limiter in classes.each() {
            clients.iter().for_each(|client| limiter.table().prefetch(*client));
        }
    }

    async fn peek(&self, limits: &Self::Limits, spend: &Spend) -> Result<Decision, Error> {
        let now = self.clock.now();
        match limits.held[spend.limit].permits {
            Some(_) => limits.peek_hold(spend, now),
            None => Ok(limits.peek(spend, spend.cost, now)),
        }
    }

    async fn settle(
        &self,
        limits: &Self::Limits,
        spend: &Spend,
        actual: u64,
    ) -> Result<Settled, Error> {
        let now = self.clock.now();
        let (limiter, key, bucket) = (limits.limiter(spend, now), &spend.key, spend.bucket());
        if let Some(spent) = spend.decision.and_then(|decision| decision.spent()) {
            let settled = |limiter: &Limiter<Key, C>| {
                limiter.settle(limiter.reservation(key, bucket, spent), actual)
            };
            if bucket.is_some() && actual < spent.cost {
                limits.give_back(spend, now, |limiter| {
                    let _ = settled(limiter);
                });
                return Ok(Settled { left: limits.peek(spend, 0, now), uncharged: 0 });
            }
            return Ok(settled(limiter));
        }
        let missing = actual.saturating_sub(spend.cost);
        let unused = spend.cost.saturating_sub(actual);
        match bucket {
            None if missing > 0 => return Ok(limiter.debit_n(key, missing)),
            None => limiter.refund_n(key, unused),
            Some(bucket) if missing > 0 => return Ok(limiter.debit_with(key, bucket, missing)),
            Some(bucket) => limits.give_back(spend, now, |limiter| {
                limiter.refund_with(key, bucket, unused);
            }),
        }
        Ok(Settled { left: limits.peek(spend, 0, now), uncharged: 0 })
    }

    fn cancel(&self, limits: &Self::Limits, spend: Spend) {
        limits.cancel(spend);
    }

    async fn reset(&self, limits: &Self::Limits, limit: usize, key: &Key) -> Result<(), Error> {
        let held = &limits.held[limit];
        held.limiter.reset(key);
        held.classes.iter().flat_map(|classes| classes.each()).for_each(|it| it.reset(key));
        Ok(())
    }

    async fn set_override(
        &self,
        limits: &Self::Limits,
        limit: usize,
        key: &Key,
        quota: Option<Quota>,
        until: Option<Timestamp>,
    ) -> Result<(), Error> {
        let Held { spec, limiter, .. } = &limits.held[limit];
        match quota {
            Some(quota) => pin(limiter, key, quota, until).map_err(|why| refused(spec, &why)),
            None => {
                limiter.remove_override(key);
                Ok(())
            }
        }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn hold(
        &self,
        limits: &Self::Limits,
        spends: &mut [Spend],
        permits: &mut Permits,
    ) -> Result<(), Error> {
        limits.hold(spends, permits, self.clock.now())
    }

    fn hold_now(
        &self,
        limits: &Self::Limits,
        spends: &mut [Spend],
        permits: &mut Permits,
    ) -> Option<Result<(), Error>> {
        Some(limits.hold(spends, permits, self.clock.now()))
    }

    async fn acquire(
        &self,
        limits: &Self::Limits,
        spend: &Spend,
        ttl: Duration,
    ) -> Result<(Decision, Option<PermitId>), Error> {
        limits.acquire(spend, ttl, self.clock.now())
    }

    async fn renew(
        &self,
        limits: &Self::Limits,
        id: PermitId,
        ttl: Duration,
    ) -> Result<bool, Error> {
        Ok(limits.acquired.renew(id, self.clock.now(), ttl))
    }

    async fn release(&self, limits: &Self::Limits, id: PermitId) -> Result<bool, Error> {
        Ok(limits.acquired.release(id, self.clock.now()))
    }

    async fn strike(
        &self,
        limits: &Self::Limits,
        limit: usize,
        key: &Key,
        rule: &BanRule,
    ) -> Result<Option<BanStart>, Error> {
        let caller = limits.offender(limit, key, &self.hasher);
        Ok(limits.strikes.strike(caller, rule, self.clock.now()))
    }

    async fn forgive(&self, limits: &Self::Limits, limit: usize, key: &Key) -> Result<(), Error> {
        limits.strikes.forgive(limits.offender(limit, key, &self.hasher));
        Ok(())
    }

    fn usage(&self, limits: &Self::Limits, limit: usize) -> Option<Usage> {
        limits.removed().forget(self.clock.now());
        let Held { limiter, classes, permits, .. } = &limits.held[limit];
        if let Some(classes) = classes {
            return Some(classes.usage());
        }
        if let Some(permits) = permits {
            limits.acquired.return_expired(self.clock.now());
            return Some(permits.usage());
        }
        let callers = limiter.active_callers() as u64;
        Some(Usage { callers, evictions: limiter.evictions(), ..Usage::default() })
    }
}

impl<C> fmt::Debug for MemoryLimits<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.held.iter().map(|held| &held.spec.name)).finish()
    }
}
