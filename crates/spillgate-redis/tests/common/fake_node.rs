use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::fake_sentinel::command;

/// Something that answers as a test has it answer, in the place of a node of a Cluster that owns all
/// slots or none.
pub(crate) struct FakeNode {
    pub(crate) port: u16,
    state: Arc<NodeState>,
    listener: JoinHandle<()>,
}

type Answer = Box<dyn Fn(&[String]) -> Option<String> + Send + Sync>;

struct NodeState {
    /// The reply to a command, if it is not the usual one.
    answer: Answer,
    /// By how much each reply is late.
    delay: Duration,
    commands: Mutex<Vec<String>>,
    connections: AtomicUsize,
}

impl FakeNode {
    /// A node that answers some commands in its own way, each so late.
    pub(crate) async fn start(
        delay: Duration,
        answer: impl Fn(&[String]) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = socket.local_addr().unwrap().port();
        let (commands, connections) = (Mutex::default(), AtomicUsize::new(0));
        let state = Arc::new(NodeState { answer: Box::new(answer), delay, commands, connections });
        let listener = tokio::spawn(listen(socket, port, state.clone()));
        Self { port, state, listener }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis+cluster://127.0.0.1:{}", self.port)
    }

    /// How often a command was sent.
    pub(crate) fn count(&self, name: &str) -> usize {
        let commands = self.state.commands.lock().unwrap();
        commands.iter().filter(|command| command.starts_with(name)).count()
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }
}

impl Drop for FakeNode {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

/// `CLUSTER SLOTS` of nodes on this machine, each with a range.
pub(crate) fn slots(ranges: &[(u16, u16, u16)]) -> String {
    let each = |(first, last, port): &(u16, u16, u16)| {
        format!("*3\r\n:{first}\r\n:{last}\r\n*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n")
    };
    format!("*{}\r\n{}", ranges.len(), ranges.iter().map(each).collect::<String>())
}

async fn listen(socket: TcpListener, port: u16, state: Arc<NodeState>) {
    while let Ok((client, _)) = socket.accept().await {
        state.connections.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(serve(client, port, state.clone()));
    }
}

async fn serve(client: TcpStream, port: u16, state: Arc<NodeState>) {
    let (reader, mut writer) = client.into_split();
    let mut reader = BufReader::new(reader);
    while let Some(words) = command(&mut reader).await {
        state.commands.lock().unwrap().push(words.join(" "));
        let reply = (state.answer)(&words).unwrap_or_else(|| usual(&words, port));
        sleep(state.delay).await;
        if writer.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn usual(words: &[String], port: u16) -> String {
    const INFO: &str = "redis_version:7.0.0\r\nrole:master\r\ncluster_enabled:1\r\n";
    match words[0].as_str() {
        "INFO" => format!("${}\r\n{INFO}\r\n", INFO.len()),
        "CLUSTER" => slots(&[(0, 16383, port)]),
        "TIME" => "*2\r\n:1700000000\r\n:0\r\n".to_owned(),
        "EVALSHA" | "DEL" => ":1\r\n".to_owned(),
        _ => "+OK\r\n".to_owned(),
    }
}
