//! How much requests matter.

use spillgate::adaptive::PriorityClass;

use super::Compiler;
use crate::config::spec::{At, Priorities, PriorityRule, Spec};
use crate::policy::identity::Identifier;
use crate::policy::priority::{PriorityRules, class_named};
use crate::policy::rule::Matches;
use crate::policy::tiers::Tiers;
use crate::suggest::hint;

impl Compiler<'_> {
    pub(super) fn priorities(
        &mut self,
        spec: &Spec,
        tiers: &Tiers,
        identifier: &Identifier,
    ) -> Option<PriorityRules> {
        let written = spec.priority.as_ref()?;
        let is_adaptive = spec.limits.iter().any(|limit| limit.adaptive.is_some());
        if !is_adaptive && !self.is_partial {
            let why = "no limit follows load, so nothing is ever shed by priority";
            let right = "give a limit `adaptive`, or remove [priority]";
            self.report(&written.at, format!("priority: {why}; {right}"));
        }
        let default = written.default.as_ref().and_then(|at| self.class("priority, default", at));
        let default = default.unwrap_or_default();
        let mut rules = Vec::new();
        for (index, rule) in written.rules.iter().enumerate() {
            let Some((class, matches)) = self.priority_rule(index + 1, rule, spec) else {
                continue;
            };
            let is_believed = class <= default || matches.headers.is_empty();
            if !is_believed && identifier.trusted.is_empty() && !self.is_partial {
                let why = "a header that raises the class is believed from trusted proxies only, \
                           and there are none";
                let right = "name the `trusted-proxies` in `identity`, or match by something else";
                self.report(&rule.at, format!("priority, rule {}: {why}; {right}", index + 1));
            }
            rules.push((class, matches));
        }
        Some(PriorityRules {
            default,
            header: self.priority_header(written, identifier),
            tiers: self.tier_classes(written, tiers),
            rules,
        })
    }

    fn class(&mut self, place: &str, at: &At<String>) -> Option<PriorityClass> {
        let class = class_named(at.value.as_bytes()).ok_or_else(|| {
            let hint = hint(&at.value, PriorityClass::ALL.map(PriorityClass::name));
            format!("{place}: unknown class {:?}{hint}", at.value)
        });
        self.take(at, class)
    }

    /// Anyone could call a request critical, so somebody must be trusted to say it.
    fn priority_header(
        &mut self,
        written: &Priorities,
        identifier: &Identifier,
    ) -> Option<http::HeaderName> {
        let at = written.header.as_ref()?;
        let name = self.header_name("priority, header", at);
        if identifier.trusted.is_empty() && !self.is_partial {
            let why = "it is believed from trusted proxies only, and there are none";
            let right = "name the `trusted-proxies` in `identity`, or remove it";
            self.report(at, format!("priority, header: {why}; {right}"));
        }
        name
    }

    fn tier_classes(&mut self, written: &Priorities, tiers: &Tiers) -> Vec<Option<PriorityClass>> {
        let mut classes = vec![None; tiers.names.len()];
        for (tier, at) in &written.tier {
            let class = self.class(&format!("priority, tier {tier:?}"), at);
            match tiers.place(tier.as_bytes()) {
                Some(place) => classes[place] = class,
                None => {
                    let hint = hint(tier, tiers.names.iter().map(String::as_str));
                    self.report(at, format!("priority, tier: there is no tier {tier:?}{hint}"));
                }
            }
        }
        classes
    }

    fn priority_rule(
        &mut self,
        number: usize,
        rule: &PriorityRule,
        spec: &Spec,
    ) -> Option<(PriorityClass, Matches)> {
        let place = format!("priority, rule {number}");
        let class = self.class(&place, &rule.class);
        let PriorityRule { matches, at, .. } = rule;
        let is_empty = matches.path.is_empty()
            && matches.method.is_empty()
            && matches.host.is_empty()
            && matches.header.is_empty();
        if is_empty && !self.is_partial {
            let right = "add one, such as match = { path = \"/checkout\" }, or set `default`";
            self.report(at, format!("{place} has no `match`, so it is for every request; {right}"));
        }
        Some((class?, self.matches(&place, matches, &spec.path_spelling)))
    }
}
