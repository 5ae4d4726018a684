use std::collections::BTreeMap;

use super::{Amount, At, all};

/// Callers who have quotas of their own.
///
/// ```
/// use spillgate_policy::Tier;
///
/// let gold = Tier::new().callers(["api-key:k1", "user:42"]).quota("public", "100/s burst 200");
/// ```
#[derive(Clone, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "kebab-case"))]
#[must_use = "a tier does nothing until it is part of a policy"]
pub struct Tier {
    /// Who is in it: `api-key:NAME`, `user:NAME`, `ip:ADDRESS`. Others can be named by
    /// `identity.tier-header`.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub(crate) callers: Vec<At<String>>,
    /// Every other key is the name of a limit, with the quota that the tier has there: a number
    /// if the limit is on concurrency.
    #[cfg_attr(feature = "schema", schemars(flatten))]
    pub(crate) quotas: BTreeMap<String, At<Amount>>,
    /// Where the tier begins in the file.
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) at: At<()>,
}

impl Tier {
    /// A tier of nobody, with no quota.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names callers of the tier: `api-key:NAME`, `user:NAME`, `ip:ADDRESS`.
    pub fn callers<T: Into<String>>(mut self, callers: impl IntoIterator<Item = T>) -> Self {
        self.callers.extend(all(callers));
        self
    }

    /// Gives the tier a quota under the limit of that name.
    pub fn quota(mut self, limit: impl Into<String>, quota: impl Into<String>) -> Self {
        self.quotas.insert(limit.into(), At::from(Amount::Quota(quota.into())));
        self
    }

    /// Lets so many requests of each caller of the tier be in progress at once, under the
    /// [concurrency limit](crate::Limit::concurrent) of that name.
    pub fn concurrent(mut self, limit: impl Into<String>, permits: u64) -> Self {
        self.quotas.insert(limit.into(), At::from(Amount::Permits(permits)));
        self
    }
}

// Callers may be secrets, so they are not shown.
debug_fields!(self: Tier {
    callers: format_args!("{} of them", self.callers.len()),
    quotas: self.quotas,
});
