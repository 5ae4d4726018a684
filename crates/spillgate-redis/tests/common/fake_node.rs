use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::fake_sentinel::{array, command};

/// The only node of a Cluster, which has calls made again as often as a test says.
pub(crate) struct FakeNode {
    port: u16,
    state: Arc<NodeState>,
    listener: JoinHandle<()>,
}

#[derive(Default)]
struct NodeState {
    /// How many more calls it has made again.
    refusing: AtomicUsize,
    calls: AtomicUsize,
}

impl FakeNode {
    pub(crate) async fn start() -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = socket.local_addr().unwrap().port();
        let state = Arc::<NodeState>::default();
        let listener = tokio::spawn(listen(socket, state.clone()));
        Self { port, state, listener }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis+cluster://127.0.0.1:{}", self.port)
    }

    /// Has so many calls from now on made again.
    pub(crate) fn refuse(&self, calls: usize) {
        self.state.refusing.store(calls, Ordering::SeqCst);
    }

    /// How often scripts were called since this was asked last.
    pub(crate) fn calls(&self) -> usize {
        self.state.calls.swap(0, Ordering::SeqCst)
    }
}

impl Drop for FakeNode {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

async fn listen(socket: TcpListener, state: Arc<NodeState>) {
    let port = socket.local_addr().unwrap().port();
    while let Ok((client, _)) = socket.accept().await {
        tokio::spawn(serve(client, port, state.clone()));
    }
}

async fn serve(client: TcpStream, port: u16, state: Arc<NodeState>) {
    let (reader, mut writer) = client.into_split();
    let mut reader = BufReader::new(reader);
    while let Some(words) = command(&mut reader).await {
        let reply = match words[0].as_str() {
            "INFO" => {
                let info = "redis_version:7.0.0\r\ncluster_enabled:1\r\nrole:master\r\n";
                format!("${}\r\n{info}\r\n", info.len())
            }
            "CLUSTER" => {
                let node = format!("*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n");
                format!("*1\r\n*3\r\n:0\r\n:16383\r\n{node}")
            }
            "TIME" => array(&["1700000000", "0"]),
            "EVALSHA" if !words[3].contains("probe") => {
                state.calls.fetch_add(1, Ordering::SeqCst);
                let left = |left: usize| left.checked_sub(1);
                match state.refusing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left) {
                    Ok(_) => "-TRYAGAIN Multiple keys request during rehashing of slot\r\n".into(),
                    Err(_) => ":1\r\n".to_owned(),
                }
            }
            _ => "+OK\r\n".to_owned(),
        };
        if writer.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}
