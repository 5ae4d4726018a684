//! What a new policy changed.

use std::fmt;

use serde::Serialize;

use crate::policy::{Cost, Rule};
use crate::{ListKind, Policy, Quota, Terms};

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
}

/// A key of a limit that has another value than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LimitChange {
    /// The limit's name.
    pub limit: String,
    /// The key, as the policy file has it: `quota`, `mode`, `tier.gold`.
    pub key: String,
    /// The value before; empty if it is not a short text.
    pub from: String,
    /// The value now; empty if it is not a short text.
    pub to: String,
}

/// How many entries a list gained and lost. Entries may be secrets, so they are counted only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
}

impl Changes {
    /// True if limits and lists are as before.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn between(old: &Policy, new: &Policy) -> Self {
        let mut changes = Self::default();
        for rule in &new.rules {
            let name = || rule.name.to_string();
            let Some(place) = old.rule(&rule.name) else {
                changes.added.push(name());
                continue;
            };
            let before = &old.rules[place];
            if !rule.counts_like(before) {
                changes.restarted.push(name());
            }
            changes.changed.extend(limit_changes(before, rule));
        }
        let removed = old.limits().filter(|name| new.rule(name).is_none());
        changes.removed.extend(removed.map(str::to_owned));
        changes.lists.extend(ListKind::BOTH.into_iter().filter_map(|list| {
            let (before, now) = (old.lists.list(list), new.lists.list(list));
            let added = now.entries().filter(|entry| !before.has(entry)).count();
            let removed = before.entries().filter(|entry| !now.has(entry)).count();
            let changed = now.terms_that_differ(before);
            let is_any = added + removed + changed > 0;
            is_any.then_some(ListChange { list, added, removed, changed })
        }));
        changes
    }
}

fn limit_changes(old: &Rule, new: &Rule) -> Vec<LimitChange> {
    let word = |value: &dyn fmt::Debug| format!("{value:?}").to_lowercase();
    let values = |rule: &Rule| {
        let spec = &rule.spec;
        [
            ("quota", quota(rule)),
            ("adaptive", adaptive(rule)),
            ("ttl", ttl(rule)),
            ("algorithm", spec.algorithm.name().to_owned()),
            ("per", spec.per.clone()),
            ("mode", word(&rule.mode)),
            ("by-name", rule.is_by_name.to_string()),
            ("start", word(&spec.start)),
            ("capacity", spec.capacity.to_string()),
            ("when-full", word(&spec.when_full)),
            ("max-debt", spec.max_debt.map_or("default".to_owned(), |debt| debt.to_string())),
            ("sharing", word(&spec.sharing)),
            ("outage", word(&spec.outage)),
            ("cost", cost(&rule.cost)),
        ]
    };
    let change = |key: &str, from: String, to: String| LimitChange {
        limit: new.name.to_string(),
        key: key.to_owned(),
        from,
        to,
    };
    let mut changes: Vec<_> = values(old)
        .into_iter()
        .zip(values(new))
        .filter(|(old, new)| old != new)
        .map(|((key, from), (_, to))| change(key, from, to))
        .collect();
    let tier_quota = |rule: &Rule, tier: &str| {
        let found = rule.spec.tiers.iter().find(|(name, _)| name == tier);
        found.map_or("none".to_owned(), |(_, quota)| rule.amount(quota))
    };
    let both = old.spec.tiers.iter().chain(&new.spec.tiers);
    let mut tiers: Vec<_> = both.map(|(name, _)| name.as_str()).collect();
    tiers.sort_unstable();
    tiers.dedup();
    changes.extend(tiers.into_iter().filter_map(|tier| {
        let (from, to) = (tier_quota(old, tier), tier_quota(new, tier));
        (from != to).then(|| change(&format!("tier.{tier}"), from, to))
    }));
    let others = [
        ("match", format!("{:?}", old.matches) != format!("{:?}", new.matches)),
        ("settle", format!("{:?}", old.settle) != format!("{:?}", new.settle)),
        ("ban", ban(old) != ban(new)),
        ("override", !overrides(old).eq(overrides(new))),
    ];
    let others = others.into_iter().filter(|(_, differs)| *differs);
    changes.extend(others.map(|(key, _)| change(key, String::new(), String::new())));
    changes
}

fn quota(rule: &Rule) -> String {
    match rule.adaptive {
        Some(_) => "adaptive".to_owned(),
        None => rule.amount(&rule.spec.quota),
    }
}

fn adaptive(rule: &Rule) -> String {
    rule.adaptive.as_ref().map_or("none".to_owned(), ToString::to_string)
}

fn ttl(rule: &Rule) -> String {
    let hold = rule.spec.hold.filter(|_| rule.adaptive.is_none());
    hold.map_or("none".to_owned(), |hold| format!("{:?}", hold.ttl))
}

fn overrides(rule: &Rule) -> impl Iterator<Item = (&[u8], &Quota, Terms)> {
    rule.spec.overrides.iter().map(|own| (own.key.as_bytes(), &own.quota, own.terms()))
}

fn ban(rule: &Rule) -> Option<String> {
    rule.ban.as_ref().map(|ban| ban.to_text())
}

fn cost(cost: &Cost) -> String {
    match cost {
        Cost::Constant(cost) => cost.to_string(),
        Cost::Header(name, default) => format!("header {name}, default {default}"),
        Cost::Closure(_) => "closure".to_owned(),
    }
}

/// `api: 3/min → 5/min`, `api: mode enforce → shadow`, `api: match`.
impl fmt::Display for LimitChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, key, from, to } = self;
        match key.as_str() {
            "quota" => write!(f, "{limit}: {from} → {to}"),
            _ if from.is_empty() && to.is_empty() => write!(f, "{limit}: {key}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn between(old: &str, new: &str) -> Changes {
        Changes::between(&Policy::from_toml(old).unwrap(), &Policy::from_toml(new).unwrap())
    }

    #[test]
    fn every_change_is_named_with_old_and_new_value() {
        let old = "block = ['10.0.0.0/8', 'key:secret']\n\
                   [[limit]]\nname = 'api'\nquota = '3/min'\n\
                   [[limit]]\nname = 'gone'\nquota = '1/s'\n";
        let new = "block = ['10.0.0.0/8', '192.0.2.1']\n\
                   [[limit]]\nname = 'api'\nquota = '5/min'\nmode = 'shadow'\ncapacity = 7\n\
                   match = { path = '/api' }\n\
                   [tier.gold]\napi = '9/min'\ncallers = ['ip:192.0.2.7']\n\
                   [[limit]]\nname = 'new'\nquota = '1/s'\n";
        let changes = between(old, new);
        let shown: Vec<_> = changes.changed.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "api: 3/min → 5/min",
                "api: mode enforce → shadow",
                "api: capacity 100000 → 7",
                "api: tier.gold none → 9/min",
                "api: match",
            ]
        );
        assert_eq!(
            (changes.added.as_slice(), changes.removed.as_slice()),
            (&["new".to_owned()][..], &["gone".to_owned()][..])
        );
        assert_eq!(changes.lists[0].to_string(), "block: 1 added, 1 removed");
        assert!(
            !changes.is_empty() && between(old, old).is_empty() && between(new, new).is_empty()
        );
    }

    #[test]
    fn changes_of_a_concurrency_limit_are_named() {
        let limit = |rest: &str| format!("[[limit]]\nname = 'uploads'\n{rest}\n");
        let shown = |old: &str, new: &str| -> Vec<_> {
            between(&limit(old), &limit(new)).changed.iter().map(ToString::to_string).collect()
        };
        let (five, eight) = ("concurrent = 5", "concurrent = { limit = 8, ttl = '1min' }");
        assert_eq!(
            shown(five, eight),
            ["uploads: 5 concurrent → 8 concurrent", "uploads: ttl 30s → 60s"]
        );
        let changes = between(&limit(five), &limit("quota = '5/s'"));
        assert_eq!(changes.restarted, ["uploads"]);
        assert_eq!(changes.changed[0].to_string(), "uploads: 5 concurrent → 5/s");
    }

    #[test]
    fn a_limit_that_counts_something_else_is_restarted() {
        let limit =
            |per: &str| format!("[[limit]]\nname = 'api'\nquota = '3/min'\nper = '{per}'\n");
        let changes = between(&limit("ip"), &limit("global"));
        assert_eq!(changes.restarted, ["api"]);
        assert_eq!(changes.changed[0].to_string(), "api: per ip → global");
    }
}
