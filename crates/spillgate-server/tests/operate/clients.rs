//! Clients that count what they are allowed, to the last call.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use spillgate::{Clock, SystemClock, Timestamp};

/// A client of the Redis protocol.
pub(crate) struct Resp(BufReader<TcpStream>);

impl Resp {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self(BufReader::new(socket)))
    }

    pub(crate) fn send(&mut self, line: &str) -> io::Result<()> {
        self.0.get_mut().write_all(format!("{line}\r\n").as_bytes())
    }

    /// The five numbers of a reply.
    pub(crate) fn five(&mut self) -> io::Result<[i64; 5]> {
        let header = self.line()?;
        if header != "*5" {
            return Err(io::Error::other(header));
        }
        let mut five = [0; 5];
        for number in &mut five {
            *number = self.line()?.trim_start_matches(':').parse().map_err(io::Error::other)?;
        }
        Ok(five)
    }

    pub(crate) fn ask(&mut self, line: &str) -> io::Result<[i64; 5]> {
        self.send(line)?;
        self.five()
    }

    pub(crate) fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}

/// What is spent of a quota according to a look at it.
pub(crate) fn spent(address: SocketAddr, look: &str) -> i64 {
    let [_, limit, remaining, ..] = Resp::connect(address).unwrap().ask(look).unwrap();
    limit - remaining
}

/// A client over HTTP, which keeps its connection.
pub(crate) struct Http(BufReader<TcpStream>);

impl Http {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self(BufReader::new(socket)))
    }

    /// Checks a limit; tells whether it was allowed.
    pub(crate) fn check(&mut self, limit: &str, key: &str) -> io::Result<bool> {
        let answer = self.post(&format!("{{\"limit\":\"{limit}\",\"key\":\"{key}\"}}"))?;
        Ok(answer.contains("\"allowed\":true"))
    }

    /// Checks what a body asks for; hands out the answer.
    pub(crate) fn post(&mut self, body: &str) -> io::Result<String> {
        let request = format!(
            "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.get_mut().write_all(request.as_bytes())?;
        self.body()
    }

    /// Reads a page that needs no token.
    pub(crate) fn get(&mut self, path: &str) -> io::Result<String> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        self.0.get_mut().write_all(request.as_bytes())?;
        self.body()
    }

    fn body(&mut self) -> io::Result<String> {
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            if self.0.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        String::from_utf8(body).map_err(io::Error::other)
    }
}

/// What a client has been allowed, and when it heard so.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) allowed: Vec<Timestamp>,
    /// Calls that were sent, and whose answer never came.
    pub(crate) unanswered: usize,
}

impl Tally {
    pub(crate) fn count(&mut self, is_allowed: bool) {
        if is_allowed {
            self.allowed.push(SystemClock.now());
        }
    }
}

/// Calls, several at once, until the server hangs up.
pub(crate) fn resp_load(address: SocketAddr, call: &str, pipeline: usize) -> Tally {
    let mut tally = Tally::default();
    let Ok(mut client) = Resp::connect(address) else { return tally };
    let calls = vec![call; pipeline].join("\r\n");
    loop {
        let mut missing = pipeline;
        if client.send(&calls).is_ok() {
            while let Ok([limited, ..]) = client.five() {
                tally.count(limited == 0);
                missing -= 1;
                if missing == 0 {
                    break;
                }
            }
        }
        if missing > 0 {
            // There may be replies to what was read before the end.
            while let Ok([limited, ..]) = client.five() {
                tally.count(limited == 0);
                missing -= 1;
            }
            tally.unanswered = missing;
            return tally;
        }
    }
}

/// Calls, one after the other, until the server hangs up.
pub(crate) fn http_load(address: SocketAddr, limit: &str, key: &str) -> Tally {
    let mut tally = Tally::default();
    let Ok(mut client) = Http::connect(address) else { return tally };
    loop {
        match client.check(limit, key) {
            Ok(is_allowed) => tally.count(is_allowed),
            Err(_) => {
                tally.unanswered = 1;
                return tally;
            }
        }
    }
}

/// Calls, with a connection for each, until nobody listens.
pub(crate) fn connecting_load(address: SocketAddr) -> Tally {
    let mut tally = Tally::default();
    while let Ok(mut client) = Http::connect(address) {
        match client.check("api", "203.0.113.7") {
            Ok(is_allowed) => tally.count(is_allowed),
            Err(_) => tally.unanswered += 1,
        }
    }
    tally
}
