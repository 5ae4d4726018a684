use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tollgate::{Clock, SystemClock};
use tracing::warn;

use super::conversation::{Conversation, Protocol};

/// Where clients connect.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) socket: TcpListener,
    pub(super) conversation: Arc<Conversation>,
    /// One for each client that may be connected here: those of one protocol do not keep
    /// those of the other out.
    pub(super) places: Arc<Semaphore>,
    pub(super) stopped: watch::Receiver<bool>,
}

/// A client, and the place that it takes.
struct Client {
    socket: std::net::TcpStream,
    peer: SocketAddr,
    /// None at the end, when places are given up faster than they are taken.
    place: Option<OwnedSemaphorePermit>,
}

/// How many clients the system connects before they are accepted, as Tokio asks it to.
pub(super) const BACKLOG: usize = 1024;

/// How long a client that has just connected may take until its first request arrives, when
/// the server stops: it may be on its way.
const FRESH: Duration = Duration::from_millis(200);

/// Has the system ask clients that are silent whether they are still there. Some may be for as
/// long as they like, such as those that watch the server's health, and one that is gone without
/// a word would keep its place for ever. What a listener is told holds for all who connect there.
fn miss_the_vanished(socket: &TcpListener) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, Duration::from_secs(60))?;
    sockopt::set_tcp_keepintvl(socket, Duration::from_secs(15))?;
    sockopt::set_tcp_keepcnt(socket, 4)
}

impl Listener {
    pub(super) async fn bind(
        protocol: Protocol,
        address: SocketAddr,
    ) -> Result<TcpListener, String> {
        let flag = protocol.flag();
        let socket = TcpListener::bind(address).await.map_err(|error| {
            let why = match error.kind() {
                io::ErrorKind::AddrInUse => " another program listens there; stop it, or",
                io::ErrorKind::PermissionDenied => " ports below 1024 are the system's;",
                io::ErrorKind::AddrNotAvailable => " this machine has no such address;",
                _ => "",
            };
            format!("cannot listen on {address}: {error};{why} choose another with --{flag}")
        })?;
        // Without it only those are missed to whom something is sent.
        let _ = miss_the_vanished(&socket);
        Ok(socket)
    }

    /// Serves whoever connects, each in a task of its own, until it is told to stop, and
    /// whoever is connected by then. Gives back those that are still served.
    pub(super) async fn run(mut self) -> JoinSet<()> {
        let mut clients = JoinSet::new();
        while let Some(client) = self.next(&mut clients).await {
            serve(&self.conversation, &self.stopped, client, &mut clients);
        }
        // Else the socket is closed now, and those who wait to be accepted are cut off.
        if let Ok(socket) = self.socket.into_std() {
            pending(&socket)
                .for_each(|client| serve(&self.conversation, &self.stopped, client, &mut clients));
        }
        clients
    }

    /// The next client; `None` when the server stops.
    async fn next(&mut self, clients: &mut JoinSet<()>) -> Option<Client> {
        let Self { socket, conversation, places, stopped } = self;
        let mut accept = std::pin::pin!(accept(socket, conversation, places));
        loop {
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return None,
                // Whoever has left is forgotten.
                Some(_) = clients.join_next() => {}
                client = &mut accept => return client,
            }
        }
    }
}

/// Speaks with a client in a task of its own.
fn serve(
    conversation: &Arc<Conversation>,
    stopped: &watch::Receiver<bool>,
    client: Client,
    clients: &mut JoinSet<()>,
) {
    let Client { socket, peer, place } = client;
    let (spoken, mut stopped) = (Arc::clone(conversation), stopped.clone());
    let connected = SystemClock.now();
    let task = async move {
        let shutdown = async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
            let left = FRESH.saturating_sub(SystemClock.now().since(connected));
            if !left.is_zero() {
                sleep(left).await;
            }
        };
        // Here, since it is the thread that serves the client who hears of it.
        if let Ok(socket) = TcpStream::from_std(socket) {
            spoken.run(socket, peer, shutdown).await;
        }
        drop(place);
    };
    match &conversation.workers {
        Some(workers) => clients.spawn_on(task, workers.next()),
        None => clients.spawn(task),
    };
}

async fn accept(
    listener: &TcpListener,
    conversation: &Conversation,
    places: &Arc<Semaphore>,
) -> Option<Client> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    loop {
        let accepted = listener.accept().await;
        match accepted.and_then(|(socket, peer)| Ok((socket.into_std()?, peer))) {
            Ok((socket, peer)) => return Some(Client { socket, peer, place: Some(place) }),
            Err(error) => {
                // The client is gone already, or the system is short of something: then
                // trying again at once would only take more of it.
                conversation.seldom.tell(|left_out| {
                    let protocol = conversation.protocol.name();
                    warn!(protocol, %error, left_out, "cannot accept a connection");
                });
                sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// Those that the system has connected, and who wait to be accepted. Nobody is waited for,
/// and no more are taken than can have waited when it began.
fn pending(socket: &std::net::TcpListener) -> impl Iterator<Item = Client> {
    let accepted = (0..=BACKLOG).map_while(|_| match socket.accept() {
        Ok(accepted) => Some(Some(accepted)),
        // Gone before it was its turn.
        Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Some(None),
        Err(error) => {
            if error.kind() != io::ErrorKind::WouldBlock {
                warn!(%error, "cannot accept those who wait");
            }
            None
        }
    });
    accepted.flatten().filter_map(|(socket, peer)| {
        socket.set_nonblocking(true).ok()?;
        Some(Client { socket, peer, place: None })
    })
}
