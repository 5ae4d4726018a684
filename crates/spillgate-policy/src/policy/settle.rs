//! How a cost is settled by the response.

use http::header::HeaderName;
use http::{HeaderMap, StatusCode};

use crate::config::spec::SettleClosure;
use crate::request_view::only;

/// How a cost is settled by the response.
pub(crate) struct Settle {
    /// Statuses with which the cost stands; any if empty.
    pub(crate) statuses: Vec<Statuses>,
    pub(crate) header: Option<HeaderName>,
    pub(crate) closure: Option<SettleClosure>,
}

impl std::fmt::Debug for Settle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has_closure = self.closure.is_some();
        write!(f, "{:?} {:?} {has_closure}", self.statuses, self.header)
    }
}

/// One status, or all of a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statuses {
    One(u16),
    Hundred(u16),
}

impl Settle {
    /// The actual cost of a request with this response; `None` if it stands.
    pub(crate) fn actual(&self, status: StatusCode, headers: &HeaderMap) -> Option<u64> {
        if let Some(closure) = &self.closure {
            return closure(status, headers);
        }
        let counts = self.statuses.is_empty()
            || self.statuses.iter().any(|statuses| statuses.contains(status));
        if !counts {
            return Some(0);
        }
        number(headers, self.header.as_ref()?)
    }
}

impl Statuses {
    pub(crate) fn contains(self, status: StatusCode) -> bool {
        match self {
            Self::One(one) => status.as_u16() == one,
            Self::Hundred(hundred) => status.as_u16() / 100 == hundred,
        }
    }
}

/// The number in a header.
pub(super) fn number(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    only(headers, name)?.to_str().ok()?.trim().parse().ok()
}
