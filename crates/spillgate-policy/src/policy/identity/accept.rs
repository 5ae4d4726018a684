use std::collections::HashSet;

use http::header::{AUTHORIZATION, HeaderName, HeaderValue};

use crate::RequestView;
use crate::config::spec::Acceptor;
use crate::request_view::only;

/// A header that names a caller, and when it is believed.
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
    /// Everything that the header says, believed or not.
    pub(crate) fn claims<'r>(&self, request: &RequestView<'r>) -> impl Iterator<Item = &'r [u8]> {
        request.headers().get_all(&self.header).iter().map(|value| self.value(value))
    }

    /// What the header says, if it is believed.
    pub(crate) fn accepted<'r>(
        &self,
        request: &RequestView<'r>,
        from_trusted: bool,
    ) -> Option<&'r [u8]> {
        match self.accepts {
            Accepts::Never => return None,
            Accepts::TrustedProxies if !from_trusted => return None,
            _ => {}
        }
        let value = self.value(only(request.headers(), &self.header)?);
        (!value.is_empty() && self.accepts.takes(value)).then_some(value)
    }

    fn value<'r>(&self, value: &'r HeaderValue) -> &'r [u8] {
        let value = value.as_bytes();
        let value = if self.header == AUTHORIZATION { bearer(value) } else { value };
        value.trim_ascii()
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

debug_fields!(self: NamedBy { header: self.header });
