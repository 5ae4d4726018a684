use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use spillgate::{Start, WhenFull};

#[cfg(feature = "schema")]
use super::matches::OneOrMore;
use super::{Adaptive, At, BanSpec, Concurrent, Match, Settle, WrittenTerms};
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
    /// How much, over how long: `10/s burst 20`, `1000/day`, `5 per 10 s`. One of this,
    /// `concurrent` and `adaptive` is required.
    pub(crate) quota: Option<At<String>>,
    /// How many requests may be in progress at once, in place of `quota`: `50`, or
    /// `{ limit = 50, ttl = "30s" }`, 1 to 1000000. `ttl` is how long permits live without a sign
    /// of life of the node or program that holds them, 1s to 1d. Default: 30s.
    pub(crate) concurrent: Option<Concurrent>,
    /// Lets the limit follow load, in place of `quota`: what moves it, and between which bounds.
    pub(crate) adaptive: Option<Adaptive>,
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
    /// Bans callers who offend repeatedly. Default: nobody is banned.
    pub(crate) ban: Option<BanSpec>,
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
pub(crate) const MODE: [(&str, Mode); 2] = [("enforce", Mode::Enforce), ("shadow", Mode::Shadow)];
pub(crate) const OUTAGE: [(&str, Outage); 3] =
    [("local", Outage::Local), ("open", Outage::Open), ("closed", Outage::Closed)];

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
    pub(crate) quota: Option<At<String>>,
    /// How many requests of the caller may be in progress at once, in place of `quota`.
    pub(crate) concurrent: Option<At<u64>>,
    /// Every other key is a part of the limit's `per`, with its value: `caller =
    /// "api-key:partner-7"`, `ip = "192.0.2.7"`, `"path:id" = "42"`.
    #[cfg_attr(feature = "schema", schemars(flatten))]
    pub(crate) parts: BTreeMap<String, At<String>>,
    #[cfg_attr(feature = "schema", schemars(flatten))]
    pub(crate) terms: WrittenTerms,
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

// Whose quota it is may be a secret, so it is not shown.
debug_fields!(self: Override { quota: self.quota, concurrent: self.concurrent });

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
