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
use crate::{Access, App, http};

/// Answers over HTTP and the Redis protocol
///
/// Without options it listens on loopback with a small example policy:
///
///   tollgate serve
///   redis-cli -p 6390 CL.THROTTLE user:42 15 30 60
///   curl -d '{"limit":"api","key":"203.0.113.7"}' -H 'content-type: application/json' \
///     http://127.0.0.1:8390/v1/check
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Serve {
    /// Where to listen for HTTP: an address of loopback, since there is no token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8390")]
    http: SocketAddr,
    /// Where to listen for the Redis protocol. There is no password, so it should be an
    /// address that only trusted programs can reach
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6390")]
    resp: SocketAddr,
    /// The policy that is asked
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
        let (policy, text) = match &self.policy {
            Some(file) => (Policy::load(file)?, std::fs::read_to_string(file)?),
            None => {
                let text = include_str!("example.toml");
                (Policy::from_toml(text)?, text.to_owned())
            }
        };
        let gate = Arc::new(Gate::new(policy)?);
        let endpoint = Endpoint::new(Throttle::new(self.capacity)?, Arc::clone(&gate));
        let app = App::new(gate, text, endpoint).with_access(Access::loopback(None));
        let app = Arc::new(app);
        let listener = listen(self.resp, "--resp").await?;
        let http = listen(self.http, "--http").await?;
        let address = listener.local_addr()?;
        println!("tollgate listens on http://{}", http.local_addr()?);
        println!("tollgate listens on {address} (Redis protocol). Try:");
        println!("  redis-cli -p {} CL.THROTTLE user:42 15 30 60", address.port());
        println!("  redis-cli -p {} TG.CHECK api 203.0.113.7", address.port());

        app.readiness().start();
        let (stop, stopped) = watch::channel(());
        tokio::select! {
            accepted = accept(&listener, &app, self.connections, &stopped, converse) => accepted?,
            accepted = accept(&http, &app, self.connections, &stopped, converse_http) => accepted?,
            told = told_to_stop() => told?,
        }
        drop((listener, http, stopped));
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

async fn listen(address: SocketAddr, flag: &str) -> Result<TcpListener, String> {
    TcpListener::bind(address)
        .await
        .map_err(|error| format!("cannot listen on {address}: {error}; choose another with {flag}"))
}

/// Serves whoever connects, each in a task of its own.
async fn accept<F>(
    listener: &TcpListener,
    app: &Arc<App>,
    connections: usize,
    stopped: &watch::Receiver<()>,
    converse: impl Fn(TcpStream, SocketAddr, Arc<App>, watch::Receiver<()>) -> F,
) -> std::io::Result<()>
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS)));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return Ok(()) };
        // The system is short of something, or the client is gone already.
        let Ok((socket, peer)) = listener.accept().await else { continue };
        let conversation = converse(socket, peer, Arc::clone(app), stopped.clone());
        tokio::spawn(async move {
            // That a client has gone away is nobody's business.
            let _ = conversation.await;
            drop(place);
        });
    }
}

async fn converse(
    socket: TcpStream,
    peer: SocketAddr,
    app: Arc<App>,
    mut stopped: watch::Receiver<()>,
) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let shutdown = async move {
        let _ = stopped.changed().await;
    };
    resp::serve(socket, Some(peer), app.resp(), shutdown).await
}

async fn converse_http(
    socket: TcpStream,
    peer: SocketAddr,
    app: Arc<App>,
    mut stopped: watch::Receiver<()>,
) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let shutdown = async move {
        let _ = stopped.changed().await;
    };
    http::serve(socket, Some(peer), &app, shutdown).await
}
