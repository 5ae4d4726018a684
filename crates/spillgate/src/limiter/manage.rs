//! Changing and inspecting a running limiter.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use super::accounts::{self, Entry, Own, Stripe};
use super::tiers::Caller;
use super::{Counts, Limiter};
use crate::account::{Account, Rule};
use crate::algorithm::{AlgorithmKind, AnyAlgorithm, Start, Word};
use crate::sync::{MutexGuard, Ordering};
use crate::{Clock, Error, Fingerprint, Quota, Table, Timestamp};

impl<K: ?Sized, C: Clock, S> Limiter<K, C, S> {
    /// Changes the quota of all callers without a tier or an override.
    ///
    /// What a caller has spent stays spent, in tokens, up to the new burst: 7 of 10 stay 7, and
    /// debts are owed in full. What was spent under each quota runs off at its own rate, the fastest
    /// first: a quota that is lowered and restored refunds nobody, and one that comes back charges
    /// nobody for what has run off. Setting the current quota changes nothing.
    ///
    /// Visits every slot; checks wait meanwhile, about 0.4 s per million callers. Callers that have something spent take more
    /// memory and time until that has run off: see [below](Self#memory-and-threads).
    ///
    /// If the limiter has tiers, see [`set_tier_quota`](Self::set_tier_quota).
    ///
    /// # Errors
    ///
    /// If the quota is not valid, or not for the limiter's algorithm.
    pub fn set_quota<Q: TryInto<Quota>>(&self, quota: Q) -> Result<(), Error>
    where
        Error: From<Q::Error>,
    {
        let quota = quota.try_into()?;
        self.change_quotas(|quotas| quotas[0] = quota)
    }

    /// Changes the quota of a tier, as [`set_quota`](Self::set_quota) changes the limiter's own.
    ///
    /// # Errors
    ///
    /// If there is no such tier, or the quota is not valid, or not for the limiter's algorithm.
    pub fn set_tier_quota<Q: TryInto<Quota>>(&self, tier: &str, quota: Q) -> Result<(), Error>
    where
        Error: From<Q::Error>,
    {
        let (tier, quota) = (self.tiers.named(tier)?, quota.try_into()?);
        self.change_quotas(|quotas| quotas[tier] = quota)
    }

    /// Changes the limiter's own quota and those of tiers at once.
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
        let now = self.clock.now();
        let in_accounts = self.accounts.stripes().map(|stripe| stripe.active_callers(now));
        self.table.active_callers_at(now) + in_accounts.sum::<usize>()
    }

    /// Clears the slots of idle callers, and returns how many there were. Never necessary: see
    /// [`Table::purge_idle_at`].
    pub fn purge_idle(&self) -> usize {
        self.table.purge_idle_at(self.clock.now())
    }

    fn change_quotas(&self, change: impl FnOnce(&mut [Quota])) -> Result<(), Error> {
        // Held for the whole change: `quota` returns the one in force, and accounts change
        // together with the table.
        let _changing = self.accounts.hold();
        let mut quotas = self.tiers.quotas();
        let mut wanted = quotas.clone();
        change(&mut wanted);
        let rules = rules(self.kind, &wanted, self.start, self.born, self.max_debt)?;
        let (old, new) = (self.rules_of(&quotas)?, rules.all(&wanted));
        let mut stripes = self.accounts.hold_stripes();
        *quotas = wanted;
        if old.iter().zip(&new).all(|(old, new)| old.is_like(new)) {
            stripes.iter_mut().for_each(|stripe| stripe.rules.clone_from(&new));
            return Ok(());
        }
        self.plain.store(false, Ordering::Relaxed);
        let mut moved = Vec::new();
        let move_out = |caller: Fingerprint, word: Word, tier| {
            self.accounts.announce(caller);
            moved.push((caller, word, tier));
        };
        let now = self.table.set_rules(rules.base, &rules.tiers, || self.clock.now(), move_out);
        for stripe in &mut stripes {
            let all = stripe.entries.values_mut();
            all.for_each(|entry| entry.come(&old, now));
            stripe.rules.clone_from(&new);
        }
        for (caller, word, tier) in moved {
            let account = Account::new(&old[tier], word, now);
            accounts::of(&mut stripes, caller).merge(caller, account, tier, now);
        }
        for Stripe { rules, entries, .. } in stripes.iter_mut().map(|stripe| &mut **stripe) {
            entries.values_mut().for_each(|entry| entry.come(rules, now));
        }
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
        let rule = Arc::new(Rule { quota, algorithm: self.algorithm(&quota)? });
        self.give_own(&self.accounts.hold(), self.caller(key), &rule, Own { until });
        Ok(())
    }

    /// Removes a caller's own quota, and returns it. Of what the caller has spent under it and
    /// what it had spent before, whatever has not been refilled counts.
    pub fn remove_override(&self, key: &K) -> Option<Quota> {
        let caller = self.caller(key);
        let _changing = self.accounts.hold();
        let mut stripe = self.accounts.stripe(caller.fingerprint);
        let now = self.clock.now();
        stripe.entries.get(&caller.fingerprint)?.own?;
        let entry = stripe.entry(caller, now);
        let quota = entry.own.take().map(|_| entry.account.rule().quota);
        // That of its tier instead.
        stripe.entry(caller, now);
        self.put_back(&mut stripe, caller.fingerprint, now);
        quota
    }

    /// The quota of a caller: its override, its tier's or the limiter's.
    pub fn quota_of(&self, key: &K) -> Quota {
        let caller = self.caller(key);
        let own = self.read_own(caller, |entry, _| entry.account.rule().quota);
        own.unwrap_or_else(|| self.tiers.quotas()[caller.tier])
    }

    /// When the override of a caller ends. `None` if it has none, or one that does not end by
    /// itself.
    pub fn override_until(&self, key: &K) -> Option<Timestamp> {
        self.read_own(self.caller(key), |_, own| own.until)?
    }
}

impl<K: ?Sized, C: Clock, S> Limiter<K, C, S> {
    /// Gives a caller its own quota, while changes of quotas are held.
    pub(super) fn give_own(
        &self,
        _changing: &MutexGuard<'_, ()>,
        caller: Caller,
        rule: &Arc<Rule>,
        own: Own,
    ) {
        // A hint, set first: a check that sees it late does not find the caller in the table.
        self.plain.store(false, Ordering::Relaxed);
        let mut stripe = self.accounts.stripe(caller.fingerprint);
        self.give_account(&mut stripe, caller, self.clock.now());
        // Read only now, when no call can spend on a word in the table any more.
        let now = self.clock.now();
        let entry = stripe.known(caller, now);
        entry.account.change(rule, now);
        (entry.own, entry.tier) = (Some(own), caller.tier);
        stripe.has_another_own();
    }

    /// Calls `read` with the caller's entry, if it has its own quota that is not over.
    fn read_own<T>(&self, caller: Caller, read: impl FnOnce(&Entry, Own) -> T) -> Option<T> {
        let now = self.clock.now();
        let stripe = self.accounts.stripe(caller.fingerprint);
        let entry = stripe.entries.get(&caller.fingerprint)?;
        let own = entry.own.filter(|own| own.until.is_none_or(|until| until > now))?;
        Some(read(entry, own))
    }

    /// The rules of the quotas in force, the limiter's own first.
    fn rules_of(&self, quotas: &[Quota]) -> Result<Vec<Arc<Rule>>, Error> {
        Ok(rules(self.kind, quotas, self.start, self.born, None)?.all(quotas))
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

    /// The table of all callers without an override whose quota has not changed lately.
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

impl Rules {
    /// All of them, with their quotas, the limiter's own first.
    pub(super) fn all(&self, quotas: &[Quota]) -> Vec<Arc<Rule>> {
        let algorithms = std::iter::once(&self.base).chain(&self.tiers);
        let rule = |(quota, algorithm): (&Quota, &AnyAlgorithm)| {
            Arc::new(Rule { quota: *quota, algorithm: *algorithm })
        };
        quotas.iter().zip(algorithms).map(rule).collect()
    }
}

/// The rules of quotas, the limiter's own first.
pub(super) fn rules(
    kind: AlgorithmKind,
    quotas: &[Quota],
    start: Start,
    born: Timestamp,
    max_debt: Option<u64>,
) -> Result<Rules, Error> {
    let algorithms = quotas.iter().map(|quota| kind.with_quota(quota, start, born));
    let algorithms: Vec<_> = algorithms.collect::<Result<_, _>>()?;
    for algorithm in &algorithms {
        max_debt.map_or(Ok(()), |max_debt| algorithm.expect_debt(max_debt))?;
    }
    let mut algorithms = algorithms.into_iter();
    let base = algorithms.next().ok_or_else(|| Error::quota("a limiter has a quota"))?;
    Ok(Rules { base, tiers: algorithms.collect() })
}
