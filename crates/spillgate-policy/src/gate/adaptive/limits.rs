//! The limits of a policy that follow load.

use std::hash::RandomState;
use std::sync::Arc;

use spillgate::Timestamp;

use super::acquired::AcquiredCalls;
use super::live::LiveLimit;
use crate::policy::Rule;
use crate::{Error, Policy};

/// The limits of a policy that follow load.
#[derive(Default)]
pub(in crate::gate) struct LiveLimits {
    /// By the places of their rules. Empty if there are none.
    limits: Vec<Option<Arc<LiveLimit>>>,
    /// Limits that are gone, while something of them is in flight: if they come back, it counts.
    removed: Vec<Arc<LiveLimit>>,
    /// Gives callers their levels, the same for all policies of a gate.
    pub(in crate::gate) levels: Arc<RandomState>,
    /// What programs elsewhere hold, the same for all policies of a gate.
    pub(in crate::gate) acquired: Arc<AcquiredCalls>,
}

impl LiveLimits {
    /// The limits of the first policy of a gate.
    pub(in crate::gate) fn open(policy: &Policy, now: Timestamp) -> Result<Self, Error> {
        Self::default().next(policy, now).map(|next| next.limits)
    }

    /// Prepares the limits of the next policy. Nothing has changed until that is
    /// [put in force](NextLimits::put_in_force).
    pub(in crate::gate) fn next(
        &self,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<NextLimits, Error> {
        let mut next = NextLimits {
            limits: Self {
                levels: Arc::clone(&self.levels),
                acquired: Arc::clone(&self.acquired),
                ..Self::default()
            },
        };
        if policy.has_adaptive {
            let live = policy.rules.iter().map(|rule| self.live(policy, rule, now));
            next.limits.limits = live.collect::<Result<_, _>>()?;
        }
        let stays = |old: &Arc<LiveLimit>| next.limits.each().any(|new| Arc::ptr_eq(new, old));
        let gone = self.all().filter(|old| !old.is_idle() && !stays(old));
        next.limits.removed = gone.map(Arc::clone).collect();
        Ok(next)
    }

    fn live(
        &self,
        policy: &Policy,
        rule: &Rule,
        now: Timestamp,
    ) -> Result<Option<Arc<LiveLimit>>, Error> {
        let Some(terms) = &rule.adaptive else { return Ok(None) };
        match self.all().find(|old| old.is_of(rule, terms)) {
            Some(old) => Ok(Some(Arc::clone(old))),
            None => {
                let by_priority = policy.priorities.is_some();
                LiveLimit::new(rule, terms, by_priority, now).map(|new| Some(Arc::new(new)))
            }
        }
    }

    /// The limit of a rule's place, if it follows load.
    pub(in crate::gate) fn get(&self, place: usize) -> Option<&Arc<LiveLimit>> {
        self.limits.get(place)?.as_ref()
    }

    fn each(&self) -> impl Iterator<Item = &Arc<LiveLimit>> {
        self.limits.iter().flatten()
    }

    /// Those in force, then those that are gone.
    fn all(&self) -> impl Iterator<Item = &Arc<LiveLimit>> {
        self.each().chain(&self.removed)
    }
}

/// Limits that are not in force yet.
pub(in crate::gate) struct NextLimits {
    limits: LiveLimits,
}

impl NextLimits {
    /// Gives limits that stay the bounds and controllers of their policy.
    pub(in crate::gate) fn put_in_force(self, policy: &Policy, now: Timestamp) -> LiveLimits {
        for (rule, live) in policy.rules.iter().zip(&self.limits.limits) {
            if let (Some(live), Some(terms)) = (live, &rule.adaptive) {
                live.change(rule, terms, policy.priorities.is_some(), now);
            }
        }
        self.limits
    }
}
