//! The keys of a limit.

use std::fmt;

use spillgate::{Start, WhenFull};

use super::effect::{Effect, Measure};
use super::value::{Difference, NONE, Value, differing};
use super::{LimitChange, matches};
use crate::config::spec::{NodeMode, OUTAGE, SHARING, START, WHEN_FULL};
use crate::envoy::Scope;
use crate::key::Described;
use crate::policy::ban::{BanRule, BanTerms};
use crate::policy::rule::{Cost, Rule};
use crate::policy::settle::{Settle, Statuses};
use crate::store::{LimitSpec, Outage, OverrideSpec};
use crate::{Mode, Quota, rfc3339};

/// How many overrides of a limit are listed: there can be thousands.
const MOST_OVERRIDES: usize = 100;

/// The keys of a limit that have another value.
pub(super) fn changes(old: &Rule, new: &Rule) -> Vec<LimitChange> {
    // Of requests and of descriptors, neither is more than the other.
    let is_for_alike = old.scope.is_some() == new.scope.is_some();
    let change = |difference: Difference<'_>| {
        let (from, to) = difference.sides();
        LimitChange {
            limit: new.name.to_string(),
            key: to.key.to_string(),
            from: from.shown.clone(),
            to: to.shown.clone(),
            effect: match (&from.measure, &to.measure, from.who.is_some()) {
                _ if !is_for_alike => Effect::Different,
                // Without a quota of their own, callers have that of all.
                (Measure::Nothing, to, true) => base(old).effect(to),
                (from, Measure::Nothing, true) => from.effect(&base(new)),
                (from, to, _) => from.effect(to),
            },
            who: to.who.clone(),
        }
    };
    let (before, now) = (values(old), values(new));
    let mut changes: Vec<_> = differing(&before, &now).map(change).collect();
    if old.ban.is_none() || new.ban.is_none() {
        // A ban that is new or gone is one change.
        changes.retain(|change| !change.key.starts_with("ban."));
    }
    let (before, now) = (override_values(old), override_values(new));
    let overrides: Vec<_> = differing(&before, &now).map(change).collect();
    let more = overrides.len().saturating_sub(MOST_OVERRIDES);
    changes.extend(overrides.into_iter().take(MOST_OVERRIDES));
    if more > 0 {
        changes.push(LimitChange {
            limit: new.name.to_string(),
            key: "override".to_owned(),
            from: "others".to_owned(),
            to: "others".to_owned(),
            effect: Effect::Different,
            who: Some(format!("{more} more callers")),
        });
    }
    changes
}

/// Every key of a limit but its overrides.
fn values(rule: &Rule) -> Vec<Value> {
    let Rule {
        per: _,
        cost,
        mode: _,
        is_by_name,
        adaptive,
        settle,
        ban,
        scope,
        matches,
        spec,
        // What tells limits apart.
        name: _,
        // Made from the others.
        since: _,
        is_conditional: _,
        is_hold: _,
        tier_places: _,
    } = rule;
    let LimitSpec {
        per,
        algorithm,
        start,
        capacity,
        when_full,
        max_debt,
        sharing,
        outage,
        hold,
        tiers,
        name: _,
        quota: _,
        // Of built-in limits, which are not compared.
        is_by_call: _,
        // Long, so that they are compared apart.
        overrides: _,
    } = &**spec;
    let adaptive_text = adaptive.as_ref().map_or(NONE.to_owned(), ToString::to_string);
    let ttl = hold.filter(|_| adaptive.is_none());
    let per_parts = rule.per.iter().map(ToString::to_string).collect();
    let debt = max_debt.map_or("default".to_owned(), |debt| debt.to_string());
    let strict = Measure::Strictness;
    let mut values = vec![
        Value::new("quota", quota(rule)).measure(base(rule)),
        Value::new("adaptive", adaptive_text),
        Value::new("ttl", ttl.map_or(NONE.to_owned(), |hold| format!("{:?}", hold.ttl))),
        Value::new("algorithm", algorithm.name()),
        Value::new("per", per).measure(Measure::AllOf(per_parts)),
        Value::new("mode", mode(rule)).measure(mode_measure(rule)),
        Value::new("by-name", is_by_name.to_string()).measure(strict(u64::from(!is_by_name))),
        Value::new("start", word(*start, &START)).measure(strict(match start {
            Start::Empty => 1,
            _ => 0,
        })),
        Value::new("capacity", capacity.to_string()),
        Value::new("when-full", word(*when_full, &WHEN_FULL)).measure(strict(match when_full {
            WhenFull::Deny => 2,
            WhenFull::Protect => 1,
            _ => 0,
        })),
        Value::new("max-debt", debt),
        Value::new("sharing", word(*sharing, &SHARING)),
        Value::new("outage", word(*outage, &OUTAGE)).measure(strict(match outage {
            Outage::Closed => 2,
            Outage::Local => 1,
            Outage::Open => 0,
        })),
        cost_value(cost),
        Value::new("settle", settle.as_ref().map_or(NONE.to_owned(), |it| settle_text(it))),
    ];
    values.extend(tiers.iter().map(|(tier, quota)| {
        let value = Value::new(format!("tier.{tier}"), rule.amount(quota));
        value.measure(amount(rule, quota)).who(format!("callers in tier {tier}"))
    }));
    values.extend(matches::values(matches));
    values.extend(scope.iter().flat_map(|scope| scope_values(scope)));
    values.extend(ban_values(ban.as_deref()));
    values
}

/// How much, over how long.
pub(super) fn quota(rule: &Rule) -> String {
    match (&rule.adaptive, rule.is_closed()) {
        (Some(_), _) => "adaptive".to_owned(),
        (None, true) => "nothing".to_owned(),
        (None, false) => rule.amount(&rule.spec.quota),
    }
}

/// How strict the quota is that callers without one of their own have.
fn base(rule: &Rule) -> Measure {
    match rule.is_closed() {
        true => Measure::closed(),
        false => amount(rule, &rule.spec.quota),
    }
}

fn amount(rule: &Rule, quota: &Quota) -> Measure {
    match (&rule.adaptive, rule.is_hold) {
        (Some(_), _) => Measure::Nothing,
        // Not to be compared with rates.
        (None, true) => Measure::Strictness(u64::MAX - quota.burst()),
        (None, false) => Measure::quota(quota),
    }
}

fn mode(rule: &Rule) -> &'static str {
    let node = rule.scope.as_ref().map_or(NodeMode::Enforce, |scope| scope.mode);
    match (node, rule.mode) {
        (NodeMode::Quota, _) => "quota",
        (NodeMode::ShadowQuota, _) => "shadow quota",
        (NodeMode::Shadow, _) | (_, Mode::Shadow) => "shadow",
        (NodeMode::Enforce, Mode::Enforce) => "enforce",
    }
}

/// Limits in quota mode deny together, so that no more is known of one of them.
fn mode_measure(rule: &Rule) -> Measure {
    match mode(rule) {
        "enforce" => Measure::Strictness(1),
        "shadow" => Measure::Strictness(0),
        _ => Measure::Nothing,
    }
}

/// The word of the policy file for a value.
fn word<T: Copy + PartialEq + fmt::Debug>(value: T, words: &[(&'static str, T)]) -> String {
    let word = words.iter().find(|(_, known)| *known == value);
    word.map_or_else(|| format!("{value:?}").to_lowercase(), |(word, _)| (*word).to_owned())
}

fn cost_value(cost: &Cost) -> Value {
    match cost {
        Cost::Constant(cost) => {
            Value::new("cost", cost.to_string()).measure(Measure::Strictness(*cost))
        }
        Cost::Header(name, default) => Value::new("cost", format!("header {name}, else {default}")),
        Cost::Closure(_) => Value::new("cost", "closure"),
    }
}

fn settle_text(Settle { statuses, header, closure }: &Settle) -> String {
    let mut parts = Vec::new();
    if !statuses.is_empty() {
        parts.push(format!("stands with status {}", list(statuses)));
    }
    parts.extend(header.iter().map(|name| format!("as the header {name} says")));
    parts.extend(closure.iter().map(|_| "closure".to_owned()));
    if parts.is_empty() { "stands".to_owned() } else { parts.join(", ") }
}

fn scope_values(scope: &Scope) -> Vec<Value> {
    let Scope {
        domain,
        pattern,
        shown,
        metadata,
        // Part of the quota and of the mode.
        is_closed: _,
        mode: _,
    } = scope;
    let name = shown.as_deref().unwrap_or(NONE);
    let (metadata_text, metadata_exact) = match metadata.len() {
        0 => (NONE.to_owned(), NONE.to_owned()),
        count => (format!("{count} values"), format!("{metadata:?}")),
    };
    let mut values = vec![
        Value::new("match.domain", &**domain),
        Value::new("name", name),
        Value::new("metadata", metadata_text).exact(metadata_exact),
    ];
    values.extend(matches::descriptor_value(pattern));
    values
}

/// The keys of a ban, and whether there is one.
fn ban_values(ban: Option<&BanTerms>) -> Vec<Value> {
    let Some(ban) = ban else {
        return vec![Value::new("ban", NONE).measure(Measure::Strictness(0))];
    };
    let BanTerms {
        rule,
        on_denied,
        statuses,
        refuses_next,
        mode,
        status,
        // Part of what the limit is counted per.
        part: _,
        parts: _,
        // What has happened so far.
        counters: _,
    } = ban;
    let BanRule { strikes, window, duration, factor, max, decay, jitter } = rule;
    // Reports always count.
    let mut on = vec!["report".to_owned()];
    on.extend(on_denied.then(|| "denied".to_owned()));
    on.extend(statuses.iter().map(ToString::to_string));
    let enforces = Measure::Strictness(u64::from(*mode == Mode::Enforce));
    let whole = format!("{strikes} strikes in {window:?}");
    vec![
        Value::new("ban", whole).exact("some").measure(Measure::Strictness(1)),
        Value::new("ban.strikes", strikes.to_string())
            .measure(Measure::Strictness((u32::MAX - strikes).into())),
        Value::new("ban.window", format!("{window:?}")),
        Value::new("ban.duration", format!("{duration:?}")),
        Value::new("ban.factor", factor.to_string()),
        Value::new("ban.max", format!("{max:?}")),
        Value::new("ban.decay", format!("{decay:?}")),
        Value::new("ban.jitter", jitter.to_string()),
        Value::new("ban.on", on.join(", ")).measure(Measure::AnyOf(on.into_iter().collect())),
        Value::new("ban.refuse", if *refuses_next { "next" } else { "offence" }),
        Value::new("ban.mode", format!("{mode:?}").to_lowercase()).measure(enforces),
        Value::new("ban.status", status.as_u16().to_string()),
    ]
}

fn override_values(rule: &Rule) -> Vec<Value> {
    let value = |own: &OverrideSpec| {
        let OverrideSpec { key, quota, until, comment, values: _ } = own;
        let mut text = rule.amount(quota);
        text.extend(until.map(|until| format!(", expires {}", rfc3339::format(until))));
        text.extend(comment.iter().map(|comment| format!(", {comment:?}")));
        let who = Described::masked(key, &rule.per).to_string();
        Value::new("override", text)
            .exact(format!("{quota} {until:?} {comment:?}"))
            .measure(amount(rule, quota))
            .of_caller(key.as_bytes(), who)
    };
    rule.spec.overrides.iter().map(value).collect()
}

fn list<T: ToString>(values: &[T]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// `401`, `4xx`.
impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(status) => write!(f, "{status}"),
            Self::Hundred(hundred) => write!(f, "{hundred}xx"),
        }
    }
}
