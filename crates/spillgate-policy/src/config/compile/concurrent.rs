//! Limits on how much is in progress at once.

use std::time::Duration;

use spillgate::{Quota, Start, Timestamp};

use super::Compiler;
use super::duration::Durations;
use crate::config::spec::{Amount, At, Cost, Limit, Override};
use crate::policy::rule::Rule;
use crate::store::HoldSpec;

/// The most permits that a limit can have.
pub(crate) const MOST_PERMITS: u64 = 1_000_000;

/// How long permits live without a sign of life of their holder, if the limit does not say.
const TTL: Duration = Duration::from_secs(30);

const TTLS: Durations = Durations {
    range: Duration::from_secs(1)..=Duration::from_secs(24 * 60 * 60),
    text: "1s to 1d",
};

impl Compiler<'_> {
    /// How permits are held, if the limit is on concurrency. What would be said of a rate means
    /// nothing then.
    pub(super) fn hold(&mut self, place: &str, limit: &Limit) -> Option<HoldSpec> {
        if limit.adaptive.is_some() {
            // The store has nothing to count for it: no words, as if it were of permits.
            return Some(HoldSpec::new(TTL));
        }
        let concurrent = limit.concurrent.as_ref()?;
        let at = &concurrent.limit;
        if limit.quota.is_some() {
            let both = "has both `quota` and `concurrent`; write two limits";
            self.report(at, format!("{place} {both}"));
        }
        let dynamic_cost = matches!(limit.cost, Some(Cost::Header { .. } | Cost::Closure(_)));
        let is_deny = |at: &At<String>| at.value == "deny";
        let is_strict = |at: &At<String>| at.value != "leased";
        let meaningless = [
            ("algorithm", limit.algorithm.is_some(), "it counts what is in progress"),
            ("start", limit.start.is_some(), "nothing is in progress at first"),
            ("max-debt", limit.max_debt.is_some(), "permits are not owed"),
            ("settle", limit.settle.is_some(), "permits return when the response ends"),
            ("cost", dynamic_cost, "it takes the same number of permits for every request"),
            ("match.domain", limit.matches.domain.is_some(), "nobody says when a call ends"),
            ("match.descriptor", limit.matches.descriptor.is_some(), "it is for requests"),
        ];
        for (key, _, why) in meaningless.into_iter().filter(|(_, is_there, _)| *is_there) {
            let message = format!("{place}: a limit with `concurrent` has no such `{key}`");
            self.report(at, format!("{message}, since {why}; remove one"));
        }
        if let Some(at) = limit.when_full.as_ref().filter(|at| !is_deny(at)) {
            let why = "permits in use are never evicted; write \"deny\", or leave it out";
            self.report(at, format!("{place}, when-full: {why}"));
        }
        if let Some(at) = limit.sharing.as_ref().filter(|at| !is_strict(at)) {
            let why = "permits are shared exactly; write \"strict\", or leave it out";
            self.report(at, format!("{place}, sharing: {why}"));
        }
        if let Some(Cost::Constant(cost)) = &limit.cost {
            if cost.value > at.value {
                let why = format!("the limit has {} permits, so it denies every request", at.value);
                let message = format!("{place}: cost is {}, and {why}; write less", cost.value);
                self.report(cost, message);
            }
        }
        let ttl = self.duration(place, "ttl", concurrent.ttl.as_ref(), TTL, &TTLS);
        Some(HoldSpec::new(ttl))
    }

    /// So many permits, as a quota.
    pub(super) fn permits(&mut self, place: &str, at: &At<u64>) -> Option<Quota> {
        if !(1..=MOST_PERMITS).contains(&at.value) {
            let message = format!("{place}, concurrent: {} is out of range", at.value);
            self.report(at, format!("{message}; use 1 to {MOST_PERMITS}"));
            return None;
        }
        Quota::once(at.value).build().ok()
    }

    /// What every caller without a tier or an override has.
    pub(super) fn base_quota(
        &mut self,
        place: &str,
        limit: &Limit,
        algorithm: spillgate::AlgorithmKind,
        start: Start,
    ) -> Option<Quota> {
        if limit.adaptive.is_some() {
            return Quota::once(1).build().ok();
        }
        match (&limit.concurrent, &limit.quota) {
            (Some(concurrent), _) => self.permits(place, &concurrent.limit),
            (None, Some(at)) => self.quota(place, at, algorithm, start),
            (None, None) => {
                // A file that says neither was reported when it was read.
                if !self.is_partial {
                    let message = format!(
                        "{place} has neither `quota` nor `concurrent` nor `adaptive`; add one"
                    );
                    self.report(&limit.name, message);
                }
                None
            }
        }
    }

    /// What a tier has under a limit.
    pub(super) fn tier_quota(
        &mut self,
        place: &str,
        at: &At<Amount>,
        limit: &Limit,
        algorithm: spillgate::AlgorithmKind,
        start: Start,
    ) -> Option<Quota> {
        if limit.adaptive.is_some() {
            let why = "the limit follows load, and is the same for all tiers";
            self.report(at, format!("{place}: {why}; remove it, or give the tier a priority"));
            return None;
        }
        match (&at.value, &limit.concurrent) {
            (Amount::Quota(quota), None) => {
                let at = At { value: quota.clone(), span: at.span.clone() };
                self.quota(place, &at, algorithm, start)
            }
            (Amount::Permits(permits), Some(_)) => {
                self.permits(place, &At { value: *permits, span: at.span.clone() })
            }
            (Amount::Quota(_), Some(_)) => {
                let right = "write how many may be in progress at once, such as 50";
                self.report(at, format!("{place}: the limit is on concurrency; {right}"));
                None
            }
            (Amount::Permits(_), None) => {
                let right = "write a quota, such as \"10/s burst 20\"";
                self.report(at, format!("{place}: a number is not a quota; {right}"));
                None
            }
        }
    }

    /// What a single caller has under a limit.
    pub(super) fn override_quota(
        &mut self,
        place: &str,
        written: &Override,
        rule: &Rule,
    ) -> Option<Quota> {
        if rule.adaptive.is_some() {
            // Reported with the other keys that mean nothing there.
            return None;
        }
        match (&written.quota, &written.concurrent, rule.is_hold) {
            (Some(at), None, false) => self.quota(place, at, rule.spec.algorithm, rule.spec.start),
            (None, Some(at), true) => self.permits(place, at),
            (_, _, true) => {
                let right = "write `concurrent` alone, such as concurrent = 50";
                self.report(&written.at, format!("{place}: the limit is on concurrency; {right}"));
                None
            }
            (_, Some(at), false) => {
                let right = "write `quota` alone, such as quota = \"10/s burst 20\"";
                self.report(at, format!("{place}: the limit is not on concurrency; {right}"));
                None
            }
            // Reported when it was read.
            (None, None, false) => None,
        }
    }
}

impl Rule {
    /// Refuses a quota that the limit cannot count.
    pub(crate) fn counted(&self, quota: &Quota) -> Result<(), String> {
        if self.adaptive.is_some() {
            return Err("it follows load, and is the same for all callers".to_owned());
        }
        if self.is_hold {
            return match quota.period() {
                None if quota.burst() <= MOST_PERMITS => Ok(()),
                _ => Err(format!(
                    "it is on concurrency, and cannot count {:?}; write how many may be in \
                     progress at once as \"burst 50\", at most {MOST_PERMITS}",
                    quota.to_string()
                )),
            };
        }
        let counted = self.spec.algorithm.with_quota(quota, self.spec.start, Timestamp::ZERO);
        counted.map(drop).map_err(|why| why.to_string())
    }
}
