//! The limits in force and their usage.

use serde::Serialize;

use super::Gate;
use super::adaptive::AdaptiveExplanation;
use crate::Mode;
use crate::policy::Rule;
use crate::store::{Store, Usage};

/// A limit of the policy in force, and its usage.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LimitSummary {
    /// The limit's name.
    pub name: String,
    /// How much, over how long; `50 concurrent` if the limit is on concurrency; the lowest and the
    /// highest if it follows load; `set by each call` if the quota comes with the call.
    pub quota: String,
    /// How the quota is spent; `concurrency` if permits are held; `share` if a share of all requests
    /// is let through.
    pub algorithm: &'static str,
    /// What is counted apart.
    pub per: String,
    /// Whether it refuses.
    pub mode: Mode,
    /// True if no request meets it, only checks that name it.
    pub by_name: bool,
    /// How many tiers have a quota of their own here.
    pub tiers: usize,
    /// Callers currently below their full quota, or who hold permits; `None` if only a store
    /// elsewhere knows.
    pub callers: Option<u64>,
    /// The maximum number of such callers.
    pub capacity: usize,
    /// Such callers evicted for want of room: if this grows, raise the capacity. `None` if there
    /// is no such table.
    pub evictions: Option<u64>,
    /// Permits held now; absent if the limit is not on concurrency, or only a store elsewhere
    /// knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<u64>,
    /// Permits that expired before they were released; absent like `held`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expired: Option<u64>,
    /// Where it is, and why; absent if it does not follow load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive: Option<AdaptiveExplanation>,
}

impl<S: Store> Gate<S> {
    /// Every limit, in the order of the policy. Visits every caller: for people.
    pub fn limits(&self) -> Vec<LimitSummary> {
        // A new policy waits for this rather than for whoever holds the old one.
        let _changing = self.lock();
        let active = self.active();
        let rules = active.policy.rules.iter().enumerate();
        let summary = |(place, rule): (usize, &Rule)| LimitSummary {
            adaptive: active.adaptive_state(place).as_ref().map(AdaptiveExplanation::from),
            ..rule.summary(self.usage_of(&active, place))
        };
        rules.map(summary).collect()
    }
}

impl Rule {
    fn summary(&self, usage: Option<Usage>) -> LimitSummary {
        LimitSummary {
            name: self.name.to_string(),
            quota: match self.spec.is_by_call {
                true => "set by each call".to_owned(),
                false => self.amount(&self.spec.quota),
            },
            algorithm: match (&self.adaptive, self.is_hold) {
                (Some(adaptive), true) => adaptive.kind(),
                (None, true) => "concurrency",
                (_, false) => self.spec.algorithm.name(),
            },
            per: self.spec.per.clone(),
            mode: self.mode,
            by_name: self.is_by_name,
            tiers: self.spec.tiers.len(),
            callers: usage.map(|usage| usage.callers),
            capacity: self.spec.capacity,
            evictions: usage.map(|usage| usage.evictions),
            held: usage.filter(|_| self.is_hold).map(|usage| usage.held),
            expired: usage.filter(|_| self.is_hold).map(|usage| usage.expired),
            adaptive: None,
        }
    }
}
