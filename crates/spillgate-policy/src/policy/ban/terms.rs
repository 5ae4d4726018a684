//! The ban of a limit, checked and ready to be applied.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use http::StatusCode;

use super::BanRule;
use crate::policy::settle::Statuses;
use crate::{Key, Mode};

/// Whom a limit bans, and for what.
pub(crate) struct BanTerms {
    pub(crate) rule: BanRule,
    /// The place of the caller among the parts of the limit's `per`.
    pub(crate) part: usize,
    /// How many parts there are.
    pub(crate) parts: usize,
    /// True if what exceeds the limit is an offence.
    pub(crate) on_denied: bool,
    /// Responses that make a request an offence.
    pub(crate) statuses: Vec<Statuses>,
    /// True if what exceeds the limit goes ahead.
    pub(crate) refuses_next: bool,
    pub(crate) mode: Mode,
    /// With which banned callers are refused.
    pub(crate) status: StatusCode,
    /// Shared with the limit of that name in the policies before and after.
    pub(crate) counters: Arc<BanCounters>,
}

/// What a limit has counted.
#[derive(Debug, Default)]
pub(crate) struct BanCounters {
    pub(crate) strikes: AtomicU64,
    pub(crate) started: AtomicU64,
}

impl BanTerms {
    /// True if a response with this status is an offence.
    pub(crate) fn is_offence(&self, status: StatusCode) -> bool {
        self.statuses.iter().any(|statuses| statuses.contains(status))
    }

    /// The caller of a key of the limit; `None` if it has none.
    pub(crate) fn caller(&self, key: &Key) -> Option<Key> {
        key.caller(self.part, self.parts)
    }
}
