use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::seldom::Seldom;
use crate::tls::Tls;
use crate::{App, http, resp};

/// Which protocol is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http,
    Resp,
}

impl Protocol {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Resp => "resp",
        }
    }
}

/// Where clients connect, and what they share.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) protocol: Protocol,
    pub(super) socket: TcpListener,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) app: Arc<App>,
    /// One for each client that may be connected here: those of one protocol do not keep
    /// those of the other out.
    pub(super) places: Arc<Semaphore>,
    pub(super) stopped: watch::Receiver<bool>,
}

/// How long a client may take for the first messages of TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);

impl Listener {
    pub(super) async fn bind(
        protocol: Protocol,
        address: SocketAddr,
    ) -> Result<TcpListener, String> {
        let name = protocol.name();
        TcpListener::bind(address).await.map_err(|error| {
            let why = match error.kind() {
                io::ErrorKind::AddrInUse => "another program listens there; stop it, or",
                io::ErrorKind::PermissionDenied => "ports below 1024 are the system's;",
                io::ErrorKind::AddrNotAvailable => "this machine has no such address;",
                _ => "",
            };
            let space = if why.is_empty() { "" } else { " " };
            format!("cannot listen on {address}: {error};{space}{why} choose another with --{name}")
        })
    }

    /// Serves whoever connects, each in a task of its own, until it is told to stop. Gives
    /// back those that are still served.
    pub(super) async fn run(mut self) -> JoinSet<()> {
        let mut clients = JoinSet::new();
        let seldom = Seldom::default();
        loop {
            let Some((socket, place)) = self.next(&mut clients, &seldom).await else {
                return clients;
            };
            let (app, tls, mut stopped) =
                (Arc::clone(&self.app), self.tls.clone(), self.stopped.clone());
            let protocol = self.protocol;
            clients.spawn(async move {
                let shutdown = Box::pin(async move {
                    let _ = stopped.wait_for(|stopped| *stopped).await;
                });
                let (socket, peer) = socket;
                // That a client has gone away is nobody's business.
                if let Err(error) = converse(protocol, socket, peer, tls, &app, shutdown).await {
                    debug!(protocol = protocol.name(), %peer, %error, "connection ended");
                }
                drop(place);
            });
        }
    }

    /// The next client and its place; `None` when the server stops.
    async fn next(
        &mut self,
        clients: &mut JoinSet<()>,
        seldom: &Seldom,
    ) -> Option<((TcpStream, SocketAddr), OwnedSemaphorePermit)> {
        let accept = async {
            loop {
                let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
                    return None;
                };
                match self.socket.accept().await {
                    Ok(client) => return Some((client, place)),
                    Err(error) => {
                        // The client is gone already, or the system is short of something:
                        // then trying again at once would only take more of it.
                        seldom.tell(|left_out| {
                            let protocol = self.protocol.name();
                            warn!(protocol, %error, left_out, "cannot accept a connection");
                        });
                        sleep(Duration::from_millis(20)).await;
                    }
                }
            }
        };
        tokio::pin!(accept);
        loop {
            tokio::select! {
                biased;
                _ = self.stopped.wait_for(|stopped| *stopped) => return None,
                Some(_) = clients.join_next() => {}
                accepted = &mut accept => return accepted,
            }
        }
    }
}

/// What is large is in a box of its own: a task is as large as the largest of all that it
/// may come to do, and there is one for each client.
async fn converse(
    protocol: Protocol,
    socket: TcpStream,
    peer: SocketAddr,
    tls: Option<Arc<Tls>>,
    app: &App,
    shutdown: impl Future<Output = ()> + Unpin,
) -> io::Result<()> {
    socket.set_nodelay(true)?;
    match tls {
        None => speak(protocol, socket, peer, app, shutdown).await,
        Some(tls) => {
            let secured = timeout(HANDSHAKE, Box::pin(tls.acceptor().accept(socket))).await??;
            speak(protocol, Box::new(secured), peer, app, shutdown).await
        }
    }
}

async fn speak(
    protocol: Protocol,
    io: impl AsyncRead + AsyncWrite + Unpin,
    peer: SocketAddr,
    app: &App,
    shutdown: impl Future<Output = ()> + Unpin,
) -> io::Result<()> {
    match protocol {
        Protocol::Http => Box::pin(http::serve(io, Some(peer), app, shutdown)).await,
        Protocol::Resp => Box::pin(resp::serve(io, Some(peer), app.resp(), shutdown)).await,
    }
}
