use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use spillgate::WhenFull;

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
pub struct Limit {
    /// What the limit is called in answers, headers, logs and metrics: letters, digits,
    /// `-`, `_` and `.`, at most 64.
    pub(crate) name: At<String>,
    /// Which requests meet the limit. Default: all.
    #[cfg_attr(feature = "schema", schemars(default, rename = "match"))]
    pub(crate) matches: Match,
    /// True if no request meets the limit: it counts only where a program names it, in
    /// `/v1/check`, `SG.CHECK` or `Gate::check_limit`. Default: false.
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
    /// For how many callers with something spent at once there is room. Default: 100000,
    /// less if there are more than ten limits; 1 for a `global` limit.
    pub(crate) capacity: Option<At<u64>>,
    /// What becomes of a new caller when there is no room: `evict` forgets whoever has
    /// spent least, `protect` does so unless that one is exhausted, `deny` refuses the newcomer.
    /// Default: `evict`.
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
    /// What a request costs: a number, or a request header that tells it. Default: 1.
    pub(crate) cost: Option<Cost>,
    /// How the cost is corrected when the response is there. Default: it is not.
    pub(crate) settle: Option<Settle>,
    /// Quotas of single callers.
    #[cfg_attr(feature = "schema", schemars(default, rename = "override"))]
    pub(crate) overrides: Vec<Override>,
}

/// How it is written what becomes of a new caller when there is no room.
pub(crate) const WHEN_FULL: [(&str, WhenFull); 3] =
    [("evict", WhenFull::Evict), ("protect", WhenFull::Protect), ("deny", WhenFull::Deny)];

/// Whether a limit refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
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
    #[must_use]
    pub fn new(name: impl Into<String>, quota: impl Into<String>) -> Self {
        Self::written(At::from(name.into()), At::from(quota.into()))
    }

    /// True if all that meet the limit are counted together, so that it needs room for one.
    pub(crate) fn counts_together(&self) -> bool {
        match (&self.per, &self.matches.descriptor) {
            (Some(per), _) => per.iter().any(|part| part.value == "global"),
            (None, Some(entries)) => entries.value.values().all(|at| !at.value.ends_with('*')),
            (None, None) => false,
        }
    }

    pub(crate) fn written(name: At<String>, quota: At<String>) -> Self {
        Self {
            name,
            matches: Match::default(),
            by_name: None,
            per: None,
            quota,
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

    /// Limits nothing but checks that name the limit, such as
    /// [`Gate::check_limit`](crate::Gate::check_limit): no request meets it.
    #[must_use]
    pub fn by_name(mut self) -> Self {
        self.by_name = Some(At::from(true));
        self
    }

    /// Limits requests to paths of this pattern, beside those given before:
    /// `/users/{id}`, `/public/{*rest}`.
    #[must_use]
    pub fn path(mut self, pattern: impl Into<String>) -> Self {
        self.matches.path.push(At::from(pattern.into()));
        self
    }

    /// Limits requests with one of these methods. `GET` stands for `HEAD` too.
    #[must_use]
    pub fn methods<T: Into<String>>(mut self, methods: impl IntoIterator<Item = T>) -> Self {
        self.matches.method = all(methods);
        self
    }

    /// Limits requests to this host, beside those given before: `api.example.com`,
    /// `*.example.com`.
    #[must_use]
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.matches.host.push(At::from(host.into()));
        self
    }

    /// Limits requests that have this header with this value, or any if it is `*`.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.matches.header.insert(name.into(), At::from(value.into()));
        self
    }

    /// Limits descriptors of this domain in place of requests: all of them, unless
    /// [`descriptor`](Self::descriptor) says which.
    #[must_use]
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.matches.domain = Some(At::from(domain.into()));
        self
    }

    /// Limits descriptors with this entry, beside those given before, and no other: with this
    /// value, any if it is `*`, or all that begin with what stands before a last `*`.
    #[must_use]
    pub fn descriptor(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let entries = self.matches.descriptor.get_or_insert_default();
        entries.value.insert(key.into(), At::from(value.into()));
        self
    }

    /// Says what is counted apart: `caller`, `ip`, `api-key`, `user`, `header:NAME`,
    /// `path:PARAMETER`, several of them together, or `global`; of descriptors
    /// `descriptor:KEY`, `descriptor` or `global`.
    #[must_use]
    pub fn per<T: Into<String>>(mut self, parts: impl IntoIterator<Item = T>) -> Self {
        self.per = Some(all(parts));
        self
    }

    /// Spends the quota in another way than a token bucket does.
    #[must_use]
    pub fn algorithm(mut self, kind: spillgate::AlgorithmKind) -> Self {
        self.algorithm = Some(At::from(kind.to_string()));
        self
    }

    /// Lets callers never seen begin with nothing to spend.
    #[must_use]
    pub fn start_empty(mut self) -> Self {
        self.start = Some(At::from("empty".to_owned()));
        self
    }

    /// Makes room for so many callers with something spent at once.
    #[must_use]
    pub fn capacity(mut self, callers: u64) -> Self {
        self.capacity = Some(At::from(callers));
        self
    }

    /// Says what becomes of a new caller when there is no room.
    #[must_use]
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        let word = WHEN_FULL.iter().find(|(_, known)| *known == when_full);
        self.when_full = word.map(|(word, _)| At::from((*word).to_owned()));
        self
    }

    /// Lets callers owe no more than so much beyond their burst when costs are settled, in
    /// place of what a day refills or ten bursts, whichever is more.
    #[must_use]
    pub fn max_debt(mut self, tokens: u64) -> Self {
        self.max_debt = Some(At::from(tokens));
        self
    }

    /// Says how nodes share the limit, if they share a store.
    #[must_use]
    pub fn sharing(mut self, sharing: Sharing) -> Self {
        let word = match sharing {
            Sharing::Strict => "strict",
            Sharing::Leased => "leased",
        };
        self.sharing = Some(At::from(word.to_owned()));
        self
    }

    /// Says what happens while a shared store cannot be reached.
    #[must_use]
    pub fn outage(mut self, outage: Outage) -> Self {
        let word = match outage {
            Outage::Local => "local",
            Outage::Open => "open",
            Outage::Closed => "closed",
        };
        self.outage = Some(At::from(word.to_owned()));
        self
    }

    /// Says whether the limit refuses.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(At::from(mode));
        self
    }

    /// Says what every request costs.
    #[must_use]
    pub fn cost(mut self, cost: u64) -> Self {
        self.cost = Some(Cost::Constant(At::from(cost)));
        self
    }

    /// Reads the cost from a request header that trusted proxies set: at least 1, and
    /// `default` if it is not there.
    #[must_use]
    pub fn cost_header(mut self, name: impl Into<String>, default: u64) -> Self {
        let default = Some(At::from(default));
        self.cost = Some(Cost::Header { name: At::from(name.into()), default });
        self
    }

    /// Asks a closure for the cost of a request. A cost of 0 always passes, and is not
    /// counted. The closure must not call the gate.
    #[must_use]
    pub fn cost_of(
        mut self,
        cost: impl Fn(&RequestView<'_>) -> u64 + Send + Sync + 'static,
    ) -> Self {
        self.cost = Some(Cost::Closure(Arc::new(cost)));
        self
    }

    /// Corrects the cost when the response is there.
    #[must_use]
    pub fn settle(mut self, settle: Settle) -> Self {
        self.settle = Some(settle);
        self
    }

    /// Gives one caller a quota of its own: `("caller", "api-key:partner-7")`.
    #[must_use]
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
    #[must_use]
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

/// Whose quota it is may be a secret, so it is not shown.
impl fmt::Debug for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Override").field("quota", &self.quota).finish_non_exhaustive()
    }
}

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
