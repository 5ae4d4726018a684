use std::collections::{HashMap, HashSet};
use std::time::Duration;

use spillgate::{AlgorithmKind, Clock, Fingerprint, Quota, Saved, SavedOverride, Timestamp};

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
    /// For how long the policy has no such limit; `None` if it has one.
    pub removed_for: Option<Duration>,
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
        Self { name, per, algorithm, spent, set_at_run_time, removed_for: None }
    }

    /// True if it counts as a limit of this name that counts so.
    pub(super) fn is_like(&self, name: &str, per: &str, algorithm: AlgorithmKind) -> bool {
        (self.name.as_str(), self.per.as_str(), self.algorithm) == (name, per, algorithm)
    }
}

impl<C: Clock + Clone + 'static> Saves for Memory<C> {
    fn save(&self, limits: &MemoryLimits<C>, limit: usize) -> Option<SavedLimit> {
        Some(limits.held[limit].save())
    }

    fn restore(&self, limits: &MemoryLimits<C>, saved: Vec<SavedLimit>, then: Timestamp) {
        let named: HashMap<_, _> =
            limits.held.iter().map(|held| (held.spec.name.as_str(), held)).collect();
        for mut saved in saved {
            let held = named.get(saved.name.as_str());
            match held
                .filter(|held| saved.is_like(&held.spec.name, &held.spec.per, held.spec.algorithm))
            {
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
        let spent = match &self.classes {
            Some(classes) => classes.save(),
            None => self.limiter.save(),
        };
        let by_policy = self.overridden();
        let set_at_run_time = spent
            .overrides
            .iter()
            .filter(|saved| by_policy.get(&saved.caller).is_none_or(|quota| *quota != saved.quota));
        SavedLimit {
            name: self.spec.name.clone(),
            per: self.spec.per.clone(),
            algorithm: self.spec.algorithm,
            set_at_run_time: set_at_run_time.map(|saved| saved.caller).collect(),
            removed_for: None,
            spent,
        }
    }

    pub(super) fn restore(&self, saved: &SavedLimit, then: Timestamp) {
        let mut spent = saved.spent.clone();
        // What the policy said may have changed: there, what was spent is taken over by
        // whatever quota the caller has now.
        let is_kept = |kept: &SavedOverride| saved.set_at_run_time.contains(&kept.caller);
        (spent.overrides, spent.lapsed) = spent.overrides.into_iter().partition(is_kept);
        match &self.classes {
            Some(classes) => classes.restore(&spent, then),
            None => self.limiter.restore(&spent, then),
        }
    }

    /// The callers who have an override by the policy.
    fn overridden(&self) -> HashMap<Fingerprint, Quota> {
        let overrides = self.spec.overrides.iter();
        overrides.map(|(key, quota)| (self.limiter.fingerprint(key), *quota)).collect()
    }
}
