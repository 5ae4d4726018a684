//! From a policy as it is written to one that can be applied. Everything that is wrong
//! is reported, not only the first.

mod adaptive;
mod ban;
mod bounds;
mod by_call;
mod concurrent;
mod descriptor;
mod domain;
mod duration;
mod identity;
mod limit;
mod matches;
mod overlap;
mod overrides;
mod per;
mod priority;
mod tiers;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "schema")]
pub(crate) use self::adaptive::{CONTROLLERS, SIGNALS};
#[cfg(feature = "schema")]
pub(crate) use self::ban::REFUSE;
pub(crate) use self::concurrent::MOST_PERMITS;
pub(crate) use self::overrides::{canonical_values, key_of};
use crate::Mode;
use crate::config::file;
use crate::config::spec::{At, ListItem, Spec};
use crate::envoy::{Descriptors, Tree};
use crate::policy::identity::IdentifyClosure;
use crate::policy::lists::{Entry, List, Lists};
use crate::policy::route::Routes;
use crate::policy::rule::Rule;
use crate::policy::terms::check_comment;
use crate::policy::tiers::TierClosure;
use crate::{Policy, Problem, Terms};

/// The text that a policy was read from, and where.
#[derive(Default)]
pub(super) struct Source {
    pub(super) text: String,
    pub(super) name: Option<String>,
    /// Where files that the policy names are looked for.
    pub(super) folder: PathBuf,
}

/// Checks a policy, and collects what is wrong in it.
pub(super) struct Compiler<'s> {
    source: &'s Source,
    /// True if something could not be read, so that more would be found missing than is.
    is_partial: bool,
    /// How many tables there will be that share the room for callers: one for each limit that
    /// counts some apart.
    tables: usize,
    problems: Vec<Problem>,
    /// How many problems are not listed.
    more: usize,
}

impl<'s> Compiler<'s> {
    pub(super) fn new(source: &'s Source) -> Self {
        Self { source, is_partial: false, tables: 0, problems: Vec::new(), more: 0 }
    }

    /// Checks what could be read of a policy, beside the problems of reading it.
    pub(super) fn partial(source: &'s Source, problems: Vec<Problem>) -> Self {
        Self { problems, is_partial: true, ..Self::new(source) }
    }

    pub(super) fn compile(
        mut self,
        spec: &Spec,
        identify: Option<IdentifyClosure>,
        tier_of: Option<TierClosure>,
    ) -> Result<Policy, Vec<Problem>> {
        let limits = spec.limits.iter().filter(|limit| !limit.counts_together()).count();
        let nodes = spec.domains.iter().map(|domain| domain::tables_of(&domain.nodes, false));
        self.tables = limits + nodes.sum::<usize>();
        let identifier = self.identifier(spec, identify);
        let names_tiers = tier_of.is_some() || identifier.believes_tiers();
        let (allow, block) = (self.list("allow", &spec.allow), self.list("block", &spec.block));
        let lists = Arc::new(Lists::new(allow, block));
        let mut tiers = self.tiers(spec, names_tiers, &identifier);
        tiers.closure = tier_of;
        self.check_limits_are_there(spec);
        self.check_names(spec);
        let limits = self.with_overrides(spec);
        let spelling = spec.path_spelling;
        let rule = |limit| self.rule(limit, &spec.tiers, &tiers, &identifier, &spelling);
        let mut rules: Vec<Option<Rule>> = limits.iter().map(rule).collect();
        self.check_tier_limits(spec);
        self.check_overlap(&spec.limits, &rules);
        let trees = self.domains(&spec.domains, &mut rules);
        let priorities = self.priorities(spec, &tiers, &identifier);
        if !self.problems.is_empty() {
            return Err(in_order(self.problems, self.more));
        }
        let mut rules: Vec<Rule> = rules.into_iter().flatten().collect();
        let descriptors = descriptors(&mut rules, trees, spec.call_quotas);
        let named = |(place, rule): (usize, &Rule)| (Arc::clone(&rule.name), place);
        let places = rules.iter().enumerate().map(named).collect();
        let routes = routes_of(&rules);
        let mut with_hosts = rules.iter().filter(|rule| !rule.matches.hosts.is_empty());
        let has_hosts = with_hosts.clone().next().is_some();
        let needs_host = with_hosts.any(|rule| rule.mode == Mode::Enforce);
        let has_paths = rules.iter().any(|rule| !rule.matches.paths.is_empty());
        let is_plain = rules.iter().all(|rule| rule.scope.is_some() || rule.is_plain());
        let has_holds = rules.iter().any(|rule| rule.is_hold && rule.adaptive.is_none());
        let has_adaptive = rules.iter().any(|rule| rule.adaptive.is_some());
        let has_bans = rules.iter().any(|rule| rule.ban.is_some());
        Ok(Policy {
            identifier,
            lists,
            rules,
            places,
            routes,
            descriptors,
            throttle: None,
            spelling,
            has_hosts,
            needs_host,
            has_paths,
            is_plain,
            has_holds,
            has_adaptive,
            has_more_than_rates: has_holds || has_adaptive || has_bans,
            tiers,
            priorities: priorities.map(Box::new),
        })
    }

    /// Reports a problem at a place in the file.
    fn report<T>(&mut self, at: &At<T>, message: impl Into<String>) {
        // As many as anyone will read: for each, the whole text is looked through.
        if self.problems.len() >= MOST_PROBLEMS {
            self.more += 1;
            return;
        }
        let Source { text, name, .. } = self.source;
        let place = at.span.as_ref().map(|span| file::place(text, name.as_deref(), span));
        self.problems.push(Problem::new(message).at(place));
    }

    /// The value, or a report of why there is none.
    fn take<T, V>(&mut self, at: &At<T>, result: Result<V, String>) -> Option<V> {
        result.map_err(|message| self.report(at, message)).ok()
    }

    fn list(&mut self, name: &str, entries: &[ListItem]) -> List {
        let mut list = Vec::with_capacity(entries.len());
        for (index, ListItem { entry: at, terms }) in entries.iter().enumerate() {
            // An entry may be a secret, so its place is told, not its text.
            let place = || format!("{name}, entry {}", index + 1);
            let entry = Entry::parse(&at.value).map_err(|reason| format!("{}: {reason}", place()));
            let terms = terms.as_ref().map_or_else(Terms::permanent, |written| {
                let comment = self.comment(&place(), written.comment.as_ref());
                Terms { until: written.expires, comment }
            });
            list.extend(self.take(at, entry).map(|entry| (entry, terms)));
        }
        List::new(list)
    }

    fn comment(&mut self, place: &str, comment: Option<&At<String>>) -> Option<String> {
        let at = comment?;
        let checked = check_comment(&at.value).map_err(|why| format!("{place}: {why}"));
        self.take(at, checked).map(|()| at.value.clone())
    }

    /// A file without limits lets everything pass, so it has to say that this is meant. Where the
    /// program adds limits of its own, it must only not be blank.
    fn check_limits_are_there(&mut self, spec: &Spec) {
        let has_others = !spec.domains.is_empty() && !spec.is_blank;
        if spec.lacks_limits && !has_others && !self.is_partial {
            let start = At::new((), 0..0);
            self.report(
                &start,
                "there are no limits, so everything would pass; add a [[limit]], or write \
                 `limit = []` if that is meant",
            );
        }
    }

    fn check_names(&mut self, spec: &Spec) {
        let mut seen = HashSet::new();
        for limit in &spec.limits {
            let name = limit.name.value.as_str();
            let is_good = (1..=64).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
            if !is_good {
                self.report(
                    &limit.name,
                    format!(
                        "{name:?} cannot be the name of a limit; use 1 to 64 letters, digits, \
                         \"-\", \"_\" and \".\""
                    ),
                );
            } else if [by_call::CALL_QUOTA, by_call::THROTTLE].contains(&name) {
                self.report(
                    &limit.name,
                    format!("{name:?} is for quotas that come with calls; choose another name"),
                );
            } else if !seen.insert(name) {
                self.report(
                    &limit.name,
                    format!("there are two limits called {name:?}; give each its own name"),
                );
            }
        }
    }
}

/// Which limits descriptors meet. If there are any, one is added for quotas that come with
/// calls.
fn descriptors(
    rules: &mut Vec<Rule>,
    trees: Vec<(Box<str>, Tree)>,
    call_quotas: bool,
) -> Descriptors {
    let mut descriptors = Descriptors::default();
    for (place, rule) in rules.iter().enumerate() {
        rule.scope.iter().for_each(|scope| descriptors.insert(scope, place));
    }
    for (domain, tree) in trees {
        descriptors.insert_tree(&domain, tree);
    }
    let is_needed = call_quotas || !descriptors.is_empty();
    if is_needed {
        if let Ok(rule) = by_call::call_quota() {
            descriptors.call_quota = Some(rules.len());
            rules.push(rule);
        }
    }
    descriptors
}

const MOST_PROBLEMS: usize = 100;

/// Problems in the order of the file, so many as anyone will read.
fn in_order(mut problems: Vec<Problem>, more: usize) -> Vec<Problem> {
    problems.sort_by_key(|problem| problem.place().map(|place| (place.line, place.column)));
    let more = more + problems.len().saturating_sub(MOST_PROBLEMS);
    problems.truncate(MOST_PROBLEMS);
    if more > 0 {
        problems.push(Problem::new(format!("and {more} more problems")));
    }
    problems
}

/// The limits that requests may meet, by host and path.
fn routes_of(rules: &[Rule]) -> Routes<usize> {
    let mut routes = Routes::new();
    let for_requests = |(_, rule): &(usize, &Rule)| rule.is_for_requests();
    for (place, rule) in rules.iter().enumerate().filter(for_requests) {
        routes.insert(&rule.matches.hosts, &rule.matches.paths, place);
    }
    routes
}
