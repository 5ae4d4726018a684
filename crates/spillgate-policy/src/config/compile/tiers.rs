//! Who is in which tier, and which limits the tiers have quotas for.

use super::Compiler;
use crate::Caller;
use crate::config::spec::{Limit, Spec, Tier};
use crate::policy::identity::Identifier;
use crate::policy::tiers::Tiers;
use crate::suggest::hint;

impl Compiler<'_> {
    pub(super) fn tiers(
        &mut self,
        spec: &Spec,
        named_otherwise: bool,
        identifier: &Identifier,
    ) -> Tiers {
        let written = &spec.tiers;
        const MOST: usize = 1_000;
        let mut tiers = Tiers::new(written.keys().cloned().collect());
        if let Some(tier) = written.values().nth(MOST) {
            let count = written.len();
            self.report(&tier.at, format!("there are {count} tiers; use at most {MOST}"));
        }
        for (place, (name, tier)) in written.iter().enumerate() {
            let mut may_call = false;
            for (index, at) in tier.callers.iter().enumerate() {
                let place_of = format!("tier {name:?}, caller {}", index + 1);
                let caller = Caller::parse(&at.value).map_err(|why| format!("{place_of}: {why}"));
                let Some(caller) = self.take(at, caller) else { continue };
                may_call |= identifier.can_be(&caller);
                let caller = identifier.as_counted(caller);
                match tiers.assign(&caller, place) {
                    Some(other) if other != place => {
                        let other = &tiers.names[other];
                        self.report(
                            at,
                            format!("{place_of} is in tier {other:?} already; list it once"),
                        );
                    }
                    _ => {}
                }
            }
            let is_named = !tier.callers.is_empty() && is_by_name(spec, tier);
            if !(may_call || is_named || named_otherwise || self.is_partial) {
                self.report(&tier.at, format!("tier {name:?}: {}", nobody(tier)));
            }
        }
        tiers
    }

    /// A tier's quota must be for a limit that there is.
    pub(super) fn check_tier_limits(&mut self, spec: &Spec) {
        let names: Vec<_> = spec.limits.iter().map(|limit| limit.name.value.as_str()).collect();
        for (tier, written) in &spec.tiers {
            for (limit, at) in &written.quotas {
                if !names.contains(&limit.as_str()) {
                    let hint = hint(limit, names.iter().copied());
                    self.report(at, format!("tier {tier:?}: there is no limit {limit:?}{hint}"));
                }
            }
        }
    }
}

/// True if the tier has a quota for a limit whose callers programs name themselves.
fn is_by_name(spec: &Spec, tier: &Tier) -> bool {
    let by_name = |limit: &&Limit| limit.by_name.as_ref().is_some_and(|at| at.value);
    spec.limits.iter().filter(by_name).any(|limit| tier.quotas.contains_key(&limit.name.value))
}

/// Why nobody can be in a tier, and what to do about it.
fn nobody(tier: &Tier) -> &'static str {
    if tier.callers.is_empty() {
        "nobody can be in it; list its callers, name a `tier-header` and `trusted-proxies` in \
         `identity`, or give the builder a `tier_of`"
    } else {
        "nobody can be in it: `identity` names none of its callers; say in `identity` where their \
         keys or users are and when they are believed, or list others"
    }
}
