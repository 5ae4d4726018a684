//! One limit, with its conditions, parts, quotas and overrides.

use std::collections::BTreeMap;

use spillgate::{AlgorithmKind, Quota, Start, Timestamp};

use super::Compiler;
use crate::config::spec::{self, At, Limit, Tier};
use crate::policy::identity::Identifier;
use crate::policy::part::per_text;
use crate::policy::route::{PathSpelling, Pattern};
use crate::policy::rule::{Cost, Matches, Rule};
use crate::policy::settle::{Settle, Statuses};
use crate::policy::tiers::Tiers;
use crate::store::LimitSpec;
use crate::suggest::hint;

/// The default capacity of all limits together: 26 MB, and at most 100,000 callers each.
const ROOM: u64 = 1_000_000;

impl Compiler<'_> {
    pub(super) fn rule(
        &mut self,
        limit: &Limit,
        written: &BTreeMap<String, Tier>,
        tiers: &Tiers,
        identifier: &Identifier,
        spelling: &PathSpelling,
    ) -> Option<Rule> {
        let before = self.problems.len();
        let place = format!("limit {:?}", limit.name.value);
        let paths = self.each(&limit.matches.path, &place, |text| Pattern::parse(text, spelling));
        let scope = self.scope(&place, limit);
        let is_by_name = self.is_by_name(&place, limit);
        let per = match &scope {
            None => self.per(&place, limit, &paths, Some(identifier).filter(|_| !is_by_name)),
            Some(scope) => self.descriptor_per(&place, limit, scope),
        };
        let algorithm = self.algorithm(&place, limit);
        if scope.is_some() {
            self.check_scope(&place, limit, written);
            self.check_shaper(&place, limit, algorithm);
        }
        let start = self.word(&place, "start", limit.start.as_ref(), &spec::START);
        let adaptive = self.adaptive(&place, limit);
        let hold = self.hold(&place, limit);
        let quota = self.base_quota(&place, limit, algorithm, start);
        let quotas = self.tier_quotas(limit, written, algorithm, start);
        let all: Vec<_> = quota.into_iter().chain(quotas.iter().map(|(_, quota)| *quota)).collect();
        let max_debt = self.max_debt(&place, limit, algorithm, &all);
        let matches = Matches { paths, ..self.conditions(&place, &limit.matches) };
        let tier_places = places(written, &quotas);
        let spec = LimitSpec {
            name: limit.name.value.clone(),
            per: per_text(&per),
            algorithm,
            start,
            quota: quota?,
            is_by_call: false,
            tiers: quotas,
            overrides: Vec::new(),
            capacity: self.capacity(&place, limit, per.is_empty()),
            when_full: self.word(&place, "when-full", limit.when_full.as_ref(), &spec::WHEN_FULL),
            max_debt,
            sharing: self.word(&place, "sharing", limit.sharing.as_ref(), &spec::SHARING),
            outage: self.word(&place, "outage", limit.outage.as_ref(), &spec::OUTAGE),
            hold,
        };
        let mode = limit.mode.as_ref().map(|at| at.value).unwrap_or_default();
        let mut rule = Rule::new(spec, per, matches, mode, self.cost(&place, limit));
        adaptive.into_iter().for_each(|adaptive| rule.follow_load(adaptive));
        rule.scope = scope.map(Box::new);
        rule.is_by_name = is_by_name;
        rule.settle = limit.settle.as_ref().map(|settle| Box::new(self.settle(&place, settle)));
        rule.ban = self.ban(&place, limit, &rule.per).map(Box::new);
        rule.lets_offences_pass();
        rule.tier_places = tier_places.into();
        rule.spec.overrides = self.overrides(&place, limit, &rule, tiers, identifier);
        (self.problems.len() == before).then_some(rule)
    }

    /// Whether the limit is by name only. What would be said of requests means nothing then.
    fn is_by_name(&mut self, place: &str, limit: &Limit) -> bool {
        let Some(by_name) = limit.by_name.as_ref().filter(|at| at.value) else { return false };
        let matches = &limit.matches;
        let has_conditions = !matches.path.is_empty()
            || !matches.method.is_empty()
            || !matches.host.is_empty()
            || !matches.header.is_empty()
            || matches.domain.is_some()
            || matches.descriptor.is_some();
        let meaningless = [
            ("match", has_conditions, "no request meets it"),
            ("cost", limit.cost.is_some(), "a check names its cost"),
            ("settle", limit.settle.is_some(), "the program that checks settles it"),
        ];
        for (key, _, why) in meaningless.into_iter().filter(|(_, is_there, _)| *is_there) {
            self.report(
                by_name,
                format!("{place}: a limit that is by name has no `{key}`, since {why}; remove one"),
            );
        }
        true
    }

    /// What each of several texts stands for.
    pub(super) fn each<V>(
        &mut self,
        texts: &[At<String>],
        place: &str,
        parse: impl Fn(&str) -> Result<V, String>,
    ) -> Vec<V> {
        let parsed = texts.iter().map(|at| (at, parse(&at.value)));
        let parsed: Vec<_> = parsed.collect();
        parsed
            .into_iter()
            .filter_map(|(at, value)| self.take(at, value.map_err(|why| format!("{place}: {why}"))))
            .collect()
    }

    fn algorithm(&mut self, place: &str, limit: &Limit) -> AlgorithmKind {
        let Some(at) = &limit.algorithm else { return AlgorithmKind::default() };
        let kind = at.value.parse::<AlgorithmKind>().map_err(|_| {
            let known = AlgorithmKind::ALL.map(AlgorithmKind::name);
            format!("{place}: unknown algorithm {:?}{}", at.value, hint(&at.value, known))
        });
        self.take(at, kind).unwrap_or_default()
    }

    /// The bound of debts, which every quota of the limit must be able to tell.
    fn max_debt(
        &mut self,
        place: &str,
        limit: &Limit,
        algorithm: AlgorithmKind,
        quotas: &[Quota],
    ) -> Option<u64> {
        let at = limit.max_debt.as_ref()?;
        let told = quotas.iter().try_for_each(|quota| {
            algorithm.with_quota(quota, Start::Full, Timestamp::ZERO)?.expect_debt(at.value)
        });
        self.take(at, told.map_err(|why| format!("{place}, max-debt: {why}")));
        Some(at.value)
    }

    /// What one of a few words stands for.
    pub(super) fn word<V: Copy + Default>(
        &mut self,
        place: &str,
        key: &str,
        written: Option<&At<String>>,
        words: &[(&str, V)],
    ) -> V {
        let Some(at) = written else { return V::default() };
        let known = words.iter().map(|(word, _)| *word);
        let value = words.iter().find(|(word, _)| *word == at.value).map(|(_, value)| *value);
        let value = value.ok_or_else(|| {
            format!("{place}, {key}: unknown {:?}{}", at.value, hint(&at.value, known))
        });
        self.take(at, value).unwrap_or_default()
    }

    pub(super) fn quota(
        &mut self,
        place: &str,
        at: &At<String>,
        algorithm: AlgorithmKind,
        start: Start,
    ) -> Option<Quota> {
        if self.is_partial && at.value.is_empty() {
            return None;
        }
        let quota = at.value.parse::<Quota>().and_then(|quota| {
            // Its clock does not matter to whether it can be counted.
            algorithm.with_quota(&quota, start, Timestamp::ZERO)?;
            Ok(quota)
        });
        self.take(at, quota.map_err(|why| format!("{place}, quota {:?}: {why}", at.value)))
    }

    fn tier_quotas(
        &mut self,
        limit: &Limit,
        tiers: &BTreeMap<String, Tier>,
        algorithm: AlgorithmKind,
        start: Start,
    ) -> Vec<(String, Quota)> {
        let mut quotas = Vec::new();
        for (name, tier) in tiers {
            let Some(at) = tier.quotas.get(&limit.name.value) else { continue };
            let place = format!("tier {name:?}, limit {:?}", limit.name.value);
            let quota = self.tier_quota(&place, at, limit, algorithm, start);
            let Some(quota) = quota else { continue };
            quotas.push((name.clone(), quota));
        }
        quotas
    }

    /// The default capacity of a node of a tree. There may be thousands.
    pub(super) fn node_capacity(&self, is_global: bool) -> usize {
        if is_global { 1 } else { self.share(64) as usize }
    }

    /// An even share of the room that there is, but so much at least.
    fn share(&self, least: u64) -> u64 {
        (ROOM / self.tables.max(1) as u64).clamp(least, 100_000)
    }

    fn capacity(&mut self, place: &str, limit: &Limit, is_global: bool) -> usize {
        const MOST: u64 = u32::MAX as u64;
        let default = if is_global { 1 } else { self.share(1_000) };
        let Some(at) = &limit.capacity else { return default as usize };
        if !(1..=MOST).contains(&at.value) {
            self.report(
                at,
                format!(
                    "{place}: a capacity of {} is impossible; use 1 to {MOST}, the number of \
                     callers expected at once",
                    at.value
                ),
            );
        }
        at.value.clamp(1, MOST) as usize
    }

    fn cost(&mut self, place: &str, limit: &Limit) -> Cost {
        match &limit.cost {
            None => Cost::Constant(1),
            Some(spec::Cost::Constant(at)) => {
                // Nothing is asked of who pays nothing, not even by those in debt.
                if at.value == 0 {
                    self.report(at, format!("{place}: a cost of 0 always passes; use 1 or more"));
                }
                Cost::Constant(at.value)
            }
            Some(spec::Cost::Header { name, default }) => {
                let default = default.as_ref().map_or(1, |at| {
                    if at.value == 0 {
                        self.report(at, format!("{place}: a default cost is at least 1"));
                    }
                    at.value.max(1)
                });
                match self.header_name(place, name) {
                    Some(name) => Cost::Header(Box::new(name), default),
                    None => Cost::Constant(default),
                }
            }
            Some(spec::Cost::Closure(closure)) => Cost::Closure(closure.clone()),
        }
    }

    fn settle(&mut self, place: &str, settle: &spec::Settle) -> Settle {
        let place = format!("{place}, settle");
        Settle {
            statuses: self.each(&settle.status, &place, statuses),
            header: settle.header.as_ref().and_then(|at| self.header_name(&place, at)),
            closure: settle.closure.clone(),
        }
    }
}

/// For each tier of the policy, its place among those that have a quota in the limit.
fn places(tiers: &BTreeMap<String, Tier>, quotas: &[(String, Quota)]) -> Vec<u16> {
    let place = |name: &String| quotas.iter().position(|(other, _)| other == name);
    tiers.keys().map(|name| place(name).map_or(0, |place| place as u16 + 1)).collect()
}

pub(super) fn statuses(text: &str) -> Result<Statuses, String> {
    let hundred = text.strip_suffix("xx").and_then(|hundred| hundred.parse().ok());
    match (hundred, text.parse()) {
        (Some(hundred @ 1..=5), _) => Ok(Statuses::Hundred(hundred)),
        (_, Ok(one @ 100..=599)) => Ok(Statuses::One(one)),
        _ => Err(format!("{text:?} is not a status; write one such as \"401\" or \"4xx\"")),
    }
}
