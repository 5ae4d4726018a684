use std::collections::BTreeMap;
use std::time::Duration;

use spillgate::{AlgorithmKind, Quota};

use crate::envoy::is_wildcard;

/// A tree of limits for the descriptors of one domain, as configuration files of
/// envoyproxy/ratelimit write it. A policy file cannot write one: a program gives it to
/// [`PolicyBuilder::domain`](crate::PolicyBuilder::domain).
///
/// A descriptor goes down the tree by its entries, in their order: at each level to the node
/// with its key and value, else to the first wildcard that matches, else to the node with its
/// key alone. It never turns back. What it is limited by is the node at which its last entry
/// ends, if there is one.
#[derive(Clone, Debug)]
pub struct Domain {
    /// The domain's name.
    pub name: String,
    /// The nodes of the first level.
    pub nodes: Vec<Node>,
}

/// A node of a [tree](Domain): one entry of a descriptor.
#[derive(Clone)]
pub struct Node {
    /// The entry's key.
    pub key: String,
    /// The entry's value. One with `*` in it is a wildcard, in which each `*` stands for any text,
    /// also an empty one. `None` for any value, each of which is counted apart.
    pub value: Option<String>,
    /// What descriptors are limited by that end here. `None` if they are known, but not
    /// limited.
    pub limit: Option<NodeLimit>,
    /// The nodes of the next level.
    pub nodes: Vec<Node>,
    /// True if all values that the node matches are counted together.
    pub shares_values: bool,
}

/// What descriptors are limited by that end at a [node](Node).
#[derive(Clone, Debug)]
pub struct NodeLimit {
    /// How much.
    pub quota: NodeQuota,
    /// Whether it refuses.
    pub mode: NodeMode,
    /// The name that answers show, and that others replace it by.
    pub name: Option<String>,
    /// The names of limits that do not count in a call in which this one is met.
    pub replaces: Vec<String>,
    /// What responses carry while the limit is not exceeded.
    pub metadata: Metadata,
}

/// What responses carry about a [limit](NodeLimit), by name, for the proxy.
pub type Metadata = BTreeMap<String, MetadataValue>;

/// A value of [`Metadata`]: as JSON has them.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataValue {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// Values in an order.
    List(Vec<Self>),
    /// Values by their names.
    Table(Metadata),
}

/// How much a [node](Node) lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeQuota {
    /// Everything.
    Unlimited,
    /// Nothing, ever.
    Closed {
        /// The period over which nothing is let through, for answers to show.
        period: Duration,
    },
    /// So much.
    Counted {
        /// How much, over how long.
        quota: Quota,
        /// How the quota is spent.
        algorithm: AlgorithmKind,
    },
}

/// Whether a [node](Node) refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NodeMode {
    /// Descriptors that exceed it are denied.
    #[default]
    Enforce,
    /// Descriptors that exceed it are counted, and allowed.
    Shadow,
    /// Descriptors that exceed it are counted, also beyond it, and responses say so. A call is
    /// denied if it exceeds every limit in this mode that it meets.
    Quota,
    /// As [`Shadow`](Self::Shadow), and among limits in [quota mode](Self::Quota) one that is
    /// never exceeded.
    ShadowQuota,
}

impl NodeMode {
    /// True if it counts among limits in quota mode.
    pub(crate) fn is_quota(self) -> bool {
        matches!(self, Self::Quota | Self::ShadowQuota)
    }
}

impl Domain {
    /// A domain without nodes.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), nodes: Vec::new() }
    }
}

impl Node {
    /// A node for any value of a key, without a limit.
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        Self { key: key.into(), value: None, limit: None, nodes: Vec::new(), shares_values: false }
    }

    /// True if it is for many values, each of which is counted by itself.
    pub(crate) fn counts_apart(&self) -> bool {
        let is_for_many = self.value.as_deref().is_none_or(is_wildcard);
        is_for_many && !self.shares_values
    }
}

impl NodeLimit {
    /// A limit that refuses, and that has no name of its own.
    #[must_use]
    pub fn new(quota: NodeQuota) -> Self {
        Self {
            quota,
            mode: NodeMode::Enforce,
            name: None,
            replaces: Vec::new(),
            metadata: Metadata::new(),
        }
    }
}

// Values of descriptors may be secrets, so they are not shown.
debug_fields!(self: Node { key: self.key, limit: self.limit, nodes: self.nodes });
