use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::rustls;
use tracing::{debug, warn};

use crate::{LogLimit, MaybeTls, Protocol, Shutdown, Tls};

/// A connection that a client has made, after the TLS handshake.
#[derive(Debug)]
#[non_exhaustive]
pub struct Connection {
    /// The stream, with `TCP_NODELAY`.
    pub io: MaybeTls,
    /// The address of the client, or of a proxy in front of it.
    pub peer: SocketAddr,
}

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Does the TLS handshake, if there is a certificate, and serves the connection. Large futures are
/// boxed, since each connection has a task as large as the largest.
pub(crate) async fn serve(
    protocol: &dyn Protocol,
    tls: Option<&Tls>,
    (socket, peer): (TcpStream, SocketAddr),
    mut shutdown: Shutdown<'_>,
    log_limit: &LogLimit,
) {
    // Best effort: without it replies are late.
    let _ = socket.set_nodelay(true);
    let io = match tls {
        None => MaybeTls::Plain(socket),
        Some(tls) => {
            let handshake = Box::pin(handshake(tls, protocol.alpn(), socket));
            let secured = tokio::select! {
                secured = handshake => secured,
                () = &mut shutdown => return,
            };
            match secured {
                Ok(secured) => secured,
                Err(error) => return report_handshake(protocol, peer, &error, log_limit),
            }
        }
    };
    let _open = protocol.connections().open();
    if let Err(error) = protocol.serve(Connection { io, peer }, shutdown).await {
        // Clients disconnect all the time.
        debug!(protocol = protocol.name(), %peer, %error, "connection failed");
    }
}

async fn handshake(tls: &Tls, alpn: &[&[u8]], socket: TcpStream) -> io::Result<MaybeTls> {
    timeout(HANDSHAKE_TIMEOUT, tls.acceptor(alpn).accept(socket)).await?.map(MaybeTls::tls)
}

fn report_handshake(
    protocol: &dyn Protocol,
    peer: SocketAddr,
    error: &io::Error,
    log_limit: &LogLimit,
) {
    let protocol = protocol.name();
    let why = match error.kind() {
        // As the TCP probe of a load balancer does.
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
            debug!(protocol, %peer, %error, "client disconnected during the TLS handshake");
            return;
        }
        io::ErrorKind::TimedOut => "TLS handshake timed out",
        _ if is_not_tls(error) => "refused a connection without TLS",
        _ => "TLS handshake failed",
    };
    log_limit.log(|suppressed| warn!(protocol, %peer, %error, suppressed, "{why}"));
}

/// True if what arrived is no TLS message at all.
fn is_not_tls(error: &io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref());
    matches!(error, Some(rustls::Error::InvalidMessage(_)))
}
