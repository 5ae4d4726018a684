use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use prometheus_client::registry::Registry;

use crate::{Connection, ConnectionCount};

/// Ready when the server stops: what has arrived is still answered, then the connection ends.
pub type Shutdown<'a> = Pin<&'a mut (dyn Future<Output = ()> + Send)>;

/// Which threads serve the connections of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// The multi-threaded runtime that everything else runs on, too.
    Shared,
    /// [`Workers`](crate::Workers): a connection stays on one thread.
    PerCore,
}

/// A network protocol, with everything that it needs to answer.
///
/// A [`Listener`](crate::Listener) accepts connections, does the TLS handshake, bounds and counts
/// connections, and has the protocol [serve](Self::serve) each in a task of its own.
pub trait Protocol: fmt::Debug + Send + Sync + 'static {
    /// Its name in logs, metrics and settings.
    fn name(&self) -> &'static str;

    /// Serves one connection until either side closes it, or until `shutdown` is ready.
    /// Fails if the connection fails, or the client violates the protocol.
    fn serve<'a>(
        &'a self,
        connection: Connection,
        shutdown: Shutdown<'a>,
    ) -> BoxFuture<'a, io::Result<()>>;

    /// Counts the connections that are served.
    fn connections(&self) -> &Arc<ConnectionCount>;

    /// The flag that sets its address.
    fn flag(&self) -> &'static str {
        self.name()
    }

    /// The URL under which clients reach it.
    fn url(&self, address: SocketAddr, has_tls: bool) -> String {
        let scheme = if has_tls { "https" } else { "http" };
        format!("{scheme}://{address}")
    }

    /// The protocols offered in the TLS handshake (ALPN); none to offer nothing.
    fn alpn(&self) -> &'static [&'static [u8]] {
        &[]
    }

    /// Which threads serve its connections.
    fn threads(&self) -> Threads {
        Threads::Shared
    }

    /// A bound on its connections, if it is lower than the configured one.
    fn max_connections(&self) -> usize {
        usize::MAX
    }

    /// Open files per connection, if connections count towards the open-file limit.
    fn files_per_connection(&self) -> usize {
        1
    }

    /// Registers the metrics of the protocol itself. Those of its connections are everyone's.
    fn register(&self, registry: &mut Registry) {
        let _ = registry;
    }

    /// A background task, until the server stops.
    fn background(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }
}
