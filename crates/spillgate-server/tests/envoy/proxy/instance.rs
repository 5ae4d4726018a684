//! An Envoy that a test has started, between clients and a service.

use std::net::{IpAddr, SocketAddr};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use spillgate_testing::{Port, program};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

const CONFIGURATION: &str = include_str!("../../../../../deploy/envoy/envoy.yaml");

/// Envoy in front of a service. It ends with the test.
pub(super) struct Envoy {
    pub(super) address: SocketAddr,
    served: Arc<AtomicUsize>,
    /// Its own and that of its administration.
    _ports: [Port; 2],
    child: Child,
    folder: TempDir,
}

/// What a client gets.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    head: String,
}

impl Envoy {
    /// Starts one with changes to its configuration.
    pub(super) async fn start_with(spillgate: SocketAddr, changes: &[(&str, &str)]) -> Self {
        let (service, served) = service().await;
        let reserved = [Port::reserve(), Port::reserve()];
        let [address, admin] = reserved.each_ref().map(Port::address);
        let port = |from: u16, to: SocketAddr| (format!("port_value: {from} "), to.port());
        let ports =
            [port(8080, address), port(3000, service), port(8391, spillgate), port(9901, admin)];
        let mut text = CONFIGURATION.to_owned();
        for (from, to) in changes {
            assert_eq!(text.matches(from).count(), 1, "{from}");
            text = text.replace(from, to);
        }
        for (from, to) in ports {
            assert_eq!(text.matches(&from).count(), 1, "{from}");
            text = text.replace(&from, &format!("port_value: {to} "));
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("envoy.yaml"), text).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = program("target/envoy/envoy/_bin/envoy")
            .args(["--disable-hot-restart", "--concurrency", "2", "--log-level", "warning", "-c"])
            .arg(folder.path().join("envoy.yaml"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut envoy = Self { address, served, _ports: reserved, child, folder };
        envoy.wait().await;
        envoy
    }

    async fn wait(&mut self) {
        for _ in 0..1200 {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "Envoy has ended: {}", self.log());
            if TcpStream::connect(self.address).await.is_ok() {
                return;
            }
            sleep(Duration::from_millis(25)).await;
        }
        panic!("Envoy does not listen: {}", self.log());
    }

    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// How many requests have come through to the service.
    pub(super) fn served(&self) -> usize {
        self.served.load(Ordering::SeqCst)
    }

    pub(super) async fn get(&self, path: &str) -> Reply {
        get(self.address, path, [127, 0, 0, 1].into()).await
    }

    pub(super) async fn get_from(&self, path: &str, client: [u8; 4]) -> Reply {
        get(self.address, path, client.into()).await
    }

    /// Asks with whatever a client may write in front of the version.
    pub(super) async fn ask(&self, method_and_target: &str) -> Reply {
        ask(self.address, method_and_target, [127, 0, 0, 1].into()).await
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Reply {
    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (own, value) = line.split_once(": ")?;
            own.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// Asks as a client of an address on loopback.
pub(super) async fn get(address: SocketAddr, path: &str, client: IpAddr) -> Reply {
    ask(address, &format!("GET {path}"), client).await
}

async fn ask(address: SocketAddr, method_and_target: &str, client: IpAddr) -> Reply {
    let ask = async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(client, 0)).unwrap();
        let mut stream = socket.connect(address).await.unwrap();
        let request =
            format!("{method_and_target} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = Vec::new();
        // Envoy closes a connection some time after the end of its last response.
        while !is_whole(&reply, method_and_target) {
            if stream.read_buf(&mut reply).await.unwrap() == 0 {
                break;
            }
        }
        let reply = String::from_utf8(reply).unwrap();
        let head = reply.split("\r\n\r\n").next().unwrap_or_default().to_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Reply { status: status.unwrap_or_else(|| panic!("no reply: {head:?}")), head }
    };
    timeout(Duration::from_secs(60), ask).await.unwrap()
}

/// Whether a reply is there to its end, as far as its head says where that is.
fn is_whole(reply: &[u8], method_and_target: &str) -> bool {
    let reply = String::from_utf8_lossy(reply).to_lowercase();
    let Some((head, body)) = reply.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    match length {
        _ if method_and_target.starts_with("HEAD ") => true,
        Some(length) => body.len() >= length.trim().parse().unwrap(),
        None => head.contains("transfer-encoding: chunked") && body.ends_with("0\r\n\r\n"),
    }
}

/// A service that answers everything with 200, and counts.
async fn service() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, served) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&served);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(answer(stream, Arc::clone(&count)));
        }
    });
    (address, served)
}

/// Answers one request after the other, none of which has a body.
async fn answer(mut stream: TcpStream, served: Arc<AtomicUsize>) {
    let mut read = Vec::new();
    while stream.read_buf(&mut read).await.is_ok_and(|count| count > 0) {
        while let Some(end) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            read.drain(..end + 4);
            served.fetch_add(1, Ordering::SeqCst);
            let sent = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
            if sent.is_err() {
                return;
            }
        }
    }
}
