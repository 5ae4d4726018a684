use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use spillgate::{Start, WhenFull};

#[cfg(feature = "schema")]
use super::matches::OneOrMore;
use super::{At, Match, Settle, all};
use crate::RequestView;
use crate::store::{Outage, Sharing};

/// A named quota, which requests it is for, and what it counts.
///
/// ```
/// use spillgate_policy::{Limit, Mode};
///
/// let public = Limit::new("public", "10/s burst 20")
///     .path("/public/{*rest}")
///     .methods(["GET", "POST"])
///     .per(["caller"])
///     .mode(Mode::Shadow);
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "kebab-case", deny_unknown_fields))]
#[must_use = "a limit does nothing until it is part of a policy"]
pub struct Limit {
    /// What the limit is called in answers, headers, logs and metrics: letters, digits,
    /// `-`, `_` and `.`, at most 64.
    pub(crate) name: At<String>,
    /// Which requests meet the limit. Default: all.
    #[cfg_attr(feature = "schema", schemars(default, rename = "match"))]
    pub(crate) matches: Match,
    /// True if no request meets the limit: it counts only where a program names it, in
    /// `/v1/check`, `SG.CHECK` or `LimitCheck`. Default: false.
    #[cfg_attr(feature = "schema", schemars(with = "Option<bool>"))]
    pub(crate) by_name: Option<At<bool>>,
    /// What is counted apart: `caller`, `ip`, `api-key`, `user`, `header:NAME`,
    /// `path:PARAMETER`, several of them together, or `global`. Default: `caller`. Of
    /// descriptors `descriptor:KEY`, several of them, `descriptor`, or `global`. Default: all
    /// values that `match.descriptor` leaves open.
    #[cfg_attr(feature = "schema", schemars(default, with = "Option<OneOrMore>"))]
    pub(crate) per: Option<Vec<At<String>>>,
    /// How much, over how long: `10/s burst 20`, `1000/day`, `5 per 10 s`.
    pub(crate) quota: At<String>,
    /// `token-bucket`, `leaky-bucket`, `leaky-shaper`, `interval-bucket`,
    /// `fixed-window`, `first-hit-window` or `sliding-window`. Default: `token-bucket`.
    pub(crate) algorithm: Option<At<String>>,
    /// What a caller never seen has: `full` or `empty`. Buckets only. Default: `full`.
    pub(crate) start: Option<At<String>>,
    /// The maximum number of active callers, those below their full quota. Default: 100000, less
    /// if there are more than ten limits; 1 for a `global` limit.
    pub(crate) capacity: Option<At<u64>>,
    /// What happens to a new caller when the table is full: `evict` forgets the caller who has spent
    /// least, `protect` does so unless that one is exhausted, `deny` denies the new one. Default:
    /// `evict`.
    pub(crate) when_full: Option<At<String>>,
    /// How much a caller may owe beyond its burst when costs are settled. Default: what a day
    /// refills or ten bursts, whichever is more.
    pub(crate) max_debt: Option<At<u64>>,
    /// How nodes share the limit, if they share a store: `strict` decides every time there,
    /// `leased` takes slices of a bucket ahead of use. Default: `strict`.
    pub(crate) sharing: Option<At<String>>,
    /// What happens while a shared store cannot be reached: `local` gives each node its share
    /// of the limit, `open` lets everyone pass, `closed` nobody. Default: `local`.
    pub(crate) outage: Option<At<String>>,
    /// `enforce`, or `shadow`: count, but never refuse. Default: `enforce`.
    pub(crate) mode: Option<At<Mode>>,
    /// What a request costs: a number, or the name of a request header. Default: 1.
    pub(crate) cost: Option<Cost>,
    /// How the cost is corrected when the response is there. Default: it is not.
    pub(crate) settle: Option<Settle>,
    /// Quotas of single callers.
    #[cfg_attr(feature = "schema", schemars(default, rename = "override"))]
    pub(crate) overrides: Vec<Override>,
}

// The words of a policy file, and what they stand for.
pub(crate) const START: [(&str, Start); 2] = [("full", Start::Full), ("empty", Start::Empty)];
pub(crate) const WHEN_FULL: [(&str, WhenFull); 3] =
    [("evict", WhenFull::Evict), ("protect", WhenFull::Protect), ("deny", WhenFull::Deny)];
pub(crate) const SHARING: [(&str, Sharing); 2] =
    [("strict", Sharing::Strict), ("leased", Sharing::Leased)];
pub(crate) const OUTAGE: [(&str, Outage); 3] =
    [("local", Outage::Local), ("open", Outage::Open), ("closed", Outage::Closed)];

fn word_of<T: Copy + PartialEq>(words: &[(&str, T)], value: T) -> Option<At<String>> {
    let found = words.iter().find(|(_, known)| *known == value);
    found.map(|(word, _)| At::from((*word).to_owned()))
}

/// Whether a limit refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Mode {
    /// Requests that exceed the limit are refused.
    #[default]
    Enforce,
    /// Requests that exceed the limit are counted, and go ahead.
    Shadow,
}

/// What a request costs.
#[derive(Clone)]
pub(crate) enum Cost {
    Constant(At<u64>),
    /// From a request header, believed from trusted proxies only; the default if it
    /// is not there.
    Header {
        name: At<String>,
        default: Option<At<u64>>,
    },
    Closure(Arc<dyn Fn(&RequestView<'_>) -> u64 + Send + Sync>),
}

/// The quota of one caller: each part of the limit's `per`, with its value, and
/// `quota`.
#[derive(Clone)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Override {
    /// How much the caller may do.
    pub(crate) quota: At<String>,
    /// Every other key is a part of the limit's `per`, with its value: `caller =
    /// "api-key:partner-7"`, `ip = "192.0.2.7"`, `"path:id" = "42"`.
    #[cfg_attr(feature = "schema", schemars(flatten))]
    pub(crate) parts: BTreeMap<String, At<String>>,
    /// Where the override begins in the file.
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) at: At<()>,
}

/// An override apart from its limit.
#[derive(Clone)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct NamedOverride {
    /// The name of the limit.
    pub(crate) limit: At<String>,
    #[cfg_attr(feature = "schema", schemars(flatten))]
    pub(crate) with: Override,
}

impl Limit {
    /// A limit for every request, counted per caller.
    pub fn new(name: impl Into<String>, quota: impl Into<String>) -> Self {
        Self {
            name: At::from(name.into()),
            matches: Match::default(),
            by_name: None,
            per: None,
            quota: At::from(quota.into()),
            algorithm: None,
            start: None,
            capacity: None,
            when_full: None,
            max_debt: None,
            sharing: None,
            outage: None,
            mode: None,
            cost: None,
            settle: None,
            overrides: Vec::new(),
        }
    }

    /// True if all that meet the limit are counted together, so that it needs room for one.
    pub(crate) fn counts_together(&self) -> bool {
        match (&self.per, &self.matches.descriptor) {
            (Some(per), _) => per.iter().any(|part| part.value == "global"),
            (None, Some(entries)) => entries.value.values().all(|at| !at.value.ends_with('*')),
            (None, None) => false,
        }
    }

    /// Limits nothing but checks that name the limit ([`LimitCheck`](crate::LimitCheck)): no request
    /// meets it.
    pub fn by_name(mut self) -> Self {
        self.by_name = Some(At::from(true));
        self
    }

    /// Also limits requests to paths of this pattern: `/users/{id}`, `/public/{*rest}`.
    pub fn path(mut self, pattern: impl Into<String>) -> Self {
        self.matches.path.push(At::from(pattern.into()));
        self
    }

    /// Limits requests with one of these methods. `GET` stands for `HEAD` too.
    pub fn methods<T: Into<String>>(mut self, methods: impl IntoIterator<Item = T>) -> Self {
        self.matches.method = all(methods);
        self
    }

    /// Also limits requests to this host: `api.example.com`, `*.example.com`.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.matches.host.push(At::from(host.into()));
        self
    }

    /// Limits requests that have this header with this value, or any if it is `*`.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.matches.header.insert(name.into(), At::from(value.into()));
        self
    }

    /// Limits descriptors of this domain in place of requests: all of them, unless
    /// [`descriptor`](Self::descriptor) says which.
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.matches.domain = Some(At::from(domain.into()));
        self
    }

    /// Limits descriptors with exactly the entries given, this one among them: with this value,
    /// any value if it is `*`, or a prefix if it ends in `*`.
    pub fn descriptor(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let entries = self.matches.descriptor.get_or_insert_default();
        entries.value.insert(key.into(), At::from(value.into()));
        self
    }

    /// Says what is counted apart: `caller`, `ip`, `api-key`, `user`, `header:NAME`,
    /// `path:PARAMETER`, several of them together, or `global`; of descriptors
    /// `descriptor:KEY`, `descriptor` or `global`.
    pub fn per<T: Into<String>>(mut self, parts: impl IntoIterator<Item = T>) -> Self {
        self.per = Some(all(parts));
        self
    }

    /// Sets the algorithm. Default: token bucket.
    pub fn algorithm(mut self, kind: spillgate::AlgorithmKind) -> Self {
        self.algorithm = Some(At::from(kind.to_string()));
        self
    }

    /// Lets new callers begin with nothing to spend.
    pub fn start_empty(mut self) -> Self {
        self.start = word_of(&START, Start::Empty);
        self
    }

    /// Sets the maximum number of active callers.
    pub fn capacity(mut self, callers: u64) -> Self {
        self.capacity = Some(At::from(callers));
        self
    }

    /// Sets what happens to a new caller when the table is full.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = word_of(&WHEN_FULL, when_full);
        self
    }

    /// Sets the maximum debt beyond the burst. Default: what a day refills or ten bursts, whichever
    /// is more.
    pub fn max_debt(mut self, tokens: u64) -> Self {
        self.max_debt = Some(At::from(tokens));
        self
    }

    /// Sets how nodes share the limit, if they share a store.
    pub fn sharing(mut self, sharing: Sharing) -> Self {
        self.sharing = word_of(&SHARING, sharing);
        self
    }

    /// Sets what happens while a shared store is unreachable.
    pub fn outage(mut self, outage: Outage) -> Self {
        self.outage = word_of(&OUTAGE, outage);
        self
    }

    /// Sets whether the limit denies.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(At::from(mode));
        self
    }

    /// Sets the cost of every request.
    pub fn cost(mut self, cost: u64) -> Self {
        self.cost = Some(Cost::Constant(At::from(cost)));
        self
    }

    /// Reads the cost from a request header that trusted proxies set: at least 1, and
    /// `default` if it is not there.
    pub fn cost_header(mut self, name: impl Into<String>, default: u64) -> Self {
        let default = Some(At::from(default));
        self.cost = Some(Cost::Header { name: At::from(name.into()), default });
        self
    }

    /// Asks a closure for the cost of a request. A cost of 0 always passes, and is not
    /// counted. The closure must not call the gate.
    pub fn cost_of(
        mut self,
        cost: impl Fn(&RequestView<'_>) -> u64 + Send + Sync + 'static,
    ) -> Self {
        self.cost = Some(Cost::Closure(Arc::new(cost)));
        self
    }

    /// Corrects the cost when the response is there.
    pub fn settle(mut self, settle: Settle) -> Self {
        self.settle = Some(settle);
        self
    }

    /// Gives one caller a quota of its own: `("caller", "api-key:partner-7")`.
    pub fn override_for(
        self,
        part: impl Into<String>,
        value: impl Into<String>,
        quota: impl Into<String>,
    ) -> Self {
        self.override_for_all([(part, value)], quota)
    }

    /// As [`override_for`](Self::override_for), for a limit that is counted per several
    /// parts: gives the value of each.
    pub fn override_for_all<P: Into<String>, V: Into<String>>(
        mut self,
        parts: impl IntoIterator<Item = (P, V)>,
        quota: impl Into<String>,
    ) -> Self {
        self.overrides.push(Override {
            quota: At::from(quota.into()),
            parts: parts
                .into_iter()
                .map(|(part, value)| (part.into(), At::from(value.into())))
                .collect(),
            at: At::from(()),
        });
        self
    }
}

// Whose quota it is may be a secret, so it is not shown.
debug_fields!(self: Override { quota: self.quota });

impl fmt::Debug for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(cost) => write!(f, "Constant({})", cost.value),
            Self::Header { name, .. } => write!(f, "Header({:?})", name.value),
            Self::Closure(_) => f.write_str("Closure"),
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Cost {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cost".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "oneOf": [
                { "type": "integer", "minimum": 0 },
                {
                    "type": "object",
                    "properties": {
                        "header": { "type": "string" },
                        "default": { "type": "integer", "minimum": 1 },
                    },
                    "required": ["header"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}
