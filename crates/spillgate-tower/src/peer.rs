use std::io::{self, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Extensions;

/// The address at the other end of the connection, for servers that this crate does not
/// know: put it in the extensions of each request.
///
/// It goes before what axum and tonic say. It is the peer of the socket (or what the
/// PROXY protocol says of it), not an address from a header: proxies that may speak for
/// their clients are named in the policy.
///
/// ```
/// use spillgate_tower::PeerAddr;
///
/// let peer = std::net::SocketAddr::from(([203, 0, 113, 7], 54321));
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(PeerAddr(peer.ip()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddr(pub IpAddr);

type PeerClosure = dyn Fn(&Extensions) -> Option<IpAddr> + Send + Sync;

/// Knows where the peer's address is.
#[derive(Clone, Default)]
pub(crate) struct Peers {
    closure: Option<Arc<PeerClosure>>,
    reported: Arc<AtomicBool>,
}

impl Peers {
    pub(crate) fn ask(
        &mut self,
        closure: impl Fn(&Extensions) -> Option<IpAddr> + Send + Sync + 'static,
    ) {
        self.closure = Some(Arc::new(closure));
    }

    pub(crate) fn find(&self, extensions: &mut Extensions) -> Option<IpAddr> {
        if let Some(closure) = &self.closure {
            return closure(extensions);
        }
        let peer = extensions.get::<PeerAddr>().map(|peer| peer.0);
        peer.or_else(|| from_axum(extensions)).or_else(|| from_tonic(extensions))
    }

    /// Logs once what to do, on standard error if the program has no log.
    pub(crate) fn report_missing(&self) {
        // Relaxed: nothing else depends on who is the first.
        if self.closure.is_some() || self.reported.swap(true, Ordering::Relaxed) {
            return;
        }
        if tracing::dispatcher::has_been_set() {
            tracing::error!(target: "spillgate", "{MISSING}");
        } else {
            // If it cannot be written, nobody reads it.
            let _ = writeln!(io::stderr(), "spillgate: {MISSING}");
        }
    }
}

const MISSING: &str = "the peer's address of a request is not known, so callers without an \
    accepted key share one allowance, \"anonymous\"; with axum, serve the router with \
    `into_make_service_with_connect_info::<SocketAddr>()`; elsewhere, insert a \
    `spillgate_tower::PeerAddr` into the extensions of each request, or tell \
    `SpillgateLayer::peer_from` where the address is";

#[cfg(feature = "axum")]
fn from_axum(extensions: &Extensions) -> Option<IpAddr> {
    use std::net::SocketAddr;

    use axum::extract::connect_info::{ConnectInfo, MockConnectInfo};

    let address = extensions.get().map(|ConnectInfo::<SocketAddr>(address)| address);
    // What a test says instead, as axum's own extractor has it.
    let mock = || extensions.get().map(|MockConnectInfo::<SocketAddr>(address)| address);
    address.or_else(mock).map(SocketAddr::ip)
}

#[cfg(not(feature = "axum"))]
fn from_axum(_: &Extensions) -> Option<IpAddr> {
    None
}

/// Asks tonic's own request, which also knows about TLS if tonic does.
#[cfg(feature = "tonic")]
fn from_tonic(extensions: &mut Extensions) -> Option<IpAddr> {
    let mut request = tonic::Request::new(());
    std::mem::swap(request.extensions_mut(), extensions);
    let address = request.remote_addr();
    std::mem::swap(request.extensions_mut(), extensions);
    address.map(|address| address.ip())
}

#[cfg(not(feature = "tonic"))]
fn from_tonic(_: &mut Extensions) -> Option<IpAddr> {
    None
}
