//! What a new policy changes, and for whom: the one comparison that reloads, `PUT /v1/policy` and
//! `spillgate diff` report.
//!
//! Everything that is compiled from a file is taken apart field by field, so that a new one does
//! not compile until somebody has said here what it changes.

mod domain;
mod effect;
mod entries;
mod identity;
mod limit;
mod lists;
mod matches;
mod priority;
#[cfg(test)]
mod tests;
mod value;
mod who;

use std::fmt;

use serde::Serialize;

use self::value::{Difference, Value};
use crate::policy::{Part, Rule};
use crate::{ListKind, Mode, Policy};

pub use self::effect::Effect;
pub use self::entries::{EntryChange, EntryChangeKind};

/// What a new policy changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Changes {
    /// New limits.
    pub added: Vec<String>,
    /// Limits that are gone. What was spent under them is kept for an hour, in case they come
    /// back.
    pub removed: Vec<String>,
    /// Limits whose algorithm or key changed: every caller starts afresh.
    pub restarted: Vec<String>,
    /// Keys of limits that are in both policies.
    pub changed: Vec<LimitChange>,
    /// Lists whose entries changed.
    pub lists: Vec<ListChange>,
    /// Keys outside limits and lists: `identity.trusted-proxies`, `tier.gold.callers`.
    pub others: Vec<PolicyChange>,
    /// If `identity` changed, the limits that count callers. Whoever has another name now starts
    /// afresh under them.
    pub by_identity: Vec<String>,
    /// Whom the limits that are named above are for.
    pub affected: Vec<AffectedLimit>,
}

/// A key of a limit that has another value than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LimitChange {
    /// The limit's name.
    pub limit: String,
    /// The key, as the policy file has it: `quota`, `mode`, `match.path`, `tier.gold`.
    pub key: String,
    /// The value before; secrets as a fingerprint.
    pub from: String,
    /// The value now.
    pub to: String,
    /// What that means for callers.
    pub effect: Effect,
    /// Who is affected, if these are not all whom the limit is for: `callers in tier gold`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
}

/// How many entries a list gained and lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ListChange {
    /// Which list.
    pub list: ListKind,
    /// New entries.
    pub added: usize,
    /// Entries that are gone.
    pub removed: usize,
    /// Entries with another expiry or comment.
    pub changed: usize,
    /// The first hundred of them, secrets as a fingerprint.
    pub entries: Vec<EntryChange>,
}

/// A key outside limits and lists that has another value than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PolicyChange {
    /// The key, as the policy file has it: `identity.order`, `path-spelling.ignore-case`.
    pub key: String,
    /// The value before.
    pub from: String,
    /// The value now.
    pub to: String,
    /// If it is a list, the first hundred entries that differ, secrets as a fingerprint.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<EntryChange>,
}

/// A limit that changed, and whom it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct AffectedLimit {
    /// The limit's name.
    pub limit: String,
    /// Whom it is for: `every caller of POST /login`.
    pub who: String,
    /// How much, over how long; the old one if the limit is gone.
    pub quota: String,
    /// Whether it refuses.
    pub mode: Mode,
}

impl Changes {
    /// What differs between two policies. Closures are not compared: those of another policy are
    /// taken for the same.
    #[must_use]
    pub fn between(old: &Policy, new: &Policy) -> Self {
        let mut changes = Self::default();
        for rule in new.rules.iter().filter(|rule| is_configured(rule)) {
            let Some(place) = old.rule(&rule.name) else {
                changes.added.push(rule.name.to_string());
                changes.affected.push(rule.affected());
                continue;
            };
            let before = &old.rules[place];
            let changed = limit::changes(before, rule);
            let is_restarted = !rule.counts_like(before);
            if is_restarted {
                changes.restarted.push(rule.name.to_string());
            }
            if is_restarted || !changed.is_empty() {
                changes.affected.push(rule.affected());
            }
            changes.changed.extend(changed);
        }
        let gone = |rule: &&Rule| is_configured(rule) && new.rule(&rule.name).is_none();
        for rule in old.rules.iter().filter(gone) {
            changes.removed.push(rule.name.to_string());
            changes.affected.push(rule.affected());
        }
        changes.lists.extend(lists::changes(&old.lists, &new.lists));
        changes.others = others(old, new);
        if changes.others.iter().any(PolicyChange::is_of_identity) {
            let counts_callers =
                |rule: &&Rule| is_configured(rule) && rule.per.iter().any(Part::is_identity);
            let both = new.rules.iter().filter(|rule| old.rule(&rule.name).is_some());
            let limits = both.filter(counts_callers).map(|rule| rule.name.to_string());
            changes.by_identity = limits.collect();
        }
        changes
    }

    /// True if nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What differs outside limits and lists.
fn others(old: &Policy, new: &Policy) -> Vec<PolicyChange> {
    let values = |policy: &Policy| -> Vec<Value> {
        let Policy {
            identifier,
            descriptors,
            spelling,
            tiers,
            priorities,
            // Compared as limits and as lists.
            rules: _,
            lists: _,
            // Made from these.
            places: _,
            routes: _,
            throttle: _,
            has_hosts: _,
            needs_host: _,
            has_paths: _,
            is_plain: _,
            has_holds: _,
            has_adaptive: _,
            has_more_than_rates: _,
        } = policy;
        let mut values = identity::values(identifier);
        values.extend(identity::spelling_values(spelling));
        values.extend(identity::tier_values(tiers));
        values.extend(priority::values(priorities.as_deref(), &tiers.names));
        values.extend(domain::values(descriptors));
        values
    };
    let change = |difference: Difference<'_>| {
        let (from, to) = difference.sides();
        PolicyChange {
            key: to.key.to_string(),
            from: from.shown.clone(),
            to: to.shown.clone(),
            entries: entries::between(&from.entries, &to.entries),
        }
    };
    value::differing(&values(old), &values(new)).map(change).collect()
}

/// False for the built-in limits, which take their quota from each call.
fn is_configured(rule: &Rule) -> bool {
    !rule.spec.is_by_call
}

impl Rule {
    fn affected(&self) -> AffectedLimit {
        AffectedLimit {
            limit: self.name.to_string(),
            who: who::of(self),
            quota: limit::quota(self),
            mode: self.mode,
        }
    }
}

impl PolicyChange {
    /// True if callers may be taken for others than before.
    #[must_use]
    pub fn is_of_identity(&self) -> bool {
        self.key.starts_with("identity.")
    }
}

/// `api: 3/min → 5/min`, `api: mode enforce → shadow`, `api: override ip=192.0.2.7 none → 5/min`.
impl fmt::Display for LimitChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, key, from, to, who, .. } = self;
        match (key.as_str(), who) {
            ("quota", _) => write!(f, "{limit}: {from} → {to}"),
            ("override", Some(who)) => write!(f, "{limit}: {key} {who} {from} → {to}"),
            _ => write!(f, "{limit}: {key} {from} → {to}"),
        }
    }
}

/// `block: 3 added, 1 removed`, and perhaps `, 2 changed`.
impl fmt::Display for ListChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} added, {} removed", self.list.name(), self.added, self.removed)?;
        if self.changed > 0 {
            write!(f, ", {} changed", self.changed)?;
        }
        Ok(())
    }
}

/// `identity.order: api-key, ip → ip`.
impl fmt::Display for PolicyChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} → {}", self.key, self.from, self.to)
    }
}
