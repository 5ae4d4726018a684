//! Saving and restoring what callers have spent.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use super::Limiter;
use super::accounts::{Entry, Own, Stripe};
use super::tiers::Caller;
use crate::account::{Account, Rule, SavedAccount};
use crate::algorithm::{Algorithm, AnyAlgorithm, Word};
use crate::sync::Ordering;
use crate::table::{By, Class, CountedBy};
use crate::{AlgorithmKind, Clock, Error, Fingerprint, Quota, Start, Timestamp, WhenFull};

/// What the callers of a limiter have spent.
///
/// Fingerprints are meaningless without the [seed](crate::Seed) of the limiter's hasher, and
/// words without the quota, the algorithm and the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// Callers without an account: a table for each tier.
    pub tables: Vec<SavedTable>,
    /// Callers with their own quota, or whose quota has changed lately.
    pub accounts: Vec<SavedCaller>,
}

/// What the callers of one table have spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedTable {
    /// Their tier, if it is one.
    pub tier: Option<String>,
    /// True if they were counted by quotas that came with their calls.
    pub is_by_call: bool,
    /// The quota of the words, or one like it.
    pub quota: Quota,
    /// Every caller with something spent.
    pub callers: Vec<(Fingerprint, Word)>,
}

/// What a caller has spent under several quotas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedCaller {
    /// The caller.
    pub caller: Fingerprint,
    /// Its tier, if it was in one.
    pub tier: Option<String>,
    /// If the quota in force is the caller's own, and for how long.
    pub own: Option<SavedOwn>,
    /// What it has spent.
    pub account: SavedAccount,
}

/// The quota in force is the caller's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedOwn {
    /// When it ends, if it does by itself.
    pub until: Option<Timestamp>,
}

impl Saved {
    /// The number of callers.
    #[must_use]
    pub fn len(&self) -> usize {
        let in_tables: usize = self.tables.iter().map(|table| table.callers.len()).sum();
        in_tables + self.accounts.len()
    }

    /// True if there are no callers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Converts words and times to another clock, which reads `now` when theirs reads `then`.
    /// `kind` is the algorithm of the limiter that was saved. Quotas that it cannot count are
    /// dropped.
    pub fn rebase(&mut self, kind: AlgorithmKind, then: Timestamp, now: Timestamp) {
        self.tables.retain_mut(|table| {
            let Ok(algorithm) = read(kind, &table.quota) else { return false };
            for (_, word) in &mut table.callers {
                *word = algorithm.rebase(*word, then, now);
            }
            true
        });
        self.accounts.retain_mut(|account| account.rebase(kind, then, now).is_ok());
    }

    /// Drops callers with nothing spent and without an account. If there are more than `most`,
    /// keeps those that need longest to be back at their full quota.
    pub fn retain_spent(&mut self, kind: AlgorithmKind, now: Timestamp, most: usize) {
        if self.accounts.len() > most {
            // Those with a quota of their own first: it was given to them on purpose.
            self.accounts.sort_by_key(|account| account.own.is_none());
            self.accounts.truncate(most);
        }
        let mut room = most - self.accounts.len();
        for table in &mut self.tables {
            let Ok(algorithm) = read(kind, &table.quota) else { continue };
            table.callers.retain(|(_, word)| algorithm.spent(*word, now) > 0);
            if table.callers.len() > room {
                // Callers that never refill come first.
                let wait = |(_, word): &(Fingerprint, Word)| {
                    Reverse(algorithm.reset_after(*word, now).unwrap_or(Duration::MAX))
                };
                table.callers.select_nth_unstable_by_key(room, wait);
                table.callers.truncate(room);
            }
            room -= table.callers.len();
        }
    }
}

impl SavedCaller {
    fn rebase(
        &mut self,
        kind: AlgorithmKind,
        then: Timestamp,
        now: Timestamp,
    ) -> Result<(), Error> {
        let moved = |time: Timestamp| match time >= then {
            true => now + time.since(then),
            false => now - then.since(time),
        };
        if let Some(own) = &mut self.own {
            own.until = own.until.map(moved);
        }
        // As they were when they were saved: what has refilled since depends on what ends since.
        let SavedAccount { quota, word, debt, at, since, piles } = &mut self.account;
        let (saved, restored) = (*at, moved(*at));
        let rule = read(kind, quota)?;
        *word = rule.rebase(*word, saved, restored);
        *debt = rule.rebase(*debt, saved, restored);
        for pile in piles {
            let rule = read(kind, &pile.quota)?;
            pile.word = rule.rebase(pile.word, saved - pile.lag, restored - pile.lag);
        }
        (*at, *since) = (restored, moved(*since));
        Ok(())
    }
}

/// The algorithm of a saved quota.
fn read(kind: AlgorithmKind, quota: &Quota) -> Result<AnyAlgorithm, Error> {
    read_with(quota, |quota| kind.with_quota(quota, Start::Full, Timestamp::ZERO))
}

/// The algorithm of a saved quota. If the quota is rejected now, since a bucket cannot keep its
/// rate, it is replaced by one with the same interval between tokens.
fn read_with(
    quota: &Quota,
    algorithm: impl Fn(&Quota) -> Result<AnyAlgorithm, Error>,
) -> Result<AnyAlgorithm, Error> {
    algorithm(quota).or_else(|why| match quota.interval() {
        Some(interval) => algorithm(&Quota::per(1, interval).burst(quota.burst()).build()?),
        None => Err(why),
    })
}

impl<K: ?Sized, C: Clock, S> Limiter<K, C, S> {
    /// Saves what every caller has spent. Scans every slot without blocking checks; concurrent
    /// spends may or may not be included. Changes of quotas and overrides wait, and callers with
    /// an account.
    #[must_use]
    pub fn save(&self) -> Saved {
        let _changing = self.accounts.hold();
        // Or a caller that leaves its account meanwhile could be in neither place.
        self.accounts.save(true);
        let now = self.clock.now();
        let table = |tier, is_by_call, quota| SavedTable {
            tier: self.tiers.name(tier),
            is_by_call,
            quota,
            callers: Vec::new(),
        };
        let quotas = self.tiers.quotas().clone().into_iter().enumerate();
        let mut tiers: Vec<_> = quotas.map(|(tier, quota)| table(tier, false, quota)).collect();
        let quotas = Class::all().filter_map(Class::quota);
        let mut classes: Vec<_> = quotas.map(|quota| table(0, true, quota)).collect();
        for (caller, word, counted_by) in self.table.live(now) {
            let table = match counted_by {
                CountedBy::Tier(tier) => tiers.get_mut(tier),
                CountedBy::Call(class) => classes.get_mut(class.number()),
            };
            table.into_iter().for_each(|table| table.callers.push((caller, word)));
        }
        let mut accounts = Vec::new();
        for mut stripe in self.accounts.stripes() {
            let Stripe { rules, entries, .. } = &mut *stripe;
            for (caller, entry) in entries {
                entry.come(rules, now);
                let own = entry.own.map(|own| SavedOwn { until: own.until });
                if own.is_some() || !entry.account.is_settled(now) {
                    let tier = self.tiers.name(entry.tier);
                    let account = entry.account.save(now);
                    accounts.push(SavedCaller { caller: *caller, tier, own, account });
                } else if entry.account.rule().algorithm.spent(entry.account.word(), now) > 0 {
                    tiers[entry.tier].callers.push((*caller, entry.account.word()));
                }
            }
        }
        self.accounts.save(false);
        classes.retain(|table| !table.callers.is_empty());
        Saved { tables: [tiers, classes].concat(), accounts }
    }

    /// Restores what callers had spent. `then` is the current time on the clock of the saved
    /// limiter: when it was saved, plus the time since.
    ///
    /// What is spent stays spent, in tokens, as for [`set_quota`](Self::set_quota); under the
    /// same quota, bit for bit. Where a caller is known already, the larger debt stays; saved
    /// overrides replace current ones, and end when they would have. Quotas that the algorithm
    /// cannot count are dropped.
    pub fn restore(&self, saved: &Saved, then: Timestamp) {
        self.restore_at(saved, then, self.clock.now(), true);
    }

    /// The same without overrides: what was spent under them is taken over by whatever quota the
    /// caller has now.
    pub fn restore_spent(&self, saved: &Saved, then: Timestamp) {
        self.restore_at(saved, then, self.clock.now(), false);
    }

    pub(super) fn restore_at(
        &self,
        saved: &Saved,
        then: Timestamp,
        now: Timestamp,
        with_overrides: bool,
    ) {
        let _changing = self.accounts.hold();
        for table in &saved.tables {
            let Ok(rule) = self.rule(&table.quota) else { continue };
            let tier = self.tiers.saved(table.tier.as_deref());
            for (caller, word) in &table.callers {
                let caller = Caller { fingerprint: *caller, tier };
                let word = rule.algorithm.rebase(*word, then, now);
                match &rule.algorithm {
                    AnyAlgorithm::TokenBucket(bucket) if table.is_by_call => {
                        self.table.raise_by(caller.fingerprint, By::Call(bucket), |_| word, now);
                    }
                    _ => self.put_back_word(caller, word, &rule, now),
                }
            }
        }
        let mut rules: Vec<Arc<Rule>> = Vec::new();
        for saved in &saved.accounts {
            let mut saved = saved.clone();
            let is_valid = saved.rebase(self.kind, then, now).is_ok();
            let rule = |quota: &Quota| self.rule_among(&mut rules, quota);
            let account = is_valid.then(|| Account::restore(&saved.account, rule));
            let Some(Ok(account)) = account else { continue };
            let own = saved.own.map(|own| Own { until: own.until });
            let tier = self.tiers.saved(saved.tier.as_deref());
            let caller = Caller { fingerprint: saved.caller, tier };
            self.put_back_account(caller, account, own, with_overrides, now);
        }
    }

    /// Restores a word, beside what is known of its caller.
    fn put_back_word(&self, caller: Caller, word: Word, rule: &Arc<Rule>, now: Timestamp) {
        let Caller { fingerprint, tier } = caller;
        let stripe = self.accounts.stripe(fingerprint);
        // Nearly all, after a restart.
        let is_back = stripe.rules[tier].is_like(rule) && !stripe.has(fingerprint) && {
            let step = |rule: &AnyAlgorithm, known| (true, Some(rule.larger(word, known, now)));
            let in_another_tier = (|| false, |_| Ok(false));
            let by = caller.by();
            let back =
                self.table.update(fingerprint, by, now, WhenFull::Evict, step, in_another_tier);
            back.unwrap_or(false)
        };
        drop(stripe);
        if !is_back {
            self.put_back_account(caller, Account::new(rule, word, now), None, false, now);
        }
    }

    /// Restores an account, beside what is known of its caller.
    fn put_back_account(
        &self,
        caller: Caller,
        account: Account,
        own: Option<Own>,
        is_kept: bool,
        now: Timestamp,
    ) {
        let mut stripe = self.accounts.stripe(caller.fingerprint);
        let mut entry = Entry { account, own, tier: caller.tier };
        // One that is over has ended when it did.
        entry.come(&stripe.rules, now);
        self.plain.store(false, Ordering::Relaxed);
        self.give_account(&mut stripe, caller, now);
        let known = stripe.known(caller, now);
        let is_own = entry.own.is_some() && is_kept;
        if is_own {
            std::mem::swap(&mut entry, known);
        }
        known.account.merge(entry.account, now);
        if is_own {
            stripe.has_another_own();
        }
        self.put_back(&mut stripe, caller.fingerprint, now);
    }

    fn read(&self, quota: &Quota) -> Result<AnyAlgorithm, Error> {
        read_with(quota, |quota| self.algorithm(quota))
    }

    fn rule(&self, quota: &Quota) -> Result<Arc<Rule>, Error> {
        Ok(Arc::new(Rule { quota: *quota, algorithm: self.read(quota)? }))
    }

    /// The same, once for all accounts. Their quotas are few, or few in a row.
    fn rule_among(&self, known: &mut Vec<Arc<Rule>>, quota: &Quota) -> Result<Arc<Rule>, Error> {
        if let Some(rule) = known.iter().find(|rule| rule.quota == *quota) {
            return Ok(Arc::clone(rule));
        }
        known.truncate(MOST_KNOWN);
        let rule = self.rule(quota)?;
        known.insert(0, Arc::clone(&rule));
        Ok(rule)
    }
}

/// Rules that are shared among the accounts of a restore.
const MOST_KNOWN: usize = 31;
