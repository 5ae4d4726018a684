//! Saving and restoring what callers have spent.

use std::cmp::Reverse;
use std::time::Duration;

use super::Limiter;
use super::expiry::Moment;
use super::overrides::Pinned;
use super::tiers::Caller;
use crate::algorithm::{Algorithm, AnyAlgorithm, Word};
use crate::{AlgorithmKind, Clock, Error, Fingerprint, Quota, Start, Timestamp};

/// What the callers of a limiter have spent.
///
/// Fingerprints are meaningless without the [seed](crate::Seed) of the limiter's hasher, and
/// words without the quota, the algorithm and the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// Callers without their own quota: one table.
    pub tables: Vec<SavedTable>,
    /// Callers with their own quota.
    pub overrides: Vec<SavedOverride>,
    /// Callers whose own quota is not restored: only what they spent under it is.
    pub lapsed: Vec<SavedOverride>,
}

/// What the callers of one table have spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedTable {
    /// The quota of the words.
    pub quota: Quota,
    /// True if callers may have been in different tiers: then it is not known how many tokens a
    /// bucket owes, only for how long.
    pub is_tiered: bool,
    /// Every caller with something spent.
    pub callers: Vec<(Fingerprint, Word)>,
}

/// A caller with its own quota, and what it has spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedOverride {
    /// The caller.
    pub caller: Fingerprint,
    /// Its quota.
    pub quota: Quota,
    /// What it has spent.
    pub word: Word,
    /// What it had spent before that quota was set, as a word of the first table.
    pub base: Option<Word>,
    /// When the quota ends, if it does by itself.
    pub until: Option<Timestamp>,
}

impl Saved {
    /// The number of callers.
    #[must_use]
    pub fn len(&self) -> usize {
        let in_tables: usize = self.tables.iter().map(|table| table.callers.len()).sum();
        in_tables + self.overrides.len() + self.lapsed.len()
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
        let base = self.tables.first().and_then(|table| read(kind, &table.quota).ok());
        self.tables.retain_mut(|table| {
            let Ok(algorithm) = read(kind, &table.quota) else { return false };
            for (_, word) in &mut table.callers {
                *word = algorithm.rebase(*word, then, now);
            }
            true
        });
        for overrides in [&mut self.overrides, &mut self.lapsed] {
            overrides.retain_mut(|saved| {
                let Ok(algorithm) = read(kind, &saved.quota) else { return false };
                let clocks = Moment { then, now };
                let Moment { then, now } = clocks.or_end(saved.until);
                saved.word = algorithm.rebase(saved.word, then, now);
                let moved = |word| base.map(|base| base.rebase(word, then, now));
                saved.base = saved.base.and_then(moved);
                saved.until = saved.until.map(|until| clocks.moved(until));
                true
            });
        }
    }

    /// Drops callers with nothing spent and without their own quota. If there are more than
    /// `most`, keeps those that need longest to be back at their full quota.
    pub fn retain_spent(&mut self, kind: AlgorithmKind, now: Timestamp, most: usize) {
        let mut room = most.saturating_sub(self.overrides.len() + self.lapsed.len());
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
    /// spends may or may not be included. Changes of overrides wait.
    #[must_use]
    pub fn save(&self) -> Saved {
        // A caller that gained or lost its override meanwhile could be in neither place. Nor
        // does a quota change.
        let settled = self.overrides.hold();
        let now = self.clock.now();
        self.expire_all(&settled, now);
        let table = SavedTable {
            quota: self.kind.widest(&self.tiers.quotas()).unwrap_or_else(|| self.quota()),
            is_tiered: self.tiers.are_some(),
            callers: self.table.live(now).collect(),
        };
        let mut overrides = Vec::new();
        self.overrides.each(|caller, pinned| {
            let Pinned { quota, word, base, until, .. } = *pinned;
            overrides.push(SavedOverride { caller, quota, word, base, until });
        });
        Saved { tables: vec![table], overrides, lapsed: Vec::new() }
    }

    /// Restores what callers had spent. `then` is the current time on the clock of the saved
    /// limiter: when it was saved, plus the time since.
    ///
    /// What is spent stays spent, in tokens, as for [`set_quota`](Self::set_quota); under the
    /// same quota, bit for bit. Where a caller is known already, the larger debt stays; saved
    /// overrides replace current ones, and end when they would have. Quotas that the algorithm
    /// cannot count are dropped.
    pub fn restore(&self, saved: &Saved, then: Timestamp) {
        self.restore_at(saved, then, self.clock.now());
    }

    pub(super) fn restore_at(&self, saved: &Saved, then: Timestamp, now: Timestamp) {
        let changing = self.overrides.hold();
        self.expire_all(&changing, now);
        let base = saved.tables.first().and_then(|table| self.meaning(table).ok());
        for table in &saved.tables {
            let Ok(meaning) = self.meaning(table) else { continue };
            for (caller, word) in &table.callers {
                self.put_back(*caller, *word, meaning, then, now);
            }
        }
        let kept = saved.overrides.iter().map(|kept| (kept, true));
        for (own, is_kept) in kept.chain(saved.lapsed.iter().map(|lapsed| (lapsed, false))) {
            let Ok(algorithm) = self.read(&own.quota) else { continue };
            let until = own.until.map(|until| Moment { then, now }.moved(until));
            if is_kept && until.is_none_or(|until| until > now) {
                let caller = Caller::of_base(own.caller);
                self.pin(&changing, caller, own.quota, algorithm, until);
            }
            self.put_back_override(own, &algorithm, base, then, now);
        }
    }

    fn put_back(
        &self,
        caller: Fingerprint,
        word: Word,
        meaning: Meaning,
        then: Timestamp,
        now: Timestamp,
    ) {
        let word = meaning.algorithm.rebase(word, then, now);
        self.overrides.with(caller, |pinned| match pinned {
            None => self.table.raise_at(caller, |rule| meaning.in_table(word, rule, now), now),
            Some(pinned) => {
                let rule = self.table.algorithm();
                pinned.add(word, &meaning.algorithm, now);
                pinned.add_base(meaning.in_table(word, &rule, now), &rule, now);
            }
        });
    }

    fn put_back_override(
        &self,
        saved: &SavedOverride,
        algorithm: &AnyAlgorithm,
        base: Option<Meaning>,
        then: Timestamp,
        now: Timestamp,
    ) {
        let caller = saved.caller;
        // A quota that has ended since was in force until then, and the usual one from then on.
        let Moment { then, now: at } = Moment { then, now }.or_end(saved.until);
        let word = algorithm.rebase(saved.word, then, at);
        let before = |rule: &AnyAlgorithm| {
            let (word, meaning) = saved.base.zip(base)?;
            Some(meaning.in_table(meaning.algorithm.rebase(word, then, at), rule, at))
        };
        self.overrides.with(caller, |pinned| match pinned {
            Some(pinned) => {
                let rule = self.table.algorithm();
                pinned.add(word, algorithm, now);
                before(&rule).into_iter().for_each(|base| pinned.add_base(base, &rule, now));
            }
            None => {
                let word = |rule: &AnyAlgorithm| {
                    let carried = rule.carry_over(word, at, algorithm);
                    before(rule).map_or(carried, |base| rule.larger(base, carried, at))
                };
                self.table.raise_at(caller, word, at);
            }
        });
    }

    fn read(&self, quota: &Quota) -> Result<AnyAlgorithm, Error> {
        read_with(quota, |quota| self.algorithm(quota))
    }

    fn meaning(&self, table: &SavedTable) -> Result<Meaning, Error> {
        let is_tiered = table.is_tiered;
        let is_same = is_tiered == self.tiers.are_some()
            && self.kind.widest(&self.tiers.quotas()) == Some(table.quota);
        Ok(Meaning { algorithm: self.read(&table.quota)?, is_tiered, is_same })
    }
}

/// How to read the words of a saved table.
#[derive(Clone, Copy)]
struct Meaning {
    algorithm: AnyAlgorithm,
    is_tiered: bool,
    /// True if the tiers have not changed.
    is_same: bool,
}

impl Meaning {
    /// The word by the rule of a table.
    fn in_table(self, word: Word, rule: &AnyAlgorithm, now: Timestamp) -> Word {
        match (self.is_tiered, self.is_same) {
            (true, true) => word,
            (true, false) => rule.keep(word, now, &self.algorithm),
            (false, _) => rule.carry_over(word, now, &self.algorithm),
        }
    }
}
