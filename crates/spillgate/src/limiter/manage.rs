//! Changing and inspecting a running limiter.

use std::hash::{BuildHasher, Hash};

use super::overrides::Pinned;
use super::tiers::Caller;
use super::{Counts, Limiter};
use crate::algorithm::{Algorithm, AlgorithmKind, AnyAlgorithm, Start, Word};
use crate::sync::{MutexGuard, Ordering};
use crate::{Clock, Error, Quota, Table, Timestamp};

impl<K: ?Sized, C: Clock, S> Limiter<K, C, S> {
    /// Changes the quota of all callers without a tier or an override.
    ///
    /// What a caller has spent stays spent, in tokens, up to the new burst: 7 of 10 stay 7.
    /// Debt beyond the old burst becomes debt beyond the new one. Setting the current quota
    /// changes nothing. Scans every slot, about 10 ms per million callers; checks wait.
    ///
    /// If the limiter has tiers, see [`set_tier_quota`](Self::set_tier_quota).
    ///
    /// # Errors
    ///
    /// If the quota is not valid, or not for the limiter's algorithm and its tiers.
    pub fn set_quota<Q: TryInto<Quota>>(&self, quota: Q) -> Result<(), Error>
    where
        Error: From<Q::Error>,
    {
        let quota = quota.try_into()?;
        self.change_quotas(|quotas| quotas[0] = quota)
    }

    /// Changes the quota of a tier.
    ///
    /// All tiers share one table, which does not know the tier of a caller: so buckets keep the
    /// time that they owe, and windows and interval buckets their count. The same holds for
    /// [`set_quota`](Self::set_quota) if there are tiers.
    ///
    /// # Errors
    ///
    /// If there is no such tier, or the quota is invalid, or incompatible with
    /// [those of the others](AlgorithmKind::with_quotas).
    pub fn set_tier_quota<Q: TryInto<Quota>>(&self, tier: &str, quota: Q) -> Result<(), Error>
    where
        Error: From<Q::Error>,
    {
        let (tier, quota) = (self.tiers.named(tier)?, quota.try_into()?);
        self.change_quotas(|quotas| quotas[tier] = quota)
    }

    /// Changes the limiter's own quota and those of tiers at once: for changes that affect all of
    /// them, such as a common period.
    ///
    /// # Errors
    ///
    /// As for [`set_tier_quota`](Self::set_tier_quota).
    pub fn set_quotas<'t>(
        &self,
        quota: Quota,
        tiers: impl IntoIterator<Item = (&'t str, Quota)>,
    ) -> Result<(), Error> {
        let named = tiers.into_iter().map(|(name, quota)| Ok((self.tiers.named(name)?, quota)));
        let named: Vec<_> = named.collect::<Result<_, Error>>()?;
        self.change_quotas(|quotas| {
            quotas[0] = quota;
            named.into_iter().for_each(|(tier, quota)| quotas[tier] = quota);
        })
    }

    /// How many callers are currently below their full quota, excluding those with an
    /// override. Scans every slot.
    #[must_use]
    pub fn active_callers(&self) -> usize {
        self.table.active_callers_at(self.clock.now())
    }

    /// Clears the slots of idle callers, and returns how many there were. Never necessary: see
    /// [`Table::purge_idle_at`].
    pub fn purge_idle(&self) -> usize {
        self.table.purge_idle_at(self.clock.now())
    }

    fn change_quotas(&self, change: impl FnOnce(&mut [Quota])) -> Result<(), Error> {
        // Held for the whole change: `quota` returns the one in force, and the words that
        // overrides keep change together with those in the table.
        let changing = self.overrides.hold();
        let mut quotas = self.tiers.quotas();
        let mut wanted = quotas.clone();
        change(&mut wanted);
        let rules = rules(self.kind, &wanted, self.start, self.born, self.max_debt)?;
        // What ended before the change went to the table before it.
        self.expire_all(&changing, self.clock.now());
        let changed = self.table.set_rules(rules.base, &rules.tiers, || self.clock.now());
        if let Some((old, now)) = changed {
            let carry = |word| self.table.carried(word, now, &old, &rules.base);
            self.overrides.each(|_, pinned| pinned.base = pinned.base.map(carry));
        }
        *quotas = wanted;
        Ok(())
    }
}

impl<K: Hash + ?Sized, C: Clock, S: BuildHasher> Limiter<K, C, S> {
    /// Gives one caller its own quota, which takes precedence over its tier's. What it has spent
    /// stays spent, as for [`set_quota`](Self::set_quota).
    ///
    /// Every concurrent call counts exactly once, before the change or after it. A refund while
    /// the override is in force reduces what was spent under it, not what was spent before.
    ///
    /// # Errors
    ///
    /// If the quota is not valid, or not for the limiter's algorithm.
    pub fn set_override<Q: TryInto<Quota>>(&self, key: &K, quota: Q) -> Result<(), Error>
    where
        Error: From<Q::Error>,
    {
        self.put_override(key, quota.try_into()?, None)
    }

    /// [`set_override`](Self::set_override) for some time: from `until` on, by the limiter's
    /// clock, the override is gone, as if [removed](Self::remove_override) just then. If that
    /// time has passed, it is gone at once.
    ///
    /// ```
    /// use std::time::Duration;
    /// use spillgate::{Clock, Limiter};
    ///
    /// let limiter: Limiter<str> = Limiter::new("10/s")?;
    /// let until = limiter.clock().now() + Duration::from_secs(3600);
    /// limiter.set_override_until("alice", "100/s", until)?;
    /// assert_eq!(limiter.check("alice").limit(), 100);
    /// assert_eq!(limiter.override_until("alice"), Some(until));
    /// # Ok::<(), spillgate::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`set_override`](Self::set_override).
    pub fn set_override_until<Q: TryInto<Quota>>(
        &self,
        key: &K,
        quota: Q,
        until: Timestamp,
    ) -> Result<(), Error>
    where
        Error: From<Q::Error>,
    {
        self.put_override(key, quota.try_into()?, Some(until))
    }

    fn put_override(&self, key: &K, quota: Quota, until: Option<Timestamp>) -> Result<(), Error> {
        let algorithm = self.algorithm(&quota)?;
        self.pin(&self.overrides.hold(), self.caller(key), quota, algorithm, until);
        Ok(())
    }

    /// Removes a caller's own quota, and returns it. Of what the caller has spent under it and
    /// what it had spent before, the stricter counts.
    pub fn remove_override(&self, key: &K) -> Option<Quota> {
        let caller = self.caller(key);
        let removed = self.overrides.remove(&self.overrides.hold(), caller.fingerprint, |pinned| {
            let now = self.clock.now();
            self.hand_over(caller, pinned, now);
            Some((!pinned.is_over(now)).then_some(pinned.quota))
        });
        removed.flatten()
    }

    /// The quota of a caller: its override, its tier's or the limiter's.
    pub fn quota_of(&self, key: &K) -> Quota {
        let caller = self.caller(key);
        let own = self.read_override(caller, |pinned| pinned.quota);
        own.unwrap_or_else(|| self.tiers.quotas()[caller.tier])
    }

    /// When the override of a caller ends. `None` if it has none, or one that does not end by
    /// itself.
    pub fn override_until(&self, key: &K) -> Option<Timestamp> {
        self.read_override(self.caller(key), |pinned| pinned.until)?
    }
}

impl<K: ?Sized, C: Clock, S> Limiter<K, C, S> {
    /// Gives a caller its own quota, for ever or until some time, and carries over what it has
    /// spent.
    pub(super) fn pin(
        &self,
        changing: &MutexGuard<'_, ()>,
        caller: Caller,
        quota: Quota,
        algorithm: AnyAlgorithm,
        until: Option<Timestamp>,
    ) {
        // A hint, set first: a check that sees it late does not find the caller in the table.
        self.plain.store(false, Ordering::Relaxed);
        // One that is over is not the current one.
        self.expire_held(changing, caller, self.clock.now());
        self.overrides.set(changing, caller.fingerprint, |current| {
            let pinned = |word, base, since| Pinned {
                quota,
                algorithm,
                word,
                base,
                since,
                until,
                tier: caller.tier,
            };
            if let Some(current) = current {
                let now = self.clock.now().max(current.since);
                let word = algorithm.carry_over(current.word, now, &current.algorithm);
                return pinned(word, current.base, now);
            }
            let base = self.table.take_out(caller.fingerprint);
            // Read only now, when no call can spend on that word any more.
            let now = self.clock.now();
            let rule = self.table.rule_of(caller.by());
            let carry = |word: Word| algorithm.carry_over(word, now, &rule);
            pinned(base.map_or_else(|| algorithm.fresh(now), carry), base, now)
        });
    }
}

impl<K: ?Sized, C, S> Limiter<K, C, S> {
    /// The quota of callers without a tier or an override.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.tiers.quotas()[0]
    }

    /// Decisions since the limiter was built, over all tiers.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counters.sum(self.table.evictions())
    }

    /// How many callers were evicted while they had something spent. If it keeps growing,
    /// increase the [capacity](super::LimiterBuilder::capacity).
    #[must_use]
    pub fn evictions(&self) -> u64 {
        self.counts().evictions
    }

    /// The table of all callers without an override.
    #[must_use]
    pub fn table(&self) -> &Table<S> {
        &self.table
    }

    pub(super) fn algorithm(&self, quota: &Quota) -> Result<AnyAlgorithm, Error> {
        self.kind.with_quota(quota, self.start, self.born)
    }
}

/// What the words of a limiter mean.
pub(super) struct Rules {
    pub(super) base: AnyAlgorithm,
    pub(super) tiers: Vec<AnyAlgorithm>,
}

/// The rules of quotas, the limiter's own first.
pub(super) fn rules(
    kind: AlgorithmKind,
    quotas: &[Quota],
    start: Start,
    born: Timestamp,
    max_debt: Option<u64>,
) -> Result<Rules, Error> {
    let algorithms = kind.with_quotas(quotas, start, born)?;
    for algorithm in &algorithms {
        max_debt.map_or(Ok(()), |max_debt| algorithm.expect_debt(max_debt))?;
    }
    let mut algorithms = algorithms.into_iter();
    let base = algorithms.next().ok_or_else(|| Error::quota("a limiter has a quota"))?;
    Ok(Rules { base, tiers: algorithms.collect() })
}
