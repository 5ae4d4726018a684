//! How much requests matter, as it is written.

use std::collections::BTreeMap;

use spillgate::adaptive::PriorityClass;

use super::{At, Match, all};

/// How much requests matter when adaptive limits cannot let all of them through.
///
/// The class of a request is what a trusted proxy says in a header; else that of the first rule
/// that matches; else that of its caller's tier; else the default. Classes, the lowest first:
/// `sheddable`, `low`, `normal`, `high`, `critical`.
///
/// ```
/// use spillgate::adaptive::PriorityClass;
/// use spillgate_policy::{Priorities, PriorityRule};
///
/// let priorities = Priorities::new()
///     .tier("gold", PriorityClass::High)
///     .rule(PriorityRule::new(PriorityClass::Critical).path("/checkout/{*rest}"))
///     .rule(PriorityRule::new(PriorityClass::Sheddable).header("x-prefetch", "*"));
/// ```
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Priority", rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", schemars(deny_unknown_fields))]
#[must_use = "it does nothing until it is part of a policy"]
pub struct Priorities {
    /// The class of requests that nothing else gives one: `sheddable`, `low`, `normal`, `high` or
    /// `critical`. Default: `normal`.
    pub(crate) default: Option<At<String>>,
    /// The header that names the class. Believed from trusted proxies only. Default: none.
    pub(crate) header: Option<At<String>>,
    /// The class of each tier's callers.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub(crate) tier: BTreeMap<String, At<String>>,
    /// The class of requests that meet conditions. The first rule that matches decides.
    #[cfg_attr(feature = "schema", schemars(default, rename = "rule"))]
    pub(crate) rules: Vec<PriorityRule>,
    /// Where it begins in the file.
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) at: At<()>,
}

/// The class of requests that meet conditions.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "kebab-case", deny_unknown_fields))]
#[must_use = "a rule does nothing until it is part of priorities"]
pub struct PriorityRule {
    /// The class.
    pub(crate) class: At<String>,
    /// Which requests: `path`, `method`, `host` and `header`, as for a limit.
    #[cfg_attr(feature = "schema", schemars(rename = "match", with = "Conditions"))]
    pub(crate) matches: Match,
    /// Where it begins in the file.
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) at: At<()>,
}

/// The conditions of a rule: descriptors have no priority.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[allow(dead_code, reason = "describes a shape")]
struct Conditions {
    /// Patterns of the path, any of them: `/users/{id}`, `/public/{*rest}`.
    path: Option<super::matches::OneOrMore>,
    /// Methods, any of them. `GET` stands for `HEAD` too.
    method: Option<super::matches::OneOrMore>,
    /// Hosts, any of them, without a port: `api.example.com`, `*.example.com`.
    host: Option<super::matches::OneOrMore>,
    /// Headers, all of them: the value it must have, or `*` if it must be there.
    #[schemars(default)]
    header: BTreeMap<String, String>,
}

fn class_name(class: PriorityClass) -> At<String> {
    At::from(class.name().to_owned())
}

impl Priorities {
    /// Every request is of the normal class.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the class of requests that nothing else gives one. Default: normal.
    pub fn default_class(self, class: PriorityClass) -> Self {
        Self { default: Some(class_name(class)), ..self }
    }

    /// Reads the class from a request header, which is believed from trusted proxies only.
    pub fn header(self, name: impl Into<String>) -> Self {
        Self { header: Some(At::from(name.into())), ..self }
    }

    /// Sets the class of a tier's callers.
    pub fn tier(mut self, tier: impl Into<String>, class: PriorityClass) -> Self {
        self.tier.insert(tier.into(), class_name(class));
        self
    }

    /// Adds a rule. The first that matches decides.
    pub fn rule(mut self, rule: PriorityRule) -> Self {
        self.rules.push(rule);
        self
    }
}

impl PriorityRule {
    /// A class for requests that meet conditions, of which there must be one.
    pub fn new(class: PriorityClass) -> Self {
        Self { class: class_name(class), matches: Match::default(), at: At::from(()) }
    }

    /// Also for requests to paths of this pattern: `/users/{id}`, `/public/{*rest}`.
    pub fn path(mut self, pattern: impl Into<String>) -> Self {
        self.matches.path.push(At::from(pattern.into()));
        self
    }

    /// For requests with one of these methods. `GET` stands for `HEAD` too.
    pub fn methods<T: Into<String>>(mut self, methods: impl IntoIterator<Item = T>) -> Self {
        self.matches.method = all(methods);
        self
    }

    /// Also for requests to this host: `api.example.com`, `*.example.com`.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.matches.host.push(At::from(host.into()));
        self
    }

    /// For requests that have this header with this value, or any if it is `*`.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.matches.header.insert(name.into(), At::from(value.into()));
        self
    }
}
