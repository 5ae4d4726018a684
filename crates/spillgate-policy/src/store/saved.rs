use std::collections::HashMap;
use std::time::Duration;

use spillgate::{AlgorithmKind, Clock, Saved, Timestamp};

use super::memory::Held;
use super::{Memory, MemoryLimits, Saves};

/// What was spent under one limit, to be kept while the process is not running.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedLimit {
    /// The limit's name.
    pub name: String,
    /// What it counted apart.
    pub per: String,
    /// How it counted.
    pub algorithm: AlgorithmKind,
    /// What every caller had spent.
    pub spent: Saved,
    /// For how long the policy has no such limit; `None` if it has one.
    pub removed_for: Option<Duration>,
}

impl SavedLimit {
    /// A limit of its parts, as they were saved.
    #[must_use]
    pub fn new(name: String, per: String, algorithm: AlgorithmKind, spent: Saved) -> Self {
        Self { name, per, algorithm, spent, removed_for: None }
    }

    /// True if it counts as a limit of this name that counts so.
    pub(super) fn is_like(&self, name: &str, per: &str, algorithm: AlgorithmKind) -> bool {
        (self.name.as_str(), self.per.as_str(), self.algorithm) == (name, per, algorithm)
    }
}

impl<C: Clock + Clone + 'static> Saves for Memory<C> {
    fn save(&self, limits: &MemoryLimits<C>, limit: usize) -> Option<SavedLimit> {
        // Who holds permits has ended with this process, or does not know of the next.
        let held = &limits.held[limit];
        held.permits.is_none().then(|| held.save())
    }

    fn restore(&self, limits: &MemoryLimits<C>, saved: Vec<SavedLimit>, then: Timestamp) {
        let named: HashMap<_, _> =
            limits.held.iter().map(|held| (held.spec.name.as_str(), held)).collect();
        for mut saved in saved {
            let held = named.get(saved.name.as_str());
            let is_it = |held: &&&Held<C>| {
                let spec = &held.spec;
                spec.hold.is_none() && saved.is_like(&spec.name, &spec.per, spec.algorithm)
            };
            match held.filter(is_it) {
                Some(held) => held.restore(&saved, then),
                None => {
                    let now = self.clock().now();
                    saved.spent.rebase(saved.algorithm, then, now);
                    let at = now - saved.removed_for.unwrap_or_default();
                    limits.removed().keep(saved, at, now);
                }
            }
        }
    }

    fn save_removed(&self, limits: &MemoryLimits<C>) -> Vec<SavedLimit> {
        limits.removed().save(self.clock().now())
    }
}

impl<C: Clock + Clone> Held<C> {
    pub(super) fn save(&self) -> SavedLimit {
        SavedLimit {
            name: self.spec.name.clone(),
            per: self.spec.per.clone(),
            algorithm: self.spec.algorithm,
            removed_for: None,
            spent: self.limiter.save(),
        }
    }

    pub(super) fn restore(&self, saved: &SavedLimit, then: Timestamp) {
        // Overrides are those of the policy and of edits, which may have changed or ended.
        self.limiter.restore_spent(&saved.spent, then);
    }
}
