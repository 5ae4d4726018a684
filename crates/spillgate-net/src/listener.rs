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

use crate::{ConnectionSlots, LogLimit, OpenConnections, Protocol, Slot, Tls, Workers, connection};

/// Accepts the connections of a protocol.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    service: Arc<Service>,
    slots: ConnectionSlots,
    stopped: watch::Receiver<bool>,
    /// Accepted, and waiting for a slot.
    accepted: Option<Accepted>,
}

/// What connections are served with.
#[derive(Debug)]
struct Service {
    protocol: Arc<dyn Protocol>,
    tls: Option<Arc<Tls>>,
    workers: Option<Arc<Workers>>,
    log_limit: LogLimit,
}

type Accepted = (std::net::TcpStream, SocketAddr);

/// The backlog of accepted connections, up to `net.core.somaxconn`. A proxy opens many at once, and
/// takes a server for dead if one has to wait.
pub(crate) const BACKLOG: usize = 1024;

/// Time for the first request of a new connection when the server stops.
const FIRST_REQUEST_GRACE: Duration = Duration::from_millis(200);

/// Listens on an address. The error says what is wrong with it, and which `flag` sets another.
pub fn bind(address: SocketAddr, flag: &str) -> Result<TcpListener, String> {
    let socket = listen(address).map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::AddrInUse => " another program listens there; stop it, or",
            io::ErrorKind::PermissionDenied => " ports below 1024 need a privilege;",
            io::ErrorKind::AddrNotAvailable => " this machine has no such address;",
            _ => "",
        };
        format!("cannot listen on {address}: {error};{why} choose another with --{flag}")
    })?;
    // Best effort: without it a client that is gone is noticed only when something is sent.
    let _ = set_keepalive(&socket);
    Ok(socket)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restarted server gets its port although connections of the last one linger.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG as u32)
}

/// Turns on TCP keepalive: a vanished client that may be silent for long, such as one that watches
/// health, would keep its slot. Accepted connections inherit the options of the listener.
fn set_keepalive(socket: &TcpListener) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, Duration::from_secs(60))?;
    sockopt::set_tcp_keepintvl(socket, Duration::from_secs(15))?;
    sockopt::set_tcp_keepcnt(socket, 4)
}

impl Listener {
    /// Serves a protocol on a socket, to at most so many connections at once, until `stopped` is
    /// true.
    #[must_use]
    pub fn new(
        socket: TcpListener,
        protocol: Arc<dyn Protocol>,
        max_connections: usize,
        stopped: watch::Receiver<bool>,
    ) -> Self {
        let slots = ConnectionSlots::new(max_connections.min(protocol.max_connections()));
        let log_limit = LogLimit::default();
        let service = Arc::new(Service { protocol, tls: None, workers: None, log_limit });
        Self { socket, service, slots, stopped, accepted: None }
    }

    /// Requires TLS.
    #[must_use]
    pub fn tls(self, tls: Option<Arc<Tls>>) -> Self {
        self.with(|service| service.tls = tls)
    }

    /// Serves connections on these threads, instead of those of the current runtime.
    #[must_use]
    pub fn workers(self, workers: Option<Arc<Workers>>) -> Self {
        self.with(|service| service.workers = workers)
    }

    fn with(mut self, change: impl FnOnce(&mut Service)) -> Self {
        // Nobody shares it before it runs.
        if let Some(service) = Arc::get_mut(&mut self.service) {
            change(service);
        }
        self
    }

    /// Serves each connection in its own task until it is stopped, and returns the open ones.
    pub async fn run(mut self) -> OpenConnections {
        let mut open = JoinSet::new();
        while let Some((accepted, slot)) = self.next(&mut open).await {
            self.service.spawn(accepted, slot, &self.stopped, &mut open);
        }
        let accepted = self.accepted.into_iter();
        // Otherwise the socket closes now, and connections in the backlog are reset.
        let pending = self.socket.into_std().into_iter().flat_map(pending);
        for accepted in accepted.chain(pending) {
            self.service.spawn(accepted, Slot::default(), &self.stopped, &mut open);
        }
        open
    }

    /// The next connection; `None` when the server stops.
    async fn next(&mut self, open: &mut OpenConnections) -> Option<(Accepted, Slot)> {
        let Self { socket, service, slots, stopped, accepted } = self;
        // Kept outside, since a connection that was accepted is served although the server stops.
        let mut arrival = pin!(async {
            if accepted.is_none() {
                *accepted = Some(service.accept(socket, slots).await);
            }
            let slot = slots.take().await;
            accepted.take().map(|accepted| (accepted, slot))
        });
        loop {
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return None,
                // Frees what ended tasks hold.
                Some(_) = open.join_next() => {}
                arrived = &mut arrival => return arrived,
            }
        }
    }
}

impl Service {
    /// Serves a connection in a task of its own.
    fn spawn(
        self: &Arc<Self>,
        (socket, peer): Accepted,
        slot: Slot,
        stopped: &watch::Receiver<bool>,
        open: &mut OpenConnections,
    ) {
        let (service, mut stopped) = (Arc::clone(self), stopped.clone());
        let accepted_at = SystemClock.now();
        let task = async move {
            // Pinned here and lent: a future that is passed on takes its size twice.
            let shutdown = pin!(async move {
                let _ = stopped.wait_for(|stopped| *stopped).await;
                let age = SystemClock.now().since(accepted_at);
                let left = FIRST_REQUEST_GRACE.saturating_sub(age);
                if !left.is_zero() {
                    sleep(left).await;
                }
            });
            // Here, since the thread that registers a socket is the one that is notified.
            let Ok(socket) = TcpStream::from_std(socket) else { return };
            let Self { protocol, tls, log_limit, .. } = &*service;
            let (protocol, tls) = (&**protocol, tls.as_deref());
            let served = connection::serve(protocol, tls, (socket, peer), shutdown, log_limit);
            if slot.hold(pin!(slot.scope(served))).await {
                let protocol = protocol.name();
                log_limit.log(|suppressed| {
                    warn!(
                        protocol, %peer, suppressed,
                        "max connections reached; closed the oldest without a complete request"
                    );
                });
            }
        };
        match &self.workers {
            Some(workers) => open.spawn_on(task, workers.next()),
            None => open.spawn(task),
        };
    }

    async fn accept(&self, listener: &TcpListener, slots: &mut ConnectionSlots) -> Accepted {
        loop {
            let accepted = listener.accept().await;
            match accepted.and_then(|(socket, peer)| Ok((socket.into_std()?, peer))) {
                Ok(accepted) => return accepted,
                Err(error) => {
                    // The client is gone, or the system is out of resources: back off.
                    let is_out_of_files = [Errno::MFILE, Errno::NFILE]
                        .iter()
                        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
                    if is_out_of_files {
                        slots.close_oldest();
                    }
                    self.log_limit.log(|suppressed| {
                        let protocol = self.protocol.name();
                        warn!(protocol, %error, suppressed, "cannot accept a connection");
                    });
                    sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }
}

/// The connections in the backlog, without waiting for more.
fn pending(socket: std::net::TcpListener) -> impl Iterator<Item = Accepted> {
    let accepted = (0..=BACKLOG).map_while(move |_| match socket.accept() {
        Ok(accepted) => Some(Some(accepted)),
        // Closed by the client meanwhile.
        Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Some(None),
        Err(error) => {
            if error.kind() != io::ErrorKind::WouldBlock {
                warn!(%error, "cannot accept pending connections");
            }
            None
        }
    });
    accepted.flatten().filter_map(|(socket, peer)| {
        socket.set_nonblocking(true).ok()?;
        Some((socket, peer))
    })
}
