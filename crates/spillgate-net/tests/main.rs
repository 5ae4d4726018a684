//! A listener, and a protocol that echoes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use spillgate_net::metrics::ConnectionMetrics;
use spillgate_net::{
    Activity, Connection, ConnectionCount, Listener, OpenConnections, Protocol, Shutdown, drain,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Sends back every byte. One is a request.
#[derive(Debug, Default)]
struct Echo {
    connections: Arc<ConnectionCount>,
}

impl Protocol for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn serve<'a>(
        &'a self,
        Connection { mut io, .. }: Connection,
        mut shutdown: Shutdown<'a>,
    ) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let activity = Activity::current();
            loop {
                let byte = tokio::select! {
                    byte = io.read_u8() => byte?,
                    () = &mut shutdown => return Ok(()),
                };
                let _in_progress = Activity::begin_request(&*activity);
                io.write_u8(byte).await?;
            }
        })
    }

    fn connections(&self) -> &Arc<ConnectionCount> {
        &self.connections
    }
}

struct Server {
    address: SocketAddr,
    protocol: Arc<Echo>,
    stop: watch::Sender<bool>,
    listener: JoinHandle<OpenConnections>,
}

fn start(max_connections: usize) -> Server {
    let socket = spillgate_net::bind("127.0.0.1:0".parse().unwrap(), "echo").unwrap();
    let address = socket.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    let protocol = Arc::<Echo>::default();
    let listener = Listener::new(socket, Arc::clone(&protocol) as _, max_connections, stopped);
    Server { address, protocol, stop, listener: tokio::spawn(listener.run()) }
}

async fn echo(client: &mut TcpStream) -> io::Result<u8> {
    client.write_u8(7).await?;
    client.read_u8().await
}

#[tokio::test]
async fn connections_are_served_counted_and_drained() {
    let server = start(10);
    let mut registry = Registry::default();
    let metrics = ConnectionMetrics::new([&*server.protocol as &dyn Protocol]);
    registry.register_collector(Box::new(metrics));
    let counts = || {
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().parse::<u64>().unwrap()
        };
        (
            value("connections_total{protocol=\"echo\"}"),
            value("open_connections{protocol=\"echo\"}"),
        )
    };
    assert_eq!(counts(), (0, 0));
    let (mut one, mut other) = (
        TcpStream::connect(server.address).await.unwrap(),
        TcpStream::connect(server.address).await.unwrap(),
    );
    assert_eq!(echo(&mut one).await.unwrap(), 7);
    assert_eq!(echo(&mut other).await.unwrap(), 7);
    assert_eq!(counts(), (2, 2));
    server.stop.send_replace(true);
    drain(vec![server.listener], Duration::from_secs(10)).await;
    assert_eq!(counts(), (2, 0));
    assert!(echo(&mut one).await.is_err());
}

#[tokio::test]
async fn a_silent_connection_gives_its_slot_to_a_new_one() {
    let server = start(1);
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut client = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(echo(&mut client).await.unwrap(), 7);
    assert!(silent.read_u8().await.is_err(), "it is closed");
    // One that has sent a request keeps its slot.
    let mut another = TcpStream::connect(server.address).await.unwrap();
    another.write_u8(7).await.unwrap();
    assert_eq!(echo(&mut client).await.unwrap(), 7);
    drop(client);
    assert_eq!(another.read_u8().await.unwrap(), 7);
}
