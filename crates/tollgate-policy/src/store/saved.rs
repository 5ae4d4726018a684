use std::collections::{HashMap, HashSet};

use tollgate::{AlgorithmKind, Clock, Fingerprint, Quota, Saved, SavedOverride, Timestamp};

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
    /// Which of the overrides were set at run time, and not by the policy.
    pub set_at_run_time: HashSet<Fingerprint>,
}

impl SavedLimit {
    /// A limit of its parts, as they were saved.
    #[must_use]
    pub fn new(
        name: String,
        per: String,
        algorithm: AlgorithmKind,
        spent: Saved,
        set_at_run_time: HashSet<Fingerprint>,
    ) -> Self {
        Self { name, per, algorithm, spent, set_at_run_time }
    }
}

impl<C: Clock + Clone + 'static> Saves for Memory<C> {
    fn save(&self, limits: &MemoryLimits<C>, limit: usize) -> Option<SavedLimit> {
        Some(limits.0[limit].save())
    }

    fn restore(&self, limits: &MemoryLimits<C>, saved: Vec<SavedLimit>, then: Timestamp) {
        let named: HashMap<_, _> =
            limits.0.iter().map(|held| (held.spec.name.as_str(), held)).collect();
        for saved in saved {
            let Some(held) = named.get(saved.name.as_str()) else { continue };
            if (&held.spec.per, held.spec.algorithm) == (&saved.per, saved.algorithm) {
                held.restore(saved, then);
            }
        }
    }
}

impl<C: Clock> Held<C> {
    fn save(&self) -> SavedLimit {
        let spent = self.limiter.save();
        let by_policy = self.overridden();
        let set_at_run_time = spent
            .overrides
            .iter()
            .filter(|saved| by_policy.get(&saved.client).is_none_or(|quota| *quota != saved.quota));
        SavedLimit {
            name: self.spec.name.clone(),
            per: self.spec.per.clone(),
            algorithm: self.spec.algorithm,
            set_at_run_time: set_at_run_time.map(|saved| saved.client).collect(),
            spent,
        }
    }

    fn restore(&self, saved: SavedLimit, then: Timestamp) {
        let SavedLimit { mut spent, set_at_run_time, .. } = saved;
        // What the policy said may have changed: there, what was spent is taken over by
        // whatever quota the caller has now.
        let is_kept = |saved: &SavedOverride| set_at_run_time.contains(&saved.client);
        (spent.overrides, spent.lapsed) = spent.overrides.into_iter().partition(is_kept);
        self.limiter.restore(&spent, then);
    }

    /// The callers who have an override by the policy.
    fn overridden(&self) -> HashMap<Fingerprint, Quota> {
        let overrides = self.spec.overrides.iter();
        overrides.map(|(key, quota)| (self.limiter.fingerprint(key), *quota)).collect()
    }
}
