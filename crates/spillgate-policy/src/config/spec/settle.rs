use std::sync::Arc;

use http::{HeaderMap, StatusCode};

use super::{At, all};

/// How a cost is settled by the response.
///
/// ```
/// use spillgate_policy::{Limit, Settle};
///
/// // Only failures count: a successful login is refunded.
/// let login = Limit::new("login", "5/min").path("/login").settle(Settle::status(["401", "403"]));
/// // Reserves 500; the response says how many were used.
/// let tokens = Limit::new("tokens", "100000/min").cost(500).settle(Settle::header("x-tokens-used"));
/// ```
#[derive(Clone, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "kebab-case", deny_unknown_fields))]
#[must_use = "it does nothing until it is part of a limit"]
pub struct Settle {
    /// The cost stands if the response has one of these statuses (`401`, `4xx`), and is
    /// given back if it has another.
    #[cfg_attr(feature = "schema", schemars(default, with = "Option<OneOrMoreStatuses>"))]
    pub(crate) status: Vec<At<String>>,
    /// The response header with the actual cost. Without it, the cost stands.
    pub(crate) header: Option<At<String>>,
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) closure: Option<SettleClosure>,
}

/// Returns the actual cost of a request from its response; `None` if the cost stands.
pub(crate) type SettleClosure = Arc<dyn Fn(StatusCode, &HeaderMap) -> Option<u64> + Send + Sync>;

impl Settle {
    /// Lets the cost stand if the response has one of these statuses (`401`, `4xx`).
    pub fn status<T: Into<String>>(statuses: impl IntoIterator<Item = T>) -> Self {
        Self { status: all(statuses), ..Self::default() }
    }

    /// Reads the actual cost from a response header.
    pub fn header(name: impl Into<String>) -> Self {
        Self { header: Some(At::from(name.into())), ..Self::default() }
    }

    /// Also reads the actual cost from a response header, if the cost stands by the
    /// status.
    pub fn and_header(self, name: impl Into<String>) -> Self {
        Self { header: Some(At::from(name.into())), ..self }
    }

    /// Asks a closure for the actual cost; `None` if the cost stands. It may call the
    /// gate, to block a caller for example.
    pub fn with(
        closure: impl Fn(StatusCode, &HeaderMap) -> Option<u64> + Send + Sync + 'static,
    ) -> Self {
        Self { closure: Some(Arc::new(closure)), ..Self::default() }
    }
}

debug_fields!(self: Settle {
    status: self.status,
    header: self.header,
    closure: self.closure.is_some(),
});

/// One status or a list of them.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "describes a shape")]
pub(super) enum OneOrMoreStatuses {
    One(Status),
    More(Vec<Status>),
}

#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "describes a shape")]
pub(super) enum Status {
    Number(u16),
    Text(String),
}
