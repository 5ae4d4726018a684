//! Changing a running limiter, and looking at it from outside.

use std::hash::{BuildHasher, Hash};

use super::overrides::Pinned;
use super::tiers::Client;
use super::{Counts, Limiter};
use crate::algorithm::{Algorithm, AlgorithmKind, AnyAlgorithm, Start, Word};
use crate::sync::{MutexGuard, Ordering};
use crate::{Clock, Error, Quota, Table, Timestamp};

impl<K: ?Sized, C: Clock, S> Limiter<K, C, S> {
    /// Changes the quota of all clients without a tier or an override.
    ///
    /// What each has spent stays spent, in tokens, up to the new burst: of 10, 7
    /// used stay 7 used. What it owes beyond the old burst it owes beyond the new one. The
    /// quota that there is already changes nothing. Looks at every slot of the table, some
    /// 10 ms for a million clients, and checks wait meanwhile.
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

    /// Changes the quota of a tier, for all who are in it from now on.
    ///
    /// Clients of all tiers are in one table, which does not know who is in which: so what a
    /// bucket owes stays owed in time, and windows and interval buckets keep their count. The
    /// same holds for [`set_quota`](Self::set_quota) if there are tiers.
    ///
    /// # Errors
    ///
    /// If there is no such tier, or the quota is not valid, or has nothing in common with
    /// [those of the others](AlgorithmKind::with_quotas).
    pub fn set_tier_quota<Q: TryInto<Quota>>(&self, tier: &str, quota: Q) -> Result<(), Error>
    where
        Error: From<Q::Error>,
    {
        let (tier, quota) = (self.tiers.named(tier)?, quota.try_into()?);
        self.change_quotas(|quotas| quotas[tier] = quota)
    }

    /// Changes the limiter's own quota and those of some tiers at once: for changes that no
    /// single one of them could make, as of a period that all must have.
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

    /// How many clients have something spent, without those that have an override.
    /// Looks at every slot.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len_at(self.clock.now())
    }

    /// True if no client has anything spent. Looks at every slot.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Empties the slots of idle clients and tells how many there were. Never
    /// needed: see [`Table::purge_idle_at`].
    pub fn purge_idle(&self) -> usize {
        self.table.purge_idle_at(self.clock.now())
    }

    fn change_quotas(&self, change: impl FnOnce(&mut [Quota])) -> Result<(), Error> {
        // Held for the whole change: the quotas told are those in force, and the words that
        // overrides keep change with those in the table.
        let _changing = self.overrides.hold();
        let mut quotas = self.tiers.quotas();
        let mut wanted = quotas.clone();
        change(&mut wanted);
        let rules = rules(self.kind, &wanted, self.start, self.born, self.max_debt)?;
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
    /// Gives one client a quota of its own, which goes before its tier's. What it
    /// has spent stays spent, as for [`set_quota`](Self::set_quota).
    ///
    /// Every call of that client is charged once, to the word that it has before or to the
    /// one that it has then. What is given back while the override is in force lowers what was
    /// spent under it, not what had been spent before.
    ///
    /// # Errors
    ///
    /// If the quota is not valid, or not for the limiter's algorithm.
    pub fn set_override<Q: TryInto<Quota>>(&self, key: &K, quota: Q) -> Result<(), Error>
    where
        Error: From<Q::Error>,
    {
        let quota = quota.try_into()?;
        let algorithm = self.algorithm(&quota)?;
        self.pin(&self.overrides.hold(), self.client(key), quota, algorithm);
        Ok(())
    }

    /// Takes a client's own quota away, and tells what it was. What it has spent stays spent,
    /// and so does what it had spent before: the stricter of both counts.
    pub fn remove_override(&self, key: &K) -> Option<Quota> {
        let client = self.client(key);
        self.overrides.remove(client.fingerprint, |pinned| {
            // Quotas do not change while an override goes.
            let (rule, now) = (self.table.rule_of(client.by()), self.clock.now());
            self.table.raise(client.fingerprint, now, |_| pinned.left(&rule, now));
        })
    }

    /// The quota that a client has: its own, its tier's or the limiter's.
    pub fn quota_of(&self, key: &K) -> Quota {
        let client = self.client(key);
        let own = self.overrides.with(client.fingerprint, |pinned| pinned.map(|it| it.quota));
        own.unwrap_or_else(|| self.tiers.quotas()[client.tier])
    }
}

impl<K: ?Sized, C: Clock, S> Limiter<K, C, S> {
    /// Gives a client a quota of its own, with what it has spent.
    pub(super) fn pin(
        &self,
        changing: &MutexGuard<'_, ()>,
        client: Client,
        quota: Quota,
        algorithm: AnyAlgorithm,
    ) {
        // A hint, given first: whoever sees it late finds the client nowhere in the table.
        self.plain.store(false, Ordering::Relaxed);
        self.overrides.set(changing, client.fingerprint, |current| {
            if let Some(pinned) = current {
                let (base, now) = (pinned.base, self.clock.now().max(pinned.since));
                let word = algorithm.carry_over(pinned.word, now, &pinned.algorithm);
                return Pinned { quota, algorithm, word, base, since: now };
            }
            let base = self.table.take_out(client.fingerprint);
            // Read now: nobody can spend on that word any more.
            let now = self.clock.now();
            let rule = self.table.rule_of(client.by());
            let carry = |word: Word| algorithm.carry_over(word, now, &rule);
            let word = base.map_or_else(|| algorithm.fresh(now), carry);
            Pinned { quota, algorithm, word, base, since: now }
        });
    }
}

impl<K: ?Sized, C, S> Limiter<K, C, S> {
    /// The quota of clients without a tier or an override.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.tiers.quotas()[0]
    }

    /// What was decided so far, over all tiers.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counters.sum(self.table.evictions())
    }

    /// How many clients were forgotten although they had something spent. If this
    /// keeps growing, the [capacity](super::Builder::capacity) is too small.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        self.counts().evictions
    }

    /// The table of all clients that have no override.
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
