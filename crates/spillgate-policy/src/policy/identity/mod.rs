//! Who is calling.

mod accept;

use std::borrow::Cow;
use std::sync::Arc;

use http::header::HeaderName;

pub(crate) use self::accept::{Accepts, NamedBy};
use crate::policy::address::{Address, AddressSet, Prefixes};
use crate::policy::client_ip::{ClientIp, ForwardingHeader, Source, client_ip};
use crate::request_view::only;
use crate::{Caller, RequestView};

/// Identifies callers, as a policy says.
pub(crate) struct Identifier {
    pub(crate) order: Vec<CallerKind>,
    pub(crate) api_key: NamedBy,
    pub(crate) user: NamedBy,
    pub(crate) tier_header: Option<HeaderName>,
    pub(crate) trusted: AddressSet,
    pub(crate) forwarding: Vec<ForwardingHeader>,
    pub(crate) prefixes: Prefixes,
    pub(crate) closure: Option<IdentifyClosure>,
    /// True if the program names callers, be it by the closure or request by request: then any
    /// may call.
    pub(crate) asks_program: bool,
}

/// What can name a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerKind {
    ApiKey,
    User,
    Ip,
}

/// Names the caller in place of the policy; `None` stands for "anonymous".
pub(crate) type IdentifyClosure =
    Arc<dyn for<'r> Fn(&RequestView<'r>) -> Option<Caller<'r>> + Send + Sync>;

/// The sender of a request.
pub(crate) struct Sender<'r> {
    pub(crate) who: Who<'r>,
    /// The client's address, whole.
    pub(crate) client: Option<ClientIp>,
    /// True if a trusted proxy sent the request.
    pub(crate) from_trusted: bool,
}

/// A caller as it is counted: by name, by an address cut to its prefix, or neither.
pub(crate) enum Who<'r> {
    Named(Caller<'r>),
    At(Address),
    Nobody,
}

impl Who<'_> {
    pub(crate) fn caller(&self) -> Caller<'_> {
        match self {
            Self::Named(caller) => caller.borrowed(),
            Self::At(address) => Caller::Ip((*address).into()),
            Self::Nobody => Caller::Anonymous,
        }
    }
}

impl Identifier {
    #[inline(always)]
    pub(crate) fn sender<'r>(&self, request: &RequestView<'r>) -> Sender<'r> {
        let peer = request.peer().map(Address::from);
        let from_trusted = peer.is_some_and(|peer| self.trusted.contains(peer));
        let client = peer.map(|peer| match from_trusted {
            true => client_ip(peer, request.headers(), &self.trusted, &self.forwarding),
            false => ClientIp { address: peer, source: Source::Peer },
        });
        let who = match (request.caller(), &self.closure) {
            (Some(known), _) => Who::Named(known.borrowed()),
            (None, Some(identify)) => identify(request).map_or(Who::Nobody, Who::Named),
            (None, None) => self.first_known(request, client, from_trusted),
        };
        Sender { who, client, from_trusted }
    }

    #[inline(always)]
    fn first_known<'r>(
        &self,
        request: &RequestView<'r>,
        client: Option<ClientIp>,
        from_trusted: bool,
    ) -> Who<'r> {
        for kind in &self.order {
            let named = match kind {
                CallerKind::Ip => match client {
                    Some(client) => return Who::At(self.cut(client.address)),
                    None => None,
                },
                CallerKind::ApiKey => {
                    let key = self.api_key.accepted(request, from_trusted);
                    key.map(|key| Caller::ApiKey(Cow::Borrowed(key)))
                }
                CallerKind::User => {
                    let user = self.user.accepted(request, from_trusted);
                    user.map(|user| Caller::User(Cow::Borrowed(user)))
                }
            };
            if let Some(caller) = named {
                return Who::Named(caller);
            }
        }
        Who::Nobody
    }

    /// What may name a caller of a kind.
    pub(crate) fn named_by(&self, kind: CallerKind) -> Option<&NamedBy> {
        match kind {
            CallerKind::ApiKey => Some(&self.api_key),
            CallerKind::User => Some(&self.user),
            CallerKind::Ip => None,
        }
    }

    /// True if requests may have something of this kind that is believed.
    pub(crate) fn can_name(&self, kind: CallerKind) -> bool {
        let is_believed = |named_by: &NamedBy| match &named_by.accepts {
            Accepts::Never => false,
            Accepts::TrustedProxies => !self.trusted.is_empty(),
            Accepts::Keys(keys) => !keys.is_empty(),
            Accepts::Any | Accepts::Acceptor(_) => true,
        };
        self.asks_program || self.named_by(kind).is_none_or(is_believed)
    }

    /// True if a request may be this caller's.
    pub(crate) fn can_be(&self, caller: &Caller<'_>) -> bool {
        let is_known = |named_by: &NamedBy, value: &[u8]| match &named_by.accepts {
            Accepts::Keys(keys) => keys.contains(value),
            _ => true,
        };
        let (kind, value) = match caller {
            Caller::ApiKey(key) => (CallerKind::ApiKey, &**key),
            Caller::User(user) => (CallerKind::User, &**user),
            Caller::Ip(_) => (CallerKind::Ip, &b""[..]),
            Caller::Anonymous => return true,
        };
        let is_listed = || self.named_by(kind).is_none_or(|named_by| is_known(named_by, value));
        self.asks_program || (self.order.contains(&kind) && self.can_name(kind) && is_listed())
    }

    /// True if the tier that a header names may be believed.
    pub(crate) fn believes_tiers(&self) -> bool {
        self.tier_header.is_some() && !self.trusted.is_empty()
    }

    /// The tier that a trusted proxy says the caller has.
    pub(crate) fn tier<'r>(
        &self,
        request: &RequestView<'r>,
        from_trusted: bool,
    ) -> Option<&'r [u8]> {
        let header = self.tier_header.as_ref().filter(|_| from_trusted)?;
        only(request.headers(), header).map(http::HeaderValue::as_bytes)
    }

    /// A caller as it is counted: an address is cut.
    pub(crate) fn as_counted<'c>(&self, caller: Caller<'c>) -> Caller<'c> {
        match caller {
            Caller::Ip(address) => Caller::Ip(self.cut(address.into()).into()),
            other => other,
        }
    }

    /// The prefix of an address by which it is counted.
    #[inline]
    pub(crate) fn cut(&self, address: Address) -> Address {
        self.prefixes.cut(address)
    }
}

debug_fields!(self: Identifier {
    order: self.order,
    api_key: self.api_key,
    user: self.user,
    trusted: self.trusted,
});
