use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;
use spillgate::{Clock, SystemClock};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::warn;

use super::conversation::{Conversation, Protocol};
use super::places::{Places, Seat};

/// Where clients connect.
#[derive(Debug)]
pub(super) struct Listener {
    socket: TcpListener,
    conversation: Arc<Conversation>,
    /// One for each client that may be connected here: those of one protocol do not keep
    /// those of the other out.
    places: Places,
    stopped: watch::Receiver<bool>,
    /// Whoever has been accepted, and waits for a place.
    newcomer: Option<Newcomer>,
}

type Newcomer = (std::net::TcpStream, SocketAddr);

/// A client, and the place that it takes.
struct Client {
    socket: std::net::TcpStream,
    peer: SocketAddr,
    seat: Seat,
}

/// How many clients the admin listener has room for: those who watch a server are few.
pub(super) const ADMIN_PLACES: usize = 256;

/// How many clients the system connects before they are accepted, if its own bound
/// (`net.core.somaxconn`) permits. A proxy opens many connections at once, and one that has to wait
/// takes this server for one that is away.
pub(super) const BACKLOG: usize = 1024;

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A server that is started again gets its port although connections of the last one linger.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG as u32)
}

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
    /// With room for so many clients.
    pub(super) fn new(
        socket: TcpListener,
        conversation: Conversation,
        clients: usize,
        stopped: watch::Receiver<bool>,
    ) -> Self {
        let places = match conversation.protocol {
            Protocol::Admin => clients.min(ADMIN_PLACES),
            _ => clients,
        };
        let (conversation, places) = (Arc::new(conversation), Places::new(places));
        Self { socket, conversation, places, stopped, newcomer: None }
    }

    pub(super) async fn bind(
        protocol: Protocol,
        address: SocketAddr,
    ) -> Result<TcpListener, String> {
        let flag = protocol.flag();
        let socket = listen(address).map_err(|error| {
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
        let newcomer = self.newcomer.into_iter();
        // Else the socket is closed now, and those who wait to be accepted are cut off.
        let pending = self.socket.into_std().into_iter().flat_map(pending);
        for (socket, peer) in newcomer.chain(pending) {
            let client = Client { socket, peer, seat: Seat::default() };
            serve(&self.conversation, &self.stopped, client, &mut clients);
        }
        clients
    }

    /// The next client; `None` when the server stops.
    async fn next(&mut self, clients: &mut JoinSet<()>) -> Option<Client> {
        let Self { socket, conversation, places, stopped, newcomer } = self;
        // Kept outside, since whoever has been accepted when the server stops is still served.
        let mut arrival = pin!(async {
            if newcomer.is_none() {
                *newcomer = Some(accept(socket, conversation, places).await);
            }
            let seat = places.take().await;
            newcomer.take().map(|(socket, peer)| Client { socket, peer, seat })
        });
        loop {
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return None,
                // Whoever has left is forgotten.
                Some(_) = clients.join_next() => {}
                client = &mut arrival => return client,
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
    let Client { socket, peer, seat } = client;
    let (spoken, mut stopped) = (Arc::clone(conversation), stopped.clone());
    let connected = SystemClock.now();
    let task = async move {
        // Pinned here and lent: whoever takes a future has room for it twice.
        let shutdown = pin!(async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
            let left = FRESH.saturating_sub(SystemClock.now().since(connected));
            if !left.is_zero() {
                sleep(left).await;
            }
        });
        // Here, since it is the thread that serves the client who hears of it.
        let Ok(socket) = TcpStream::from_std(socket) else { return };
        let conversation = pin!(seat.scope(spoken.run(socket, peer, shutdown)));
        if seat.hold(conversation).await {
            let protocol = spoken.protocol.name();
            spoken.seldom.tell(|left_out| {
                warn!(
                    protocol, %peer, left_out,
                    "all connections are taken; closed the oldest that had sent no whole request"
                );
            });
        }
    };
    match &conversation.workers {
        Some(workers) => clients.spawn_on(task, workers.next()),
        None => clients.spawn(task),
    };
}

async fn accept(
    listener: &TcpListener,
    conversation: &Conversation,
    places: &mut Places,
) -> Newcomer {
    loop {
        let accepted = listener.accept().await;
        match accepted.and_then(|(socket, peer)| Ok((socket.into_std()?, peer))) {
            Ok(newcomer) => return newcomer,
            Err(error) => {
                // The client is gone already, or the system is short of something: then
                // trying again at once would only take more of it.
                let is_short_of_files = [Errno::MFILE, Errno::NFILE]
                    .iter()
                    .any(|short| error.raw_os_error() == Some(short.raw_os_error()));
                if is_short_of_files {
                    places.ask_the_oldest_to_leave();
                }
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
fn pending(socket: std::net::TcpListener) -> impl Iterator<Item = Newcomer> {
    let accepted = (0..=BACKLOG).map_while(move |_| match socket.accept() {
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
        Some((socket, peer))
    })
}
