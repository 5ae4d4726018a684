use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::server::{Server, TOKEN};

/// A request to be sent.
pub(crate) struct Ask<'s> {
    server: &'s Server,
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A request of its first line, such as `GET /metrics`.
pub(crate) fn ask<'s>(server: &'s Server, line: &str) -> Ask<'s> {
    Ask { server, line: line.to_owned(), headers: Vec::new(), body: Vec::new() }
}

/// Posts JSON.
pub(crate) async fn post(server: &Server, path: &str, body: &str) -> Reply {
    ask(server, &format!("POST {path}")).json(body).send().await
}

/// Checks, and hands out the answer, which must be a 200.
pub(crate) async fn check(server: &Server, body: &str) -> Value {
    let reply = post(server, "/v1/check", body).await;
    assert_eq!(reply.status, 200, "{body}: {reply:?}");
    reply.json()
}

impl Ask<'_> {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn token(self) -> Self {
        self.header("authorization", &format!("Bearer {TOKEN}"))
    }

    pub(crate) fn json(self, body: &str) -> Self {
        self.body("application/json", body)
    }

    pub(crate) fn body(mut self, content_type: &str, body: &str) -> Self {
        self.body = body.as_bytes().to_vec();
        self.header("content-type", content_type)
    }

    pub(crate) async fn send(self) -> Reply {
        Reply::parse(&raw(self.server, &self.bytes()).await)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} HTTP/1.1\r\n", self.line);
        let names = |name: &str| self.headers.iter().any(|(given, _)| given == name);
        if !names("host") {
            text.push_str(&format!("host: {}\r\n", self.server.address));
        }
        if !self.body.is_empty() {
            text.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        for (name, value) in self.headers.iter().filter(|(_, value)| !value.is_empty()) {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut bytes = format!("{text}\r\n").into_bytes();
        bytes.extend(&self.body);
        bytes
    }
}

/// Sends requests one after the other on one connection, and hands out the replies.
pub(crate) async fn send_all(server: &Server, asks: Vec<Ask<'_>>) -> Vec<Reply> {
    let bytes: Vec<_> = asks.iter().flat_map(Ask::bytes).collect();
    let (mut read, mut write) = TcpStream::connect(server.address).await.unwrap().into_split();
    let sent = async {
        write.write_all(&bytes).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let mut text = String::new();
    let (_, count) = tokio::join!(sent, read.read_to_string(&mut text));
    count.unwrap();
    let (mut replies, mut rest) = (Vec::new(), text.as_str());
    while let Some((head, after)) = rest.split_once("\r\n\r\n") {
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |length| length.parse().unwrap());
        let end = head.len() + 4 + length;
        replies.push(Reply::parse(&rest.as_bytes()[..end]));
        rest = &after[length..];
    }
    assert_eq!(replies.len(), asks.len(), "the last: {:?}", replies.last());
    replies
}

/// Sends bytes and says that this is all, and hands out everything until the server closes.
pub(crate) async fn raw(server: &Server, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    // The server may hang up before it has read everything.
    let _ = socket.write_all(bytes).await;
    let _ = socket.shutdown().await;
    let mut reply = Vec::new();
    let _ = socket.read_to_end(&mut reply).await;
    reply
}

impl Reply {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no response: {text:?}"));
        Self { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(given, _)| *given == name).map(|(_, value)| value).next()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// What is wrong, of a problem document.
    pub(crate) fn detail(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{self:?}");
        problem["detail"].as_str().unwrap().to_owned()
    }
}
