//! The configurations that the documentation recommends, in proxies that people use.

mod attempts;
mod caddy;
mod nginx;

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use spillgate_testing::Port;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::client::Reply;

/// What the documentation says about them.
const PAGE: &str = include_str!("../../../../../docs/proxies.md");

/// A proxy in front of a service, which ends with the test.
struct Proxy {
    address: SocketAddr,
    _port: Port,
    /// How many requests have come through to the service.
    served: Arc<AtomicUsize>,
    child: Child,
    folder: TempDir,
}

/// What the addresses of a configuration are to be.
struct Places {
    spillgate: SocketAddr,
    service: SocketAddr,
    clients: SocketAddr,
}

impl Proxy {
    /// Starts the program that `prepare` sets up in a folder, for those places. It logs to the
    /// file `error.log` there.
    async fn start(spillgate: SocketAddr, prepare: impl FnOnce(&Places, &Path) -> Command) -> Self {
        let (service, served) = service().await;
        let port = Port::reserve();
        let clients = port.address();
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut command = prepare(&Places { spillgate, service, clients }, folder.path());
        let child = command.spawn().unwrap();
        let mut proxy = Self { address: clients, _port: port, served, child, folder };
        proxy.wait().await;
        proxy
    }

    async fn wait(&mut self) {
        for _ in 0..2400 {
            if TcpStream::connect(self.address).await.is_ok() {
                return;
            }
            if self.child.try_wait().unwrap().is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("the proxy does not listen: {}", self.log());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("error.log")).unwrap_or_default()
    }

    async fn ask(&self, line: &str, headers: &str) -> Reply {
        let host = self.address;
        let request =
            format!("{line} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}\r\n");
        Reply::parse(&self.send(request.as_bytes()).await)
    }

    /// Sends bytes and says that this is all, and hands out whatever comes back.
    async fn send(&self, bytes: &[u8]) -> Vec<u8> {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        // The proxy may hang up before it has read everything.
        let _ = socket.write_all(bytes).await;
        let mut reply = Vec::new();
        // What it takes for half a request, it waits for the rest of.
        let _ = timeout(Duration::from_secs(5), socket.read_to_end(&mut reply)).await;
        reply
    }

    fn served(&self) -> usize {
        self.served.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that takes connections and closes them when it is asked.
async fn hangs_up() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.read(&mut [0; 4096]).await;
        }
    });
    address
}

/// A service that serves everyone, and counts.
async fn service() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&served);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                let mut request = Vec::new();
                while !request.windows(4).any(|window| window == b"\r\n\r\n") {
                    if socket.read_buf(&mut request).await? == 0 {
                        return Ok(());
                    }
                }
                count.fetch_add(1, Ordering::Relaxed);
                socket.write_all(b"HTTP/1.0 200 OK\r\ncontent-length: 6\r\n\r\nserved").await
            });
        }
    });
    (address, served)
}
