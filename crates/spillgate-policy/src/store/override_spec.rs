//! The quota of one caller.

use spillgate::{Quota, Timestamp};

use crate::{Key, Terms};

/// The quota of one caller under a limit, as a store needs to know it.
#[derive(Clone)]
#[non_exhaustive]
pub struct OverrideSpec {
    /// The caller.
    pub key: Key,
    /// Its quota.
    pub quota: Quota,
    /// When it ends, by the [store's clock](super::Store::now). A store in process ends it then;
    /// others are [reopened](super::Store::reopen) without it.
    pub until: Option<Timestamp>,
    /// The caller as it was written: a value for each part of the limit's `per`.
    pub(crate) values: Vec<String>,
    pub(crate) comment: Option<String>,
}

impl OverrideSpec {
    /// A quota for one caller, without end.
    #[must_use]
    pub fn new(key: Key, quota: Quota) -> Self {
        Self { key, quota, until: None, values: Vec::new(), comment: None }
    }

    pub(crate) fn terms(&self) -> Terms {
        let mut terms = Terms::permanent();
        (terms.until, terms.comment) = (self.until, self.comment.clone());
        terms
    }

    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

// Whose quota it is may be a secret, so it is not shown.
debug_fields!(self: OverrideSpec { quota: self.quota, until: self.until });
