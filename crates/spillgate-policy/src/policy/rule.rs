use std::sync::Arc;

use http::Method;
use http::header::{HeaderName, HeaderValue};
use spillgate::{AlgorithmKind, Quota};

use super::adaptive::AdaptiveTerms;
use super::ban::BanTerms;
use super::part::{Part, Per};
use super::settle::{Settle, number};
use crate::envoy::{Scope, only_value};
use crate::key::Value;
use crate::policy::identity::{Identifier, Sender, Who};
use crate::policy::route::{CanonicalPath, HostPattern, Pattern, RequestPath};
use crate::request_view::only;
use crate::store::LimitSpec;
use crate::{Caller, Error, Key, Mode, Problem, RequestView};

/// A limit, checked and ready to be applied.
///
/// What every request reads is here, and small, since thousands of limits compete for the
/// processor's cache; the rest is in boxes.
pub(crate) struct Rule {
    pub(crate) name: Arc<str>,
    /// Empty if everyone is counted together.
    pub(crate) per: Per,
    pub(crate) cost: Cost,
    pub(crate) mode: Mode,
    /// Since which of a gate's policies it counts as it does. What was spent before is gone.
    pub(crate) since: u32,
    /// True if it has conditions other than hosts and paths.
    pub(crate) is_conditional: bool,
    /// True if no request meets it, only checks that name it.
    pub(crate) is_by_name: bool,
    /// True if it is on concurrency: requests hold permits until they end.
    pub(crate) is_hold: bool,
    /// What moves it, if it follows load. Then the store is not asked.
    pub(crate) adaptive: Option<Box<AdaptiveTerms>>,
    /// For each tier of the policy, its place among those that have a quota here, counted
    /// from one; zero if it has none.
    pub(crate) tier_places: Box<[u16]>,
    pub(crate) settle: Option<Box<Settle>>,
    pub(crate) ban: Option<Box<BanTerms>>,
    /// Which descriptors it is for; `None` if it is for requests.
    pub(crate) scope: Option<Box<Scope>>,
    pub(crate) matches: Box<Matches>,
    /// What a store needs to know.
    pub(crate) spec: Box<LimitSpec>,
}

/// Which requests a limit is for: those that meet all conditions. One that is empty is met
/// by all.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    pub(crate) methods: Vec<Method>,
    pub(crate) hosts: Vec<HostPattern>,
    pub(crate) paths: Vec<Pattern>,
    /// Headers that must be there, with the value they must have, if any.
    pub(crate) headers: Vec<(HeaderName, Option<HeaderValue>)>,
}

/// What a request costs.
pub(crate) enum Cost {
    Constant(u64),
    Header(Box<HeaderName>, u64),
    Closure(Arc<dyn Fn(&RequestView<'_>) -> u64 + Send + Sync>),
}

/// Why a limit does not apply to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch<'a> {
    Path,
    Host,
    Method,
    Header(&'a HeaderName),
}

impl Rule {
    /// Refuses a quota that the limit's algorithm cannot count.
    pub(crate) fn expect_counts(&self, quota: &Quota) -> Result<(), Error> {
        let problem = |why| Problem::new(format!("limit {:?}: {why}", self.name));
        self.counted(quota).map_err(|why| Error::policy(vec![problem(why)]))
    }

    /// A quota of the limit, for people.
    pub(crate) fn amount(&self, quota: &Quota) -> String {
        match &self.adaptive {
            Some(adaptive) => adaptive.amount(),
            None if self.is_hold => format!("{} concurrent", quota.burst()),
            None => quota.to_string(),
        }
    }

    /// Refuses a limit on concurrency, for what only makes sense of rates, and one that follows
    /// load. What would be right under one that holds something is the remedy.
    pub(crate) fn expect_rate(&self, remedy: &str) -> Result<(), Error> {
        let name = &self.name;
        let remedy = if self.is_hold { format!("; {remedy}") } else { String::new() };
        match (&self.adaptive, self.is_hold) {
            (None, false) => Ok(()),
            (None, true) => {
                Err(Error::unknown(format!("limit {name:?} is on concurrency{remedy}")))
            }
            (Some(_), _) => Err(Error::unknown(format!(
                "limit {name:?} follows load: it can be checked, and not reserved, settled or \
                 reset{remedy}"
            ))),
        }
    }

    /// Refuses a limit whose quota comes with each call.
    pub(crate) fn expect_own_quota(&self) -> Result<(), Error> {
        match self.spec.is_by_call {
            false => Ok(()),
            true => Err(Error::unknown(format!(
                "limit {:?} has no quota of its own: its quota comes with each call",
                self.name
            ))),
        }
    }

    pub(crate) fn new(spec: LimitSpec, per: Per, matches: Matches, mode: Mode, cost: Cost) -> Self {
        Self {
            name: spec.name.as_str().into(),
            per,
            cost,
            mode,
            since: 0,
            is_conditional: !matches.methods.is_empty() || !matches.headers.is_empty(),
            is_by_name: false,
            is_hold: spec.hold.is_some(),
            adaptive: None,
            tier_places: Box::default(),
            settle: None,
            ban: None,
            scope: None,
            matches: Box::new(matches),
            spec: Box::new(spec),
        }
    }

    /// True if requests may meet the limit: it is neither for descriptors nor by name only.
    pub(crate) fn is_for_requests(&self) -> bool {
        self.scope.is_none() && !self.is_by_name
    }

    /// Why the limit is not for a request whose host and path match it.
    #[inline]
    pub(crate) fn mismatch(&self, request: &RequestView<'_>) -> Option<Mismatch<'_>> {
        if self.is_conditional { self.matches.mismatch(request) } else { None }
    }

    /// Writes what a request is counted under.
    #[inline]
    pub(crate) fn write_key(
        &self,
        key: &mut Key,
        request: &RequestView<'_>,
        sender: &Sender<'_>,
        identifier: &Identifier,
        path: Option<&CanonicalPath<'_>>,
    ) {
        for (index, part) in self.per.iter().enumerate() {
            let value = self.value(part, request, sender, identifier, path);
            key.push(value, index + 1 == self.per.len());
        }
    }

    fn value<'a>(
        &self,
        part: &Part,
        request: &RequestView<'a>,
        sender: &'a Sender<'_>,
        identifier: &Identifier,
        path: Option<&'a CanonicalPath<'_>>,
    ) -> Value<'a> {
        let value = match part {
            Part::Caller => Some(Value::from(&sender.who)),
            Part::Ip => sender.client.map(|client| Value::Ip(identifier.cut(client.address))),
            // A program that knows who sent the request goes before its headers.
            Part::ApiKey => match &sender.who {
                Who::Named(Caller::ApiKey(key)) => Some(Value::ApiKey(key)),
                _ => identifier.api_key.accepted(request, sender.from_trusted).map(Value::ApiKey),
            },
            Part::User => match &sender.who {
                Who::Named(Caller::User(user)) => Some(Value::User(user)),
                _ => identifier.user.accepted(request, sender.from_trusted).map(Value::User),
            },
            Part::Header(name) => {
                only(request.headers(), &**name).map(|value| Value::Header(value.as_bytes()))
            }
            Part::Path(name) => path.and_then(|path| self.parameter(name, path)).map(Value::Path),
            // A limit that is counted by these meets no request.
            Part::Entry(_) | Part::Level(_) | Part::Descriptor | Part::Key => None,
        };
        value.unwrap_or(Value::Absent)
    }

    /// Writes what a descriptor is counted under.
    pub(crate) fn write_descriptor_key(
        &self,
        key: &mut Key,
        domain: &str,
        entries: &[(&str, &str)],
    ) {
        for (index, part) in self.per.iter().enumerate() {
            let value = match part {
                Part::Entry(name) => only_value(entries, name),
                Part::Level(level) => entries.get(level.0).map(|(_, value)| *value),
                Part::Descriptor => return key.push_descriptor(domain, entries),
                _ => None,
            };
            let value = value.map_or(Value::Absent, |value| Value::Entry(value.as_bytes()));
            key.push(value, index + 1 == self.per.len());
        }
    }

    fn parameter<'p>(&self, name: &str, path: &'p CanonicalPath<'_>) -> Option<&'p [u8]> {
        let pattern = self.matches.paths.iter().find(|pattern| pattern.matches(path))?;
        pattern.parameter(name)?.value(path)
    }

    /// The tier of a key, given the caller's place among the policy's tiers.
    pub(crate) fn tier_place(&self, tier: Option<usize>) -> u16 {
        tier.and_then(|tier| self.tier_places.get(tier)).copied().unwrap_or(0)
    }

    /// The name of a key's tier.
    pub(crate) fn tier_name(&self, key: &Key) -> Option<&str> {
        self.spec.tiers.get(key.tier()?).map(|(name, _)| name.as_str())
    }

    /// What a request costs before its response is there.
    pub(crate) fn cost(&self, request: &RequestView<'_>, from_trusted: bool) -> u64 {
        match &self.cost {
            Cost::Constant(cost) => *cost,
            Cost::Header(name, default) => {
                let told = from_trusted.then(|| number(request.headers(), name)).flatten();
                // A cost of zero would be a free pass.
                told.map_or(*default, |cost| cost.max(1))
            }
            Cost::Closure(cost) => cost(request),
        }
    }

    /// True if what was spent under another policy's limit means the same here.
    pub(crate) fn counts_like(&self, other: &Self) -> bool {
        self.spec.algorithm == other.spec.algorithm
            && self.per == other.per
            && self.is_hold == other.is_hold
            && self.kind() == other.kind()
    }

    /// True if the limit only allows and denies: it delays nobody, is not settled, is not in
    /// shadow, nothing is held, and nothing moves it.
    pub(crate) fn is_plain(&self) -> bool {
        self.mode == Mode::Enforce
            && !self.is_hold
            && !self.is_settled()
            && self.spec.algorithm != AlgorithmKind::LeakyShaper
    }

    /// Counts on what the limit of the same name in an earlier policy has counted.
    pub(crate) fn carry_on_bans(&mut self, earlier: Option<&Self>) {
        let earlier = earlier.and_then(|rule| rule.ban.as_ref());
        if let (Some(ban), Some(earlier)) = (&mut self.ban, earlier) {
            ban.counters = Arc::clone(&earlier.counters);
        }
    }

    /// True if a response changes what was counted, or tells an adaptive limit something.
    pub(crate) fn is_settled(&self) -> bool {
        self.settle.is_some() || self.bans_by_status() || self.adaptive.is_some()
    }

    /// True if responses of some statuses are offences.
    pub(crate) fn bans_by_status(&self) -> bool {
        self.ban.as_ref().is_some_and(|ban| !ban.statuses.is_empty())
    }

    /// Puts the limit in shadow mode if only banned callers are refused.
    pub(crate) fn lets_offences_pass(&mut self) {
        if self.ban.as_ref().is_some_and(|ban| ban.refuses_next) {
            self.mode = Mode::Shadow;
        }
    }

    /// True if the limit is one of a tree that denies everything.
    pub(crate) fn is_closed(&self) -> bool {
        self.scope.as_ref().is_some_and(|scope| scope.is_closed)
    }

    /// When the limit is asked, among those of a request: first those that enforce, since shadow
    /// limits are asked only of what passes. Of those that enforce, permits come first, since
    /// they can be returned exactly if a rate denies; of shadow limits they come last. Of each,
    /// those that most callers share come last, where a race is lost most often. The fewer parts a
    /// limit is counted by, the more callers share it. Adaptive limits come first and last:
    /// what is between is the store's.
    pub(crate) fn turn(&self) -> impl Ord + use<> {
        let is_shadow = self.mode == Mode::Shadow;
        let kind = match (&self.adaptive, is_shadow) {
            (Some(_), false) => 0,
            (Some(_), true) => 5,
            (None, _) => 1 + usize::from(is_shadow) * 2 + usize::from(self.is_hold == is_shadow),
        };
        // One number, since requests are compared by it. Nothing is counted by so many parts.
        (kind + 1) * (usize::MAX / 8) - self.per.len()
    }
}

impl Matches {
    pub(super) fn mismatch(&self, request: &RequestView<'_>) -> Option<Mismatch<'_>> {
        if !self.methods.is_empty() && !self.is_for(request.method()) {
            return Some(Mismatch::Method);
        }
        let missing = self.headers.iter().find(|(name, wanted)| match wanted {
            None => !request.headers().contains_key(name),
            Some(wanted) => request.headers().get_all(name).iter().all(|value| value != wanted),
        });
        missing.map(|(name, _)| Mismatch::Header(name))
    }

    /// True if the limit names the method. `HEAD` is a `GET` without the body. Many services
    /// take `post` for `POST`, so case does not count.
    pub(crate) fn is_for(&self, method: &Method) -> bool {
        let is = |known: &Method| {
            method == known || method.as_str().eq_ignore_ascii_case(known.as_str())
        };
        let is_head = || is(&Method::HEAD);
        self.methods.iter().any(|known| is(known) || (*known == Method::GET && is_head()))
    }

    /// Why the limit is not for a request, with all its conditions.
    pub(crate) fn mismatch_at_all(
        &self,
        request: &RequestView<'_>,
        host: Option<&str>,
        path: Option<&RequestPath<'_>>,
    ) -> Option<Mismatch<'_>> {
        let host_fits = |host| self.hosts.iter().any(|pattern| pattern.matches(host));
        if !self.hosts.is_empty() && !host.is_none_or(host_fits) {
            return Some(Mismatch::Host);
        }
        let fits = |path| self.paths.iter().any(|pattern| pattern.matches(path));
        if !self.paths.is_empty() && !path.is_none_or(|path| path.readings().any(fits)) {
            return Some(Mismatch::Path);
        }
        self.mismatch(request)
    }
}
