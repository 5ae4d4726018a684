//! Taking what clients have spent out of one process and into another.

use super::Limiter;
use super::tiers::Tier;
use crate::algorithm::{Algorithm, Word};
use crate::{Clock, Fingerprint, Quota, Timestamp};

/// What the clients of a limiter have spent.
///
/// Fingerprints mean nothing without the [seed](crate::Seed) of the limiter's hasher,
/// nor words without the quota, the limiter's algorithm and the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// The clients by tier, those of the limiter's own quota first.
    pub tables: Vec<SavedTable>,
    /// The clients that have a quota of their own.
    pub overrides: Vec<SavedOverride>,
}

/// What the clients of one tier have spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedTable {
    /// The tier; `None` for the limiter's own quota.
    pub tier: Option<String>,
    /// The quota under which the words have their meaning.
    pub quota: Quota,
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
}

impl<K: ?Sized, C: Clock, S> Limiter<K, C, S> {
    /// What every client has spent. Looks at every slot, without holding up checks;
    /// what is spent meanwhile may or may not be in it. Changes of overrides wait.
    #[must_use]
    pub fn save(&self) -> Saved {
        // A client that gained or lost its override meanwhile could be in neither place.
        let _settled = self.overrides.hold();
        let now = self.clock.now();
        let tables = self.tiers.iter().map(|(name, tier)| {
            let algorithm = tier.table().algorithm();
            let live = tier.table().iter().filter(|(_, word)| algorithm.spent(*word, now) > 0);
            SavedTable {
                tier: name.map(str::to_owned),
                quota: tier.quota(),
                clients: live.collect(),
            }
        });
        let tables = tables.collect();
        let mut overrides = Vec::new();
        self.overrides.each(|client, pinned| {
            overrides.push(SavedOverride { client, quota: pinned.quota, word: pinned.word });
        });
        Saved { tables, overrides }
    }

    /// Puts back what clients had spent when it was saved. `then` is the time, on the
    /// clock of that time, at which it is now: when it was saved, and what has passed
    /// since.
    ///
    /// What is spent stays spent, in tokens, up to the limiter's quota. Where a client
    /// is known already, the larger debt stays; overrides that were saved go before those
    /// that there are. Clients of a tier that is no more take
    /// what they have spent along. Quotas that the algorithm cannot count are left out.
    pub fn restore(&self, saved: &Saved, then: Timestamp) {
        self.restore_at(saved, then, self.clock.now());
    }

    pub(super) fn restore_at(&self, saved: &Saved, then: Timestamp, now: Timestamp) {
        for SavedTable { tier, quota, clients } in &saved.tables {
            let Ok(meaning) = self.algorithm(quota) else { continue };
            let heir = self.tiers.named(tier.as_deref()).map_or(self.tiers.base(), Tier::table);
            for (client, word) in clients {
                let word = meaning.rebase(*word, then, now);
                let pinned = self.overrides.with(*client, |pinned| pinned.add(word, &meaning, now));
                pinned.unwrap_or_else(|| heir.put_in_at(*client, word, &meaning, now));
            }
        }
        for SavedOverride { client, quota, word } in &saved.overrides {
            let Ok(algorithm) = self.algorithm(quota) else { continue };
            self.pin(*client, *quota, algorithm, now);
            let word = algorithm.rebase(*word, then, now);
            self.overrides.with(*client, |pinned| pinned.add(word, &algorithm, now));
        }
    }
}
