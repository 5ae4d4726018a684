//! Quotas of single callers.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use super::Compiler;
use crate::config::spec::{Limit, NamedOverride, Override, Spec};
use crate::key::Value;
use crate::policy::identity::Identifier;
use crate::policy::part::Part;
use crate::policy::rule::Rule;
use crate::policy::tiers::Tiers;
use crate::store::OverrideSpec;
use crate::suggest::hint;
use crate::{Caller, Key};

impl Compiler<'_> {
    /// The limits with the overrides that are written apart from them.
    pub(super) fn with_overrides(&mut self, spec: &Spec) -> Vec<Limit> {
        let mut limits = spec.limits.clone();
        let named = limits.iter().enumerate().rev();
        let places: HashMap<_, _> =
            named.map(|(place, limit)| (limit.name.value.clone(), place)).collect();
        for NamedOverride { limit: name, with } in &spec.overrides {
            match places.get(&name.value) {
                Some(place) => limits[*place].overrides.push(with.clone()),
                None => {
                    let names = spec.limits.iter().map(|limit| limit.name.value.as_str());
                    let hint = hint(&name.value, names);
                    self.report(
                        name,
                        format!("override: there is no limit {:?}{hint}", name.value),
                    );
                }
            }
        }
        limits
    }

    pub(super) fn overrides(
        &mut self,
        place: &str,
        limit: &Limit,
        rule: &Rule,
        tiers: &Tiers,
        identifier: &Identifier,
    ) -> Vec<OverrideSpec> {
        let mut overrides: Vec<OverrideSpec> = Vec::new();
        let mut seen = HashSet::new();
        for (index, written) in limit.overrides.iter().enumerate() {
            let place = format!("{place}, override {}", index + 1);
            let quota = self.override_quota(&place, written, rule);
            let comment = self.comment(&place, written.terms.comment.as_ref());
            let found = self.override_key(&place, written, rule, tiers, identifier);
            let Some((key, values)) = found else { continue };
            if !seen.insert(key.bytes.clone()) {
                self.report(&written.at, format!("{place}: the same caller has one already"));
            }
            overrides.extend(quota.map(|quota| {
                let mut own = OverrideSpec::new(key, quota);
                own.until = written.terms.expires;
                (own.values, own.comment) = (values, comment);
                own
            }));
        }
        overrides
    }

    fn override_key(
        &mut self,
        place: &str,
        written: &Override,
        rule: &Rule,
        tiers: &Tiers,
        identifier: &Identifier,
    ) -> Option<(Key, Vec<String>)> {
        let names: Vec<String> = rule.per.iter().map(ToString::to_string).collect();
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let before = self.problems.len();
        for (name, at) in &written.parts {
            if !known.contains(&name.as_str()) {
                // Of a whole caller in place of a part, the rest may be a secret.
                let kind = name.split(':').next().unwrap_or_default();
                let hint = hint(kind, known.iter().copied());
                self.report(at, format!("{place}: the limit is not counted per {kind:?}{hint}"));
            }
        }
        let mut values = Vec::new();
        for name in &known {
            match written.parts.get(*name) {
                Some(at) => values.push(at),
                None => self.report(
                    &written.at,
                    format!("{place}: there is no {name:?}; say whose quota it is"),
                ),
            }
        }
        if self.problems.len() > before {
            return None;
        }
        let texts: Vec<&str> = values.iter().map(|at| at.value.as_str()).collect();
        let key = key_of(&rule.per, &texts, identifier);
        match key {
            Ok(mut key) => {
                // Whatever it owes goes back there when it has an override no more.
                key.tier = rule.tier_place(tiers.named(&rule.per, &texts, identifier));
                Some((key, canonical_values(&rule.per, &texts, identifier)))
            }
            Err((index, why)) => {
                // The value may be a secret, so it is not shown.
                self.report(values[index], format!("{place}, {}: {why}", known[index]));
                None
            }
        }
    }
}

/// The key of a limit's parts with these values, one for each; or the place of the value
/// that is wrong, and why.
pub(crate) fn key_of(
    per: &[Part],
    values: &[&str],
    identifier: &Identifier,
) -> Result<Key, (usize, String)> {
    let mut key = Key::global();
    for (index, (part, text)) in per.iter().zip(values).enumerate() {
        let is_last = index + 1 == per.len();
        let address = |text: &str| match Caller::parse(text) {
            Ok(Caller::Ip(address)) => Ok(Value::Ip(identifier.cut(address.into()))),
            _ => Err((index, "not an address; write one such as \"203.0.113.7\"".to_owned())),
        };
        let value = match part {
            Part::Key => return Ok(Key::from_bytes(text.as_bytes())),
            _ if *text == "anonymous" => Value::Absent,
            Part::Caller => match &Caller::parse(text).map_err(|why| (index, why))? {
                Caller::Ip(found) => Value::Ip(identifier.cut((*found).into())),
                caller => {
                    key.push(Value::from(caller), is_last);
                    continue;
                }
            },
            Part::Ip => address(text)?,
            Part::ApiKey => Value::ApiKey(alone(text, &["api-key", "key"], index)?),
            Part::User => Value::User(alone(text, &["user"], index)?),
            Part::Header(_) => Value::Header(text.as_bytes()),
            Part::Path(_) => Value::Path(text.as_bytes()),
            Part::Entry(_) | Part::Level(_) => Value::Entry(text.as_bytes()),
            Part::Descriptor => {
                let why = "a whole descriptor cannot be written as one text; count the limit \
                           per \"descriptor:KEY\"";
                return Err((index, why.to_owned()));
            }
        };
        key.push(value, is_last);
    }
    Ok(key)
}

/// The values of a limit's parts, written so that each caller has one text only.
pub(crate) fn canonical_values(
    per: &[Part],
    values: &[&str],
    identifier: &Identifier,
) -> Vec<String> {
    let canonical = |(part, text): (&Part, &&str)| match (part, Caller::parse(text)) {
        (Part::Caller | Part::Ip, Ok(Caller::Ip(address))) => {
            IpAddr::from(identifier.cut(address.into())).to_string()
        }
        (Part::Caller, Ok(Caller::ApiKey(_))) => {
            let (_, name) = text.split_once(':').unwrap_or_default();
            format!("api-key:{name}")
        }
        _ => (*text).to_owned(),
    };
    per.iter().zip(values).map(canonical).collect()
}

/// The value of a part that is always of one kind. With the kind before it, it would be another
/// caller, and the quota would be granted twice.
fn alone<'v>(text: &'v str, kinds: &[&str], index: usize) -> Result<&'v [u8], (usize, String)> {
    let is_kind = |(kind, _): &(&str, &str)| kinds.contains(kind);
    let why = match text.split_once(':').filter(is_kind) {
        None if text.is_empty() => "an empty text names nobody".to_owned(),
        None => return Ok(text.as_bytes()),
        Some((kind, _)) => format!("write the value alone, as in \"42\" for \"{kind}:42\""),
    };
    Err((index, why))
}
