//! A policy as it is written, by a file or a builder: nothing is checked yet.
//!
//! The file is decoded into these types, a builder is one of them, and the JSON
//! schema is generated from them: what one can say, all can.

mod adaptive;
mod ban;
mod concurrent;
mod domain;
mod identity;
mod item;
mod limit;
mod limit_builder;
mod matches;
mod priority;
mod settle;
mod tier;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

pub use self::adaptive::{Adaptive, AdaptiveBounds};
pub(crate) use self::adaptive::{Level, SignalClosure};
pub use self::ban::BanSpec;
pub(crate) use self::concurrent::{Amount, Concurrent};
pub use self::domain::{Domain, Metadata, MetadataValue, Node, NodeLimit, NodeMode, NodeQuota};
pub(crate) use self::identity::{API_KEY, USER};
pub use self::identity::{Accept, Acceptor, HeaderIdentity, Identity};
pub(crate) use self::item::{ListItem, WrittenTerms};
pub(crate) use self::limit::{Cost, MODE, NamedOverride, OUTAGE, SHARING, START, WHEN_FULL};
pub use self::limit::{Limit, Mode, Override};
pub use self::matches::Match;
pub use self::priority::{Priorities, PriorityRule};
pub use self::settle::Settle;
pub(crate) use self::settle::SettleClosure;
pub use self::tier::Tier;
use crate::policy::route::PathSpelling;

/// A policy: how callers are identified, the allow and block lists, and the limits.
#[derive(Clone, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "policy", deny_unknown_fields))]
pub(crate) struct Spec {
    /// How callers are identified.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub(crate) identity: Identity,
    /// Callers who are never limited: addresses (`192.0.2.7`), ranges
    /// (`192.0.2.0/24`, `2001:db8::/32`), `key:NAME` for an API key, `user:NAME`; or tables with an
    /// `entry`, when it `expires`, and a `comment`.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub(crate) allow: Vec<ListItem>,
    /// Callers who are always refused, written like those of `allow`. Goes before
    /// `allow`.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub(crate) block: Vec<ListItem>,
    /// Which spellings of a path are alike.
    #[cfg_attr(feature = "schema", schemars(default, rename = "path-spelling"))]
    pub(crate) path_spelling: PathSpelling,
    /// The limits. A request meets every one that matches it.
    #[cfg_attr(feature = "schema", schemars(default, rename = "limit"))]
    pub(crate) limits: Vec<Limit>,
    /// True if a file says nothing of limits, not even that there are none. Most likely it was
    /// emptied by mistake.
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) lacks_limits: bool,
    /// True if a file says nothing at all.
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) is_blank: bool,
    /// Quotas of single callers, each with the name of its limit.
    #[cfg_attr(feature = "schema", schemars(default, rename = "override"))]
    pub(crate) overrides: Vec<NamedOverride>,
    /// The tiers by name: callers who have quotas of their own.
    #[cfg_attr(feature = "schema", schemars(default, rename = "tier"))]
    pub(crate) tiers: BTreeMap<String, Tier>,
    /// How much requests matter, when adaptive limits cannot let all of them through.
    pub(crate) priority: Option<Priorities>,
    /// Trees of limits for descriptors, which only a program can give.
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) domains: Vec<Domain>,
    /// Whether the program may say who sent a request.
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) names_callers: bool,
    /// Whether quotas may come with calls also if no limit is for descriptors.
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) call_quotas: bool,
}

/// A value and where in the file it was written.
#[derive(Clone, Default)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    /// Bytes of the file's text; `None` if a builder was given it.
    pub(crate) span: Option<Range<usize>>,
}

impl<T> At<T> {
    pub(crate) fn new(value: T, span: Range<usize>) -> Self {
        Self { value, span: Some(span) }
    }
}

impl<T: fmt::Debug> fmt::Debug for At<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T> From<T> for At<T> {
    fn from(value: T) -> Self {
        Self { value, span: None }
    }
}

/// Several values given to a builder.
pub(crate) fn all<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Vec<At<String>> {
    values.into_iter().map(|value| At::from(value.into())).collect()
}

#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> schemars::JsonSchema for At<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<T>()
    }
}
