//! Which address a request comes from, behind proxies or not.

mod forwarded;
mod node;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::policy::address::{Address, AddressSet};
use crate::request_view::only;

/// A header in which proxies name their client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForwardingHeader {
    Forwarded,
    XForwardedFor,
    XRealIp,
    CfConnectingIp,
}

/// A client's address and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientIp {
    pub(crate) address: Address,
    pub(crate) source: Source,
}

/// Where the client's address comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The connection: the client is the peer.
    Peer,
    /// A header that a trusted proxy sent.
    Header(ForwardingHeader),
}

/// The address of a request's client.
///
/// It is the peer's, unless the peer is a trusted proxy and sent one of the
/// headers. The first of them that is there decides. If it cannot be understood,
/// the client is the peer again: the next one may be the client's own invention.
pub(crate) fn client_ip(
    peer: Address,
    headers: &HeaderMap,
    trusted: &AddressSet,
    sources: &[ForwardingHeader],
) -> ClientIp {
    named_by_proxy(peer, headers, trusted, sources)
        .unwrap_or(ClientIp { address: peer, source: Source::Peer })
}

fn named_by_proxy(
    peer: Address,
    headers: &HeaderMap,
    trusted: &AddressSet,
    sources: &[ForwardingHeader],
) -> Option<ClientIp> {
    if !trusted.contains(peer) {
        return None;
    }
    let header = *sources.iter().find(|header| headers.contains_key(header.header_name()))?;
    let address = header.client(headers, trusted)?;
    Some(ClientIp { address, source: Source::Header(header) })
}

impl ForwardingHeader {
    const ALL: [Self; 4] =
        [Self::Forwarded, Self::XForwardedFor, Self::XRealIp, Self::CfConnectingIp];

    /// The header of a name in lower case. The error says which there are.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|header| header.name() == name).ok_or_else(|| {
            let [others @ .., last] = Self::ALL.map(Self::name);
            let others = others.join(", ");
            format!("{name:?} is not a header that names clients; use {others} or {last}")
        })
    }

    /// The name in lower case.
    pub(crate) fn name(self) -> &'static str {
        self.header_name().as_str()
    }

    /// The name as headers are looked up by it without parsing it each time.
    pub(crate) fn header_name(self) -> &'static HeaderName {
        static FORWARDED: HeaderName = HeaderName::from_static("forwarded");
        static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
        static X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
        static CF_CONNECTING_IP: HeaderName = HeaderName::from_static("cf-connecting-ip");
        match self {
            Self::Forwarded => &FORWARDED,
            Self::XForwardedFor => &X_FORWARDED_FOR,
            Self::XRealIp => &X_REAL_IP,
            Self::CfConnectingIp => &CF_CONNECTING_IP,
        }
    }

    fn client(self, headers: &HeaderMap, trusted: &AddressSet) -> Option<Address> {
        // Several lines are one list.
        let lines = headers.get_all(self.header_name()).iter().rev().map(HeaderValue::as_bytes);
        match self {
            Self::Forwarded => furthest(lines.flat_map(forwarded::clients), trusted),
            Self::XForwardedFor => {
                let elements = lines.flat_map(|line| line.rsplit(|byte| *byte == b','));
                furthest(elements.map(|element| node::parse(element.trim_ascii())), trusted)
            }
            Self::XRealIp | Self::CfConnectingIp => {
                node::parse(only(headers, self.header_name())?.as_bytes().trim_ascii())
            }
        }
    }
}

/// The client that is furthest from here as far as it can be believed.
///
/// Each proxy appends whom it was called by, so the clients, the last first, are
/// believed as long as those who named them are trusted. One that cannot be read
/// ends the walk too. So nothing that a client sends changes the outcome: neither
/// other addresses nor garbage give it a fresh limit.
fn furthest(
    clients: impl Iterator<Item = Option<Address>>,
    trusted: &AddressSet,
) -> Option<Address> {
    let mut believed = None;
    for client in clients.map_while(|client| client) {
        believed = Some(client);
        if !trusted.contains(client) {
            break;
        }
    }
    believed
}

#[cfg(test)]
mod tests;
