//! Changing a running limiter, and looking at it from outside.

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::Ordering;

use super::overrides::Pinned;
use super::{Counts, Limiter};
use crate::algorithm::{Algorithm, AnyAlgorithm};
use crate::{Clock, Error, Fingerprint, Quota, Table, Timestamp};

impl<K: ?Sized, C: Clock, S> Limiter<K, C, S> {
    /// Changes the quota of all clients without a tier or an override.
    ///
    /// What each has spent stays spent, in tokens, up to the new burst: of 10, 7
    /// used stay 7 used. Looks at every slot of the table, some 10 ms for a
    /// million clients, and checks wait meanwhile.
    ///
    /// # Errors
    ///
    /// If the quota is not valid, or not for the limiter's algorithm.
    pub fn set_quota<Q: TryInto<Quota>>(&self, quota: Q) -> Result<(), Error>
    where
        Error: From<Q::Error>,
    {
        self.change_quota(None, quota.try_into()?)
    }

    /// Changes the quota of a tier; see [`set_quota`](Self::set_quota).
    ///
    /// # Errors
    ///
    /// If there is no such tier, or the quota is not valid.
    pub fn set_tier_quota<Q: TryInto<Quota>>(&self, tier: &str, quota: Q) -> Result<(), Error>
    where
        Error: From<Q::Error>,
    {
        self.change_quota(Some(tier), quota.try_into()?)
    }

    /// How many clients have something spent, without those that have an override.
    /// Looks at every slot.
    #[must_use]
    pub fn len(&self) -> usize {
        let now = self.clock.now();
        self.tables().map(|(_, table)| table.len_at(now)).sum()
    }

    /// True if no client has anything spent. Looks at every slot.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Empties the slots of idle clients and tells how many there were. Never
    /// needed: see [`Table::purge_idle_at`].
    pub fn purge_idle(&self) -> usize {
        let now = self.clock.now();
        self.tables().map(|(_, table)| table.purge_idle_at(now)).sum()
    }

    fn change_quota(&self, tier: Option<&str>, quota: Quota) -> Result<(), Error> {
        let tier = self.tiers.named(tier)?;
        tier.set_quota(quota, self.algorithm(&quota)?, self.clock.now());
        Ok(())
    }
}

impl<K: Hash + ?Sized, C: Clock, S: BuildHasher> Limiter<K, C, S> {
    /// Gives one client a quota of its own, which goes before its tier's. What it
    /// has spent stays spent. A check of that client that is under way meanwhile
    /// is counted under the quota it found.
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
        self.pin(self.fingerprint(key), quota, algorithm, self.clock.now());
        Ok(())
    }

    /// Takes a client's own quota away, and tells what it was. What it has spent
    /// stays spent. A check of that client that is under way meanwhile is counted
    /// under the quota it found.
    pub fn remove_override(&self, key: &K) -> Option<Quota> {
        let (client, now) = (self.client(key), self.clock.now());
        self.overrides.remove(client.fingerprint, |pinned| {
            let table = self.table(client);
            table.put_in_at(client.fingerprint, pinned.word, &pinned.algorithm, now);
        })
    }

    /// The quota that a client has: its own, its tier's or the limiter's.
    pub fn quota_of(&self, key: &K) -> Quota {
        let client = self.client(key);
        let own = self.overrides.with(client.fingerprint, |pinned| pinned.quota);
        own.unwrap_or_else(|| self.tiers.quota(client.tier))
    }
}

impl<K: ?Sized, C, S> Limiter<K, C, S> {
    /// Gives a client a quota of its own, with what it has spent.
    pub(super) fn pin(
        &self,
        client: Fingerprint,
        quota: Quota,
        algorithm: AnyAlgorithm,
        now: Timestamp,
    ) {
        // A hint, given first: whoever sees it late is a check that was under way.
        self.plain.store(false, Ordering::Relaxed);
        self.overrides.set(client, |current| {
            let word = match current {
                Some(pinned) => algorithm.carry_over(pinned.word, now, &pinned.algorithm),
                // It leaves every table, or its old debt would come back with it. Which
                // tier it is in cannot be told from here, so the largest debt counts.
                None => self.tables().fold(algorithm.fresh(now), |largest, (_, table)| {
                    let (word, old) = table.take_out_at(client, now);
                    algorithm.larger(algorithm.carry_over(word, now, &old), largest, now)
                }),
            };
            Pinned { quota, algorithm, word }
        });
    }

    /// The quota of clients without a tier or an override.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.tiers.quota(0)
    }

    /// What was decided so far, over all tiers.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let evictions = self.tables().map(|(_, table)| table.evictions()).sum();
        self.counters.sum(evictions)
    }

    /// How many clients were forgotten although they had something spent. If this
    /// keeps growing, the [capacity](super::Builder::capacity) is too small.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        self.counts().evictions
    }

    /// The tables by tier, that of the limiter's own quota first: for snapshots.
    pub fn tables(&self) -> impl Iterator<Item = (Option<&str>, &Table<S>)> {
        self.tiers.iter().map(|(name, tier)| (name, tier.table()))
    }

    pub(super) fn algorithm(&self, quota: &Quota) -> Result<AnyAlgorithm, Error> {
        self.kind.with_quota(quota, self.start, self.born)
    }
}
