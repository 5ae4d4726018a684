//! The Redis protocol over real sockets, and by the clients that people use.

mod clients;
mod conservation;
mod documentation;

use std::net::SocketAddr;
use std::sync::Arc;

use spillgate::WhenFull;
use spillgate_enforce::Enforcer;
use spillgate_policy::store::Memory;
use spillgate_policy::{Gate, Limit, Policy, PolicyBuilder};
use spillgate_server::protocol::resp::{Endpoint, Password, serve};
use tokio::net::TcpListener;

struct Server {
    address: SocketAddr,
    endpoint: Arc<Endpoint<Memory>>,
}

/// Serves on a free port, with a limit `api` of 5 and 1 an hour.
async fn start(password: Option<Password>) -> Server {
    start_with([Limit::new("api", "1/h burst 5")], password).await
}

/// Serves on a free port, with these limits.
async fn start_with(limits: impl IntoIterator<Item = Limit>, password: Option<Password>) -> Server {
    let builder = limits.into_iter().fold(Policy::builder(), PolicyBuilder::limit);
    let policy = builder.build().unwrap().with_throttle(200_000, WhenFull::Evict);
    let enforcer = Enforcer::new(Gate::new(policy).unwrap());
    let endpoint = Endpoint::new(Arc::new(enforcer)).password(password);
    let endpoint = Arc::new(endpoint);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(accept(listener, Arc::clone(&endpoint)));
    Server { address, endpoint }
}

async fn accept(listener: TcpListener, endpoint: Arc<Endpoint<Memory>>) {
    while let Ok((socket, peer)) = listener.accept().await {
        let endpoint = Arc::clone(&endpoint);
        tokio::spawn(async move {
            socket.set_nodelay(true)?;
            serve(socket, Some(peer), &endpoint, std::future::pending()).await
        });
    }
}
