//! Built-in limits whose quota comes with each call.

use spillgate::{AlgorithmKind, Quota, WhenFull};

use super::domain::spec;
use crate::envoy::{Pattern, Scope};
use crate::policy::part::{Part, Per, per_text};
use crate::policy::rule::{Cost, Matches, Rule};
use crate::{Mode, Policy};

/// The limit of quotas that come with a descriptor.
pub(super) const CALL_QUOTA: &str = "quota-of-call";

/// The limit of [`Throttle`](crate::Throttle) questions.
pub(super) const THROTTLE: &str = "cl.throttle";

/// For how many descriptors there is room, per class of quotas.
const CALL_QUOTAS: usize = 100_000;

/// The limit under which descriptors with a quota of their own are counted.
pub(super) fn call_quota() -> Result<Rule, spillgate::Error> {
    let mut rule = rule(CALL_QUOTA, Part::Descriptor, CALL_QUOTAS, WhenFull::default())?;
    rule.scope = Some(Box::new(Scope::new("", Pattern::Node)));
    Ok(rule)
}

/// A limit whose own quota decides nothing. Its burst is a century, since a debt beyond the burst
/// would be cut when words move from one table to another.
fn rule(
    name: &str,
    part: Part,
    capacity: usize,
    when_full: WhenFull,
) -> Result<Rule, spillgate::Error> {
    let quota = Quota::per_second(1).burst(100 * 365 * 24 * 60 * 60).build()?;
    let per = Per::from_iter([part]);
    let kind = AlgorithmKind::TokenBucket;
    let mut spec = spec(name.to_owned(), per_text(&per), kind, quota, capacity);
    spec.is_by_call = true;
    spec.when_full = when_full;
    Ok(Rule::new(spec, per, Matches::default(), Mode::Enforce, Cost::Constant(1)))
}

impl Policy {
    /// Adds room for keys whose quota comes with the call ([`Throttle`](crate::Throttle)), as the
    /// limit `cl.throttle`: for this many keys with something spent at once, per class of quotas
    /// (see [`CallQuota`](crate::store::CallQuota)).
    #[must_use]
    pub fn with_throttle(mut self, capacity: usize, when_full: WhenFull) -> Self {
        if let Ok(mut rule) = rule(THROTTLE, Part::Key, capacity, when_full) {
            rule.is_by_name = true;
            let place = *self.throttle.get_or_insert(self.rules.len());
            self.places.insert(rule.name.clone(), place);
            self.rules.truncate(place);
            self.rules.push(rule);
        }
        self
    }

    /// The limits that were configured, without built-in ones.
    pub fn configured_limits(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().filter(|rule| !rule.spec.is_by_call).map(|rule| &*rule.name)
    }
}
