use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// A network between a client and a server, which can be slow or broken.
pub(crate) struct Proxy {
    /// Where it listens.
    pub(crate) port: u16,
    net: Arc<Net>,
    listener: JoinHandle<()>,
}

struct Net {
    /// By how much everything is late, in each direction, in microseconds.
    latency: AtomicU64,
    /// Connections with a lower number are silent: what is sent on them arrives nowhere.
    silent_below: AtomicU64,
    /// Connections with a lower number are cut.
    cut_below: watch::Sender<u64>,
    /// The number of the next connection.
    next: AtomicU64,
}

impl Proxy {
    /// A network that leads to this port.
    pub(crate) async fn to(server: u16) -> Self {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = socket.local_addr().unwrap().port();
        let net = Arc::new(Net {
            latency: AtomicU64::new(0),
            silent_below: AtomicU64::new(0),
            cut_below: watch::Sender::new(0),
            next: AtomicU64::new(0),
        });
        let listener = tokio::spawn(listen(socket, server, net.clone()));
        Self { port, net, listener }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Makes everything late, half of this in each direction.
    pub(crate) fn set_latency(&self, latency: Duration) {
        self.net.latency.store(latency.as_micros() as u64 / 2, Ordering::SeqCst);
    }

    /// Cuts all connections that there are.
    pub(crate) fn cut(&self) {
        self.net.cut_below.send_replace(self.connections());
    }

    /// Makes all connections that there are half-open: neither side hears of the other again.
    pub(crate) fn silence(&self) {
        self.net.silent_below.store(self.connections(), Ordering::SeqCst);
    }

    /// Makes all connections half-open, and those to come, until it is [cut](Self::cut).
    pub(crate) fn silence_all(&self, is_silent: bool) {
        let below = if is_silent { u64::MAX } else { 0 };
        self.net.silent_below.store(below, Ordering::SeqCst);
    }

    /// How many connections there have been.
    pub(crate) fn connections(&self) -> u64 {
        self.net.next.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listener.abort();
        self.net.cut_below.send_replace(u64::MAX);
    }
}

async fn listen(socket: TcpListener, server: u16, net: Arc<Net>) {
    while let Ok((client, _)) = socket.accept().await {
        let number = net.next.fetch_add(1, Ordering::SeqCst);
        let net = net.clone();
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await else {
                return;
            };
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            let mut cut_below = net.cut_below.subscribe();
            tokio::select! {
                () = carry(from_client, to_server, &net, number) => {}
                () = carry(from_server, to_client, &net, number) => {}
                _ = cut_below.wait_for(|below| *below > number) => {}
            }
        });
    }
}

/// Carries bytes in one direction until either side ends.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, net: &Net, number: u64) {
    let (sender, mut late) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let reading = async move {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(read) = from.read(&mut bytes).await
            && read > 0
        {
            let latency = Duration::from_micros(net.latency.load(Ordering::SeqCst));
            let _ = sender.send((Instant::now() + latency, bytes[..read].to_vec()));
        }
    };
    let writing = async move {
        while let Some((due, bytes)) = late.recv().await {
            sleep_until(due).await;
            let is_silent = number < net.silent_below.load(Ordering::SeqCst);
            if !is_silent && to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = writing => {}
    }
}
