//! Limits that can never be the one that refuses.

use std::collections::HashMap;

use spillgate::{AlgorithmKind, Quota};

use super::Compiler;
use crate::Mode;
use crate::config::spec::Limit;
use crate::policy::part::Part;
use crate::policy::route::Pattern;
use crate::policy::rule::{Cost, Matches, Rule};

impl Compiler<'_> {
    /// Reports limits that another one always forestalls. Most likely a condition was
    /// forgotten or two numbers were mixed up.
    pub(super) fn check_overlap(&mut self, limits: &[Limit], rules: &[Option<Rule>]) {
        if self.is_partial {
            // What is missing may be what tells two limits apart.
            return;
        }
        // Limits for descriptors are left alone: which descriptors there are, only a proxy knows.
        // So are limits by name, each of which is asked alone.
        let is_for_requests = |rule: &&Rule| rule.is_for_requests();
        let candidates = Candidates::of(rules.iter().flatten().filter(is_for_requests));
        for (limit, rule) in limits.iter().zip(rules) {
            let Some(rule) = rule.as_ref().filter(is_for_requests) else { continue };
            let mut others = candidates.for_rule(rule).filter(|other| other.name != rule.name);
            let Some(other) = others.find(|other| forestalls(other, rule)) else { continue };
            self.report(
                &limit.name,
                format!(
                    "limit {:?} can never be reached: {:?} counts the same callers on at least \
                     the same requests, and {} is stricter than {}; remove one, or change what \
                     it matches",
                    rule.name, other.name, other.spec.quota, rule.spec.quota
                ),
            );
        }
    }
}

/// Limits that may forestall another, by how the paths they are for begin: to compare each
/// of thousands with all others would take seconds.
struct Candidates<'r>(HashMap<Option<&'r [u8]>, Vec<&'r Rule>>);

impl<'r> Candidates<'r> {
    fn of(rules: impl Iterator<Item = &'r Rule>) -> Self {
        let mut by_start: HashMap<_, Vec<_>> = HashMap::new();
        for rule in rules {
            let mut starts: Vec<_> =
                rule.matches.paths.iter().map(Pattern::first_literal).collect();
            starts.sort_unstable();
            starts.dedup();
            if starts.is_empty() {
                starts.push(None);
            }
            for start in starts {
                by_start.entry(start).or_default().push(rule);
            }
        }
        Self(by_start)
    }

    /// Those that can be met by all requests that meet this one.
    fn for_rule(&self, rule: &'r Rule) -> impl Iterator<Item = &'r Rule> {
        let start = rule.matches.paths.first().and_then(Pattern::first_literal);
        let literal = start.and_then(|start| self.0.get(&Some(start)));
        let any = self.0.get(&None);
        literal.into_iter().chain(any).flatten().copied()
    }
}

/// True if `other` refuses whatever `rule` would refuse, and earlier.
fn forestalls(other: &Rule, rule: &Rule) -> bool {
    let plain = |rule: &Rule| {
        rule.spec.algorithm == AlgorithmKind::TokenBucket
            && !rule.is_hold
            && rule.adaptive.is_none()
            && rule.spec.tiers.is_empty()
            && rule.spec.overrides.is_empty()
            && rule.settle.is_none()
            && rule.ban.is_none()
            && matches!(rule.cost, Cost::Constant(1))
            && rule.mode == Mode::Enforce
    };
    plain(other)
        && plain(rule)
        && other.per == rule.per
        // One name may stand for different segments.
        && !rule.per.iter().any(|part| matches!(part, Part::Path(_)))
        && other.spec.start == rule.spec.start
        && stricter(&other.spec.quota, &rule.spec.quota)
        && meets_at_least(&other.matches, &rule.matches)
}

/// True if one quota lets through strictly less than another, at once and over time.
fn stricter(one: &Quota, other: &Quota) -> bool {
    let (Some(interval), Some(other_interval)) = (one.interval(), other.interval()) else {
        return false;
    };
    one.burst() <= other.burst()
        && interval >= other_interval
        && (one.burst(), interval) != (other.burst(), other_interval)
}

/// True if every request that meets `rule` meets `other` too, as far as can be told.
fn meets_at_least(other: &Matches, rule: &Matches) -> bool {
    let methods = other.methods.is_empty()
        || (!rule.methods.is_empty() && rule.methods.iter().all(|method| other.is_for(method)));
    let headers = other.headers.iter().all(|header| rule.headers.contains(header));
    let hosts = other.hosts.is_empty() || other.hosts == rule.hosts;
    let paths = other.paths.is_empty()
        || (!rule.paths.is_empty()
            && rule.paths.iter().all(|path| other.paths.iter().any(|other| other.covers(path))));
    methods && headers && hosts && paths
}
