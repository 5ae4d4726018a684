use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Something that says what a test has it say, in the place of a Sentinel.
pub(crate) struct FakeSentinel {
    port: u16,
    state: Arc<SentinelState>,
    listener: JoinHandle<()>,
}

struct SentinelState {
    /// The port of whom it calls the master.
    master: Mutex<u16>,
    may_subscribe: bool,
    connections: AtomicUsize,
    subscribers: tokio::sync::Mutex<Vec<OwnedWriteHalf>>,
}

impl FakeSentinel {
    pub(crate) async fn start(master: u16, may_subscribe: bool) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = socket.local_addr().unwrap().port();
        let subscribers = tokio::sync::Mutex::default();
        let (master, connections) = (Mutex::new(master), AtomicUsize::new(0));
        let state = Arc::new(SentinelState { master, may_subscribe, connections, subscribers });
        let listener = tokio::spawn(listen(socket, state.clone()));
        Self { port, state, listener }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("redis+sentinel://127.0.0.1:{}/main", self.port)
    }

    pub(crate) fn set_master(&self, port: u16) {
        *self.state.master.lock().unwrap() = port;
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// How many are subscribed.
    pub(crate) async fn subscribers(&self) -> usize {
        self.state.subscribers.lock().await.len()
    }

    /// Ends all subscriptions.
    pub(crate) async fn cut(&self) {
        self.state.subscribers.lock().await.clear();
    }

    pub(crate) async fn publish(&self, channel: &str, text: &str) {
        let message = array(&["message", channel, text]);
        for subscriber in &mut *self.state.subscribers.lock().await {
            subscriber.write_all(message.as_bytes()).await.unwrap();
        }
    }
}

impl Drop for FakeSentinel {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

async fn listen(socket: TcpListener, state: Arc<SentinelState>) {
    while let Ok((client, _)) = socket.accept().await {
        state.connections.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(serve(client, state.clone()));
    }
}

async fn serve(client: TcpStream, state: Arc<SentinelState>) {
    let (reader, mut writer) = client.into_split();
    let mut reader = BufReader::new(reader);
    while let Some(words) = command(&mut reader).await {
        let reply = match words[0].to_uppercase().as_str() {
            "SENTINEL" => {
                let port = *state.master.lock().unwrap();
                array(&["127.0.0.1", &port.to_string()])
            }
            "SUBSCRIBE" if !state.may_subscribe => "-NOPERM this user may not\r\n".to_owned(),
            "SUBSCRIBE" => {
                let each = |(place, channel): (usize, &String)| {
                    let length = channel.len();
                    format!("*3\r\n$9\r\nsubscribe\r\n${length}\r\n{channel}\r\n:{}\r\n", place + 1)
                };
                let replies: String = words[1..].iter().enumerate().map(each).collect();
                writer.write_all(replies.as_bytes()).await.unwrap();
                state.subscribers.lock().await.push(writer);
                return;
            }
            _ => "+OK\r\n".to_owned(),
        };
        writer.write_all(reply.as_bytes()).await.unwrap();
    }
}

pub(super) async fn command(reader: &mut BufReader<OwnedReadHalf>) -> Option<Vec<String>> {
    let number = async |reader: &mut BufReader<OwnedReadHalf>| {
        let mut line = String::new();
        reader.read_line(&mut line).await.ok()?;
        line.get(1..)?.trim().parse::<usize>().ok()
    };
    let mut words = Vec::new();
    for _ in 0..number(reader).await? {
        let mut word = vec![0; number(reader).await? + 2];
        reader.read_exact(&mut word).await.ok()?;
        words.push(String::from_utf8_lossy(&word).trim_end().to_owned());
    }
    (!words.is_empty()).then_some(words)
}

pub(super) fn array(words: &[&str]) -> String {
    let each = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
    format!("*{}\r\n{}", words.len(), words.iter().map(each).collect::<String>())
}
