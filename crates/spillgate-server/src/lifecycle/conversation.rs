use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::rustls;
use tokio_rustls::server::TlsStream;
use tracing::{debug, warn};

use super::seldom::Seldom;
use super::workers::Workers;
use crate::protocol::{grpc, http, resp};
use crate::tls::{H2, HTTP1, Tls};
use crate::{App, proxy};

/// Which protocol is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http,
    Resp,
    Grpc,
    Proxy,
    /// HTTP as well, for probes and operators.
    Admin,
}

impl Protocol {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Resp => "resp",
            Self::Grpc => "grpc",
            Self::Proxy => "proxy",
            Self::Admin => "admin",
        }
    }

    /// True if clients have threads of their own, and false if they share those of everyone.
    pub(super) const fn has_workers(self) -> bool {
        match self {
            // A policy can be replaced, and every caller be counted, which would hold others up.
            Self::Http | Self::Admin => false,
            // Measured: it gains nothing, and a single client with a pipeline loses.
            Self::Resp => false,
            // Measured: a quarter more calls, and a sixth more requests.
            Self::Grpc | Self::Proxy => true,
        }
    }

    /// The flag that says where it is spoken.
    pub(super) const fn flag(self) -> &'static str {
        match self {
            Self::Proxy => "listen",
            protocol => protocol.name(),
        }
    }

    /// What clients agree on that speak TLS.
    const fn in_tls(self) -> &'static [&'static [u8]] {
        match self {
            Self::Http | Self::Admin | Self::Resp => &[],
            Self::Grpc => &[H2],
            Self::Proxy => &[H2, HTTP1],
        }
    }
}

/// What is spoken with every client of a listener.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) protocol: Protocol,
    pub(super) app: Arc<App>,
    pub(super) tls: Option<Arc<Tls>>,
    /// Where it is spoken, if not wherever there is time.
    pub(super) workers: Option<Arc<Workers>>,
    /// Whatever goes wrong goes wrong often.
    pub(super) seldom: Seldom,
}

/// How long a client may take for the first messages of TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);

impl Conversation {
    /// Speaks with a client until either leaves.
    ///
    /// What is large is in a box of its own: a task is as large as the largest of all that
    /// it may come to do, and there is one for each client.
    pub(super) async fn run(
        &self,
        socket: TcpStream,
        peer: SocketAddr,
        mut shutdown: Pin<&mut (impl Future<Output = ()> + Send)>,
    ) {
        // Without it replies are late, and that is all.
        let _ = socket.set_nodelay(true);
        let spoken = match &self.tls {
            None => self.speak(socket, peer, shutdown).await,
            Some(tls) => {
                let secured = tokio::select! {
                    secured = Box::pin(self.secure(tls, socket, peer)) => secured,
                    () = &mut shutdown => return,
                };
                let Some(secured) = secured else { return };
                self.speak(secured, peer, shutdown).await
            }
        };
        if let Err(error) = spoken {
            // That a client has gone away is nobody's business.
            debug!(protocol = self.protocol.name(), %peer, %error, "a connection broke");
        }
    }

    async fn secure(
        &self,
        tls: &Tls,
        socket: TcpStream,
        peer: SocketAddr,
    ) -> Option<Box<TlsStream<TcpStream>>> {
        let secured = timeout(HANDSHAKE, tls.acceptor(self.protocol.in_tls()).accept(socket)).await;
        let secured = secured.unwrap_or_else(|elapsed| Err(elapsed.into()));
        secured.map(Box::new).map_err(|error| self.refuse(peer, &error)).ok()
    }

    fn refuse(&self, peer: SocketAddr, error: &io::Error) {
        let protocol = self.protocol.name();
        let why = match error.kind() {
            // As a balancer does that looks whether anybody listens.
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                debug!(protocol, %peer, %error, "a client left before TLS was agreed on");
                return;
            }
            io::ErrorKind::TimedOut => "a client took too long to agree on TLS",
            _ if speaks_something_else(error) => "refused a connection without TLS",
            _ => "a client did not agree on TLS",
        };
        self.seldom.tell(|left_out| warn!(protocol, %peer, %error, left_out, "{why}"));
    }

    async fn speak(
        &self,
        io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: SocketAddr,
        shutdown: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        let app = &*self.app;
        // Of no type that can be told: else the compiler follows all of them at once, and gives up.
        let spoken: BoxFuture<'_, io::Result<()>> = match self.protocol {
            Protocol::Http | Protocol::Admin => {
                Box::pin(http::serve(io, Some(peer), app, shutdown))
            }
            Protocol::Resp => Box::pin(resp::serve(io, Some(peer), app.resp(), shutdown)),
            Protocol::Grpc => Box::pin(grpc::serve(io, Some(peer), app, shutdown)),
            Protocol::Proxy => match app.proxy() {
                Some(proxy) => {
                    let is_secure = self.tls.is_some();
                    Box::pin(proxy::serve(io, peer, is_secure, app, proxy, shutdown))
                }
                None => return Ok(()),
            },
        };
        spoken.await
    }
}

/// True if what has arrived is no message of TLS at all.
fn speaks_something_else(error: &io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref());
    matches!(error, Some(rustls::Error::InvalidMessage(_)))
}
