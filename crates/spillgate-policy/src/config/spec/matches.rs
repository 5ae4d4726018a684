use std::collections::BTreeMap;

use super::At;

/// Which requests a limit is for. All conditions must hold.
#[derive(Clone, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "kebab-case", deny_unknown_fields))]
pub struct Match {
    /// Patterns of the path, any of them: `/users/{id}`, `/public/{*rest}`.
    #[cfg_attr(feature = "schema", schemars(default, with = "Option<OneOrMore>"))]
    pub(crate) path: Vec<At<String>>,
    /// Methods, any of them. `GET` stands for `HEAD` too.
    #[cfg_attr(feature = "schema", schemars(default, with = "Option<OneOrMore>"))]
    pub(crate) method: Vec<At<String>>,
    /// Hosts, any of them, without a port: `api.example.com`, `*.example.com`.
    #[cfg_attr(feature = "schema", schemars(default, with = "Option<OneOrMore>"))]
    pub(crate) host: Vec<At<String>>,
    /// Headers, all of them: the value it must have, or `*` if it must be there.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub(crate) header: BTreeMap<String, At<String>>,
    /// The domain of the descriptors that the limit is for. It is for no requests then.
    pub(crate) domain: Option<At<String>>,
    /// The entries of the descriptors that the limit is for, all of them, in any order: the
    /// value it must have, `*`, or how it must begin, such as `/v1*`. Default: every descriptor
    /// of the domain.
    pub(crate) descriptor: Option<At<BTreeMap<String, At<String>>>>,
}

// Values of headers and descriptors may be secrets, so they are not shown.
debug_fields!(self: Match {
    path: self.path,
    method: self.method,
    host: self.host,
    header: self.header.keys(),
    domain: self.domain,
    descriptor: self.descriptor.as_ref().map(|entries| entries.value.keys()),
});

/// One text or a list of them, as the file may write many things.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "describes a shape")]
pub(super) enum OneOrMore {
    One(String),
    More(Vec<String>),
}
