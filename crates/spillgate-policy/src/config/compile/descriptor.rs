//! Limits for descriptors in place of requests.

use std::collections::BTreeMap;

use spillgate::AlgorithmKind;

use super::Compiler;
use crate::config::spec::{At, Cost, Limit, Tier};
use crate::envoy::{MOST_ENTRIES, Pattern, Scope, ValuePattern};
use crate::policy::part::{Part, Per};
use crate::suggest::hint;

type Entries = BTreeMap<String, At<String>>;

impl Compiler<'_> {
    /// Which descriptors a limit is for, if it is for any.
    pub(super) fn scope(&mut self, place: &str, limit: &Limit) -> Option<Scope> {
        let entries = limit.matches.descriptor.as_ref();
        let Some(domain) = &limit.matches.domain else {
            if let Some(at) = entries {
                self.report(
                    at,
                    format!(
                        "{place}: a descriptor is looked for in a domain; add domain = \"edge\" \
                         to `match`"
                    ),
                );
            }
            return None;
        };
        if domain.value.is_empty() {
            self.report(domain, format!("{place}: a domain is at least one character"));
        }
        let pattern = match entries {
            None => Pattern::Any,
            Some(entries) => Pattern::Entries(self.entries(place, entries)),
        };
        Some(Scope::new(&domain.value, pattern))
    }

    fn entries(&mut self, place: &str, written: &At<Entries>) -> Box<[(Box<str>, ValuePattern)]> {
        let count = written.value.len();
        if !(1..=MOST_ENTRIES).contains(&count) {
            self.report(
                written,
                format!(
                    "{place}: the descriptor names {count} entries; name 1 to {MOST_ENTRIES}, or \
                     leave it out for every descriptor of the domain"
                ),
            );
        }
        for (key, at) in &written.value {
            if key.is_empty() {
                self.report(at, format!("{place}: the key of an entry is at least one character"));
            }
        }
        let pattern =
            |(key, at): (&String, &At<String>)| (key.as_str().into(), ValuePattern::of(&at.value));
        written.value.iter().map(pattern).collect()
    }

    /// Reports what means nothing where there is no request.
    pub(super) fn check_scope(
        &mut self,
        place: &str,
        limit: &Limit,
        tiers: &BTreeMap<String, Tier>,
    ) {
        let matches = &limit.matches;
        let conditions =
            [("path", &matches.path), ("method", &matches.method), ("host", &matches.host)];
        let conditions = conditions.into_iter().flat_map(|(key, all)| Some((key, all.first()?)));
        let header = matches.header.values().next().map(|at| ("header", at));
        for (key, at) in conditions.chain(header) {
            self.report(
                at,
                format!(
                    "{place}: a limit with a `domain` is for descriptors, which have no {key}; \
                     name an entry of the descriptor, or make two limits"
                ),
            );
        }
        let no_response = "a proxy that asks about a descriptor does not tell of the response";
        if let Some(settle) = &limit.settle {
            let at = settle.status.first().or(settle.header.as_ref()).cloned().unwrap_or_default();
            self.report(&at, format!("{place}: it has no `settle`, since {no_response}"));
        }
        if let Some(Cost::Header { name, .. }) = &limit.cost {
            let why = "a descriptor has no headers";
            self.report(name, format!("{place}: the cost is a number, such as 5, since {why}"));
        }
        if let Some(Cost::Closure(_)) = &limit.cost {
            let why = "there is no request that a closure could be asked about";
            self.report(&limit.name, format!("{place}: the cost is a number, since {why}"));
        }
        for (name, at) in tiers
            .iter()
            .filter_map(|(name, tier)| Some((name, tier.quotas.get(&limit.name.value)?)))
        {
            let hint = "use an override, or a limit of its own";
            self.report(
                at,
                format!("tier {name:?}: {place} is for descriptors, which are in no tier; {hint}"),
            );
        }
    }

    /// Refuses to space out what nobody can hold back.
    pub(super) fn check_shaper(&mut self, place: &str, limit: &Limit, algorithm: AlgorithmKind) {
        if let (AlgorithmKind::LeakyShaper, Some(at)) = (algorithm, &limit.algorithm) {
            self.report(
                at,
                format!(
                    "{place}: a proxy that asks about a descriptor cannot be told to wait; write \
                     \"leaky-bucket\" for \"leaky-shaper\""
                ),
            );
        }
    }

    /// What a limit for descriptors is counted by.
    pub(super) fn descriptor_per(&mut self, place: &str, limit: &Limit, scope: &Scope) -> Per {
        let Some(written) = &limit.per else { return open_parts(&scope.pattern) };
        let mut parts = Per::new();
        for at in written {
            let stands_alone = at.value == "global" || at.value == "descriptor";
            if stands_alone && written.len() > 1 {
                self.report(at, format!("{place}, per: {:?} stands alone", at.value));
            }
            let part = descriptor_part(&at.value, &scope.pattern);
            let part = part.map_err(|why| format!("{place}, per: {why}"));
            let Some(part) = self.take(at, part).flatten() else { continue };
            if parts.contains(&part) {
                self.report(at, format!("{place}, per: {:?} is there twice", at.value));
                continue;
            }
            parts.push(part);
        }
        parts
    }
}

/// Everything that a pattern leaves open.
fn open_parts(pattern: &Pattern) -> Per {
    match pattern {
        Pattern::Entries(entries) => entries
            .iter()
            .filter(|(_, value)| value.exact().is_none())
            .map(|(key, _)| Part::Entry(key.clone()))
            .collect(),
        Pattern::Any | Pattern::Node => Per::from_iter([Part::Descriptor]),
    }
}

/// A part as the file writes it; none for `global`.
fn descriptor_part(text: &str, pattern: &Pattern) -> Result<Option<Part>, String> {
    const KNOWN: [&str; 3] = ["descriptor:KEY", "descriptor", "global"];
    match text.split_once(':') {
        None if text == "global" => Ok(None),
        None if text == "descriptor" => Ok(Some(Part::Descriptor)),
        Some(("descriptor", key)) if !key.is_empty() => match pattern {
            Pattern::Entries(entries) if entries.iter().all(|(known, _)| **known != *key) => {
                let hint = hint(key, entries.iter().map(|(known, _)| &**known));
                Err(format!("the descriptor has no entry {key:?}{hint}"))
            }
            _ => Ok(Some(Part::Entry(key.into()))),
        },
        _ => Err(format!("{text:?} is not told of a descriptor{}", hint(text, KNOWN))),
    }
}
