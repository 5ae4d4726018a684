//! Taking what clients have spent out of one process and into another.

use std::cmp::Reverse;
use std::time::Duration;

use super::Limiter;
use super::tiers::Client;
use crate::algorithm::{Algorithm, AnyAlgorithm, Word};
use crate::{AlgorithmKind, Clock, Error, Fingerprint, Quota, Start, Timestamp};

/// What the clients of a limiter have spent.
///
/// Fingerprints mean nothing without the [seed](crate::Seed) of the limiter's hasher,
/// nor words without the quota, the limiter's algorithm and the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// The clients without a quota of their own: one table.
    pub tables: Vec<SavedTable>,
    /// The clients that have a quota of their own.
    pub overrides: Vec<SavedOverride>,
    /// Clients that had one, which shall not come back: what was spent under it counts.
    pub lapsed: Vec<SavedOverride>,
}

/// What the clients of one table have spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedTable {
    /// The quota under which the words have their meaning.
    pub quota: Quota,
    /// True if clients may have been in different tiers. Then nobody knows how many tokens
    /// a bucket owes, only for how long.
    pub is_tiered: bool,
    /// Every client that had something spent.
    pub clients: Vec<(Fingerprint, Word)>,
}

/// A client that has a quota of its own, and what it has spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedOverride {
    /// The client.
    pub client: Fingerprint,
    /// Its quota.
    pub quota: Quota,
    /// What it has spent.
    pub word: Word,
    /// What it had spent before it was given that quota, as a word of the first table.
    pub base: Option<Word>,
}

impl Saved {
    /// How many clients it has.
    #[must_use]
    pub fn len(&self) -> usize {
        let in_tables: usize = self.tables.iter().map(|table| table.clients.len()).sum();
        in_tables + self.overrides.len() + self.lapsed.len()
    }

    /// True if it has no client.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes its words those of another clock, which reads `now` when theirs reads `then`. It was
    /// saved by a limiter of this kind. What that cannot count is left out.
    pub fn rebase(&mut self, kind: AlgorithmKind, then: Timestamp, now: Timestamp) {
        let base = self.tables.first().and_then(|table| read(kind, &table.quota).ok());
        self.tables.retain_mut(|table| {
            let Ok(algorithm) = read(kind, &table.quota) else { return false };
            for (_, word) in &mut table.clients {
                *word = algorithm.rebase(*word, then, now);
            }
            true
        });
        for overrides in [&mut self.overrides, &mut self.lapsed] {
            overrides.retain_mut(|saved| {
                let Ok(algorithm) = read(kind, &saved.quota) else { return false };
                saved.word = algorithm.rebase(saved.word, then, now);
                let moved = |word| base.map(|base| base.rebase(word, then, now));
                saved.base = saved.base.and_then(moved);
                true
            });
        }
    }

    /// Leaves out clients that have nothing spent any more and no quota of their own. If there
    /// are more than `most`, those without a quota of their own stay that have to wait longest
    /// until all is back.
    pub fn retain_spent(&mut self, kind: AlgorithmKind, now: Timestamp, most: usize) {
        let mut room = most.saturating_sub(self.overrides.len() + self.lapsed.len());
        for table in &mut self.tables {
            let Ok(algorithm) = read(kind, &table.quota) else { continue };
            table.clients.retain(|(_, word)| algorithm.spent(*word, now) > 0);
            if table.clients.len() > room {
                // What is never back comes first.
                let wait = |(_, word): &(Fingerprint, Word)| {
                    Reverse(algorithm.reset_after(*word, now).unwrap_or(Duration::MAX))
                };
                table.clients.select_nth_unstable_by_key(room, wait);
                table.clients.truncate(room);
            }
            room -= table.clients.len();
        }
    }
}

/// What reads the words of a quota that was saved.
fn read(kind: AlgorithmKind, quota: &Quota) -> Result<AnyAlgorithm, Error> {
    read_with(quota, |quota| kind.with_quota(quota, Start::Full, Timestamp::ZERO))
}

/// What reads the words of a quota that was saved: also of one that is refused by now, since a
/// bucket cannot keep its rate. One token takes as long under the rate that it kept.
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
    /// What every client has spent. Looks at every slot, without holding up checks;
    /// what is spent meanwhile may or may not be in it. Changes of overrides wait.
    #[must_use]
    pub fn save(&self) -> Saved {
        // A client that gained or lost its override meanwhile could be in neither place. Nor
        // does a quota change.
        let _settled = self.overrides.hold();
        let now = self.clock.now();
        let table = SavedTable {
            quota: self.kind.widest(&self.tiers.quotas()).unwrap_or_else(|| self.quota()),
            is_tiered: self.tiers.are_some(),
            clients: self.table.live(now).collect(),
        };
        let mut overrides = Vec::new();
        self.overrides.each(|client, pinned| {
            let (quota, word, base) = (pinned.quota, pinned.word, pinned.base);
            overrides.push(SavedOverride { client, quota, word, base });
        });
        Saved { tables: vec![table], overrides, lapsed: Vec::new() }
    }

    /// Puts back what clients had spent when it was saved. `then` is the time, on the
    /// clock of that time, at which it is now: when it was saved, and what has passed
    /// since.
    ///
    /// What is spent stays spent, in tokens, as for [`set_quota`](Self::set_quota); under the
    /// same quota, to the last bit. Where a client is known already, the larger debt stays;
    /// overrides that were saved go before those that there are. Quotas that the algorithm
    /// cannot count are left out.
    pub fn restore(&self, saved: &Saved, then: Timestamp) {
        self.restore_at(saved, then, self.clock.now());
    }

    pub(super) fn restore_at(&self, saved: &Saved, then: Timestamp, now: Timestamp) {
        let changing = self.overrides.hold();
        let base = saved.tables.first().and_then(|table| self.meaning(table).ok());
        for table in &saved.tables {
            let Ok(meaning) = self.meaning(table) else { continue };
            for (client, word) in &table.clients {
                self.put_back(*client, *word, meaning, then, now);
            }
        }
        for kept in &saved.overrides {
            if let Ok(algorithm) = self.read(&kept.quota) {
                self.pin(&changing, Client::of_base(kept.client), kept.quota, algorithm);
                self.put_back_override(kept, &algorithm, base, then, now);
            }
        }
        for lapsed in &saved.lapsed {
            if let Ok(algorithm) = self.read(&lapsed.quota) {
                self.put_back_override(lapsed, &algorithm, base, then, now);
            }
        }
    }

    fn put_back(
        &self,
        client: Fingerprint,
        word: Word,
        meaning: Meaning,
        then: Timestamp,
        now: Timestamp,
    ) {
        let word = meaning.algorithm.rebase(word, then, now);
        self.overrides.with(client, |pinned| match pinned {
            None => self.table.raise(client, now, |rule| meaning.in_table(word, rule, now)),
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
        let client = saved.client;
        let word = algorithm.rebase(saved.word, then, now);
        let before = |rule: &AnyAlgorithm| {
            let (word, meaning) = saved.base.zip(base)?;
            Some(meaning.in_table(meaning.algorithm.rebase(word, then, now), rule, now))
        };
        self.overrides.with(client, |pinned| match pinned {
            Some(pinned) => {
                let rule = self.table.algorithm();
                pinned.add(word, algorithm, now);
                before(&rule).into_iter().for_each(|base| pinned.add_base(base, &rule, now));
            }
            None => self.table.raise(client, now, |rule| {
                let carried = rule.carry_over(word, now, algorithm);
                before(rule).map_or(carried, |base| rule.larger(base, carried, now))
            }),
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

/// What the words of a saved table mean.
#[derive(Clone, Copy)]
struct Meaning {
    algorithm: AnyAlgorithm,
    is_tiered: bool,
    /// True if the present tiers are those of then.
    is_same: bool,
}

impl Meaning {
    /// The word under the rule of a table.
    fn in_table(self, word: Word, rule: &AnyAlgorithm, now: Timestamp) -> Word {
        match (self.is_tiered, self.is_same) {
            (true, true) => word,
            (true, false) => rule.keep(word, now, &self.algorithm),
            (false, _) => rule.carry_over(word, now, &self.algorithm),
        }
    }
}
