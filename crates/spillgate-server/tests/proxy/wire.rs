//! One end of a connection, on which a test says and sees every byte.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::proxy::message::{Length, Message, field};

/// Longer than anything takes that works.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Wire {
    socket: Arc<TcpStream>,
    /// What has come and was not looked at yet.
    ahead: Vec<u8>,
}

impl Wire {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::new(TcpStream::connect(address).unwrap())
    }

    pub(crate) fn new(socket: TcpStream) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        Self { socket: Arc::new(socket), ahead: Vec::new() }
    }

    /// The socket for as long as the wire lives.
    pub(crate) fn watch(&self) -> Weak<TcpStream> {
        Arc::downgrade(&self.socket)
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Hands out what has come already.
    pub(crate) fn ahead(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.ahead)
    }

    /// Sends bytes, and tells whether the other end still took them.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        (&*self.socket).write_all(bytes.as_ref()).is_ok()
    }

    /// Says that nothing more will be sent.
    pub(crate) fn finish(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Waits, and tells whether the other end hangs up without another byte.
    pub(crate) fn is_over(&mut self) -> bool {
        self.ahead.is_empty() && self.more() == 0
    }

    /// What else comes until the other end hangs up.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.more() > 0 {}
        std::mem::take(&mut self.ahead)
    }

    /// The next so many bytes, or fewer if the other end hangs up.
    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        while self.ahead.len() < count && self.more() > 0 {}
        let count = count.min(self.ahead.len());
        self.ahead.drain(..count).collect()
    }

    /// The bytes before an end, which is taken out as well. `None` if the other end hangs up before.
    pub(crate) fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        let mut searched = 0;
        loop {
            let mut windows = self.ahead[searched..].windows(end.len());
            if let Some(place) = windows.position(|window| window == end) {
                let found = self.ahead.drain(..searched + place).collect();
                self.ahead.drain(..end.len());
                return Some(found);
            }
            searched = (self.ahead.len() + 1).saturating_sub(end.len());
            if self.more() == 0 {
                return None;
            }
        }
    }

    /// A request with its body. `None` if there is none, or none that a strict server takes.
    pub(crate) fn request(&mut self) -> Option<Result<Message, String>> {
        let head = self.until(b"\r\n\r\n")?;
        Some(Message::parse(&head).map(|message| {
            let length = message.length(None).unwrap_or(Length::Known(0));
            self.with_body(message, length)
        }))
    }

    /// A head of a response, and none of its body.
    pub(crate) fn head(&mut self) -> Option<Message> {
        let head = self.until(b"\r\n\r\n")?;
        Some(Message::parse(&head).unwrap_or_else(|error| panic!("{error}")))
    }

    /// The final response to a request with this method.
    pub(crate) fn response(&mut self, method: &str) -> Option<Message> {
        loop {
            let message = self.head()?;
            if message.status() >= 200 {
                let length = message.length(Some(method)).unwrap();
                return Some(self.with_body(message, length));
            }
        }
    }

    /// Asks without a body, and hands out the response.
    pub(crate) fn get(&mut self, path: &str, headers: &str) -> Message {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: example.test\r\n{headers}\r\n"));
        self.response("GET").unwrap_or_else(|| panic!("no response to GET {path}"))
    }

    fn with_body(&mut self, mut message: Message, length: Length) -> Message {
        match length {
            Length::Known(length) => {
                message.body = self.take(length);
                message.is_whole = message.body.len() == length;
            }
            Length::UntilClose => {
                message.body = self.rest();
                message.is_whole = true;
            }
            Length::Chunked => message.is_whole = self.chunks(&mut message).is_some(),
        }
        message
    }

    /// Reads chunks and trailers. `None` if they end too early, or are no chunks.
    fn chunks(&mut self, message: &mut Message) -> Option<()> {
        loop {
            let line = String::from_utf8(self.until(b"\r\n")?).ok()?;
            let length = usize::from_str_radix(&line, 16).ok()?;
            if length == 0 {
                break;
            }
            let chunk = self.take(length);
            message.body.extend(&chunk);
            if chunk.len() < length || self.take(2) != b"\r\n" {
                return None;
            }
        }
        loop {
            let line = String::from_utf8(self.until(b"\r\n")?).ok()?;
            if line.is_empty() {
                return Some(());
            }
            message.trailers.push(field(&line).ok()?);
        }
    }

    /// Waits for more, and tells how much came: nothing if the other end hung up.
    fn more(&mut self) -> usize {
        let mut buffer = [0; 16 * 1024];
        match (&*self.socket).read(&mut buffer) {
            Ok(count) => {
                self.ahead.extend(&buffer[..count]);
                count
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => self.more(),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("nothing came; before: {:?}", String::from_utf8_lossy(&self.ahead))
            }
            Err(_) => 0,
        }
    }
}
