use std::collections::HashSet;

use http::header::{AUTHORIZATION, HeaderName};

use crate::Request;
use crate::request::only;
use crate::spec::Acceptor;

/// A header that names a caller, and when it is believed.
#[derive(Debug)]
pub(crate) struct NamedBy {
    pub(crate) header: HeaderName,
    pub(crate) accepts: Accepts,
}

/// When a header that a client could have invented is believed.
///
/// Where there is an acceptor it alone decides, also for what a trusted proxy sends:
/// proxies pass on what their clients have written. For the same reason nothing is
/// believed from anyone unless the policy says which header is.
pub(crate) enum Accepts {
    Never,
    TrustedProxies,
    Any,
    Keys(HashSet<Box<[u8]>>),
    Acceptor(Acceptor),
}

impl NamedBy {
    /// What the header says, believed or not.
    pub(crate) fn claimed<'r>(&self, request: &Request<'r>) -> Option<&'r [u8]> {
        let value = only(request.headers(), &self.header)?.as_bytes();
        let value = if self.header == AUTHORIZATION { bearer(value) } else { value };
        Some(value.trim_ascii()).filter(|value| !value.is_empty())
    }

    /// What the header says, if it is believed.
    pub(crate) fn accepted<'r>(
        &self,
        request: &Request<'r>,
        from_trusted: bool,
    ) -> Option<&'r [u8]> {
        if !from_trusted && matches!(self.accepts, Accepts::TrustedProxies) {
            return None;
        }
        self.claimed(request).filter(|value| self.accepts.takes(value))
    }
}

impl Accepts {
    fn takes(&self, value: &[u8]) -> bool {
        match self {
            Self::Never => false,
            Self::TrustedProxies | Self::Any => true,
            Self::Keys(keys) => keys.contains(value),
            Self::Acceptor(Acceptor(accepts)) => accepts(value),
        }
    }
}

/// The token of a value such as `Bearer abc`; other schemes are taken whole.
fn bearer(value: &[u8]) -> &[u8] {
    match value.split_at_checked(b"bearer ".len()) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => token,
        _ => value,
    }
}

impl std::fmt::Debug for Accepts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Never => f.write_str("Never"),
            Self::TrustedProxies => f.write_str("TrustedProxies"),
            Self::Any => f.write_str("Any"),
            Self::Keys(keys) => write!(f, "Keys({} of them)", keys.len()),
            Self::Acceptor(_) => f.write_str("Acceptor"),
        }
    }
}
