use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tollgate_policy::{Gate, Policy};

use crate::resp::{self, Endpoint, Throttle};

/// Answers over the Redis protocol
///
/// Without options it listens on loopback with a small example policy:
///
///   tollgate serve
///   redis-cli -p 6390 CL.THROTTLE user:42 15 30 60
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Serve {
    /// Where to listen for the Redis protocol. There is no password, so it should be an
    /// address that only trusted programs can reach
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6390")]
    resp: SocketAddr,
    /// The policy whose limits TG.CHECK asks
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// How many keys of CL.THROTTLE there is room for, at 26 bytes each
    #[arg(long, value_name = "KEYS", default_value_t = 1_000_000)]
    capacity: usize,
    /// How many clients may be connected at once. Others wait
    #[arg(long, value_name = "CLIENTS", default_value_t = 10_000)]
    connections: usize,
}

impl Serve {
    #[tokio::main]
    pub(super) async fn run(self) -> Result<(), Box<dyn Error>> {
        let policy = match &self.policy {
            Some(file) => Policy::load(file)?,
            None => Policy::from_toml(include_str!("example.toml"))?,
        };
        let gate = Gate::new(policy)?;
        let endpoint = Arc::new(Endpoint::new(Throttle::new(self.capacity)?, gate));
        let listener = TcpListener::bind(self.resp).await.map_err(|error| {
            format!("cannot listen on {}: {error}; choose another with --resp", self.resp)
        })?;
        let address = listener.local_addr()?;
        println!("tollgate listens on {address} (Redis protocol). Try:");
        println!("  redis-cli -p {} CL.THROTTLE user:42 15 30 60", address.port());
        println!("  redis-cli -p {} TG.CHECK api 203.0.113.7", address.port());

        let (stop, stopped) = watch::channel(());
        tokio::select! {
            accepted = accept(&listener, &endpoint, self.connections, &stopped) => accepted?,
            told = told_to_stop() => told?,
        }
        drop((listener, stopped));
        // Each connection answers what it has received, and ends.
        stop.send_replace(());
        stop.closed().await;
        Ok(())
    }
}

/// Waits for a person's or a system's word to stop.
async fn told_to_stop() -> std::io::Result<()> {
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminated.recv() => Ok(()),
    }
}

/// Serves whoever connects, each in a task of its own.
async fn accept(
    listener: &TcpListener,
    endpoint: &Arc<Endpoint<Gate>>,
    connections: usize,
    stopped: &watch::Receiver<()>,
) -> std::io::Result<()> {
    let places = Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS)));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return Ok(()) };
        // The system is short of something, or the client is gone already.
        let Ok((socket, peer)) = listener.accept().await else { continue };
        let (endpoint, stopped) = (Arc::clone(endpoint), stopped.clone());
        tokio::spawn(async move {
            // That a client has gone away is nobody's business.
            let _ = converse(socket, peer, &endpoint, stopped).await;
            drop(place);
        });
    }
}

async fn converse(
    socket: TcpStream,
    peer: SocketAddr,
    endpoint: &Endpoint<Gate>,
    mut stopped: watch::Receiver<()>,
) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let shutdown = async move {
        let _ = stopped.changed().await;
    };
    resp::serve(socket, Some(peer), endpoint, shutdown).await
}
