//! Limits that can never be the one that refuses.

use super::Compiler;
use crate::Mode;
use crate::policy::rule::{Cost, Matches, Part, Rule};
use crate::spec::Limit;
use tollgate::{AlgorithmKind, Quota};

impl Compiler<'_> {
    /// Reports limits that another one always forestalls. Most likely a condition was
    /// forgotten or two numbers were mixed up.
    pub(super) fn check_overlap(&mut self, limits: &[Limit], rules: &[Option<Rule>]) {
        for (limit, rule) in limits.iter().zip(rules) {
            let Some(rule) = rule else { continue };
            let others = rules.iter().flatten().filter(|other| other.name != rule.name);
            let Some(other) = others.into_iter().find(|other| forestalls(other, rule)) else {
                continue;
            };
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

/// True if `other` refuses whatever `rule` would refuse, and earlier.
fn forestalls(other: &Rule, rule: &Rule) -> bool {
    let plain = |rule: &Rule| {
        rule.spec.algorithm == AlgorithmKind::TokenBucket
            && rule.spec.tiers.is_empty()
            && rule.spec.overrides.is_empty()
            && rule.settle.is_none()
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
