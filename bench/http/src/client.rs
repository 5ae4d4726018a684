//! A client just good enough to ask a server of ours something now and then.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::Result;

pub struct Response {
    pub status: u16,
    /// In lower case.
    pub headers: Vec<String>,
    pub body: String,
}

pub fn get(port: u16, path: &str) -> Result<Response> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    parse(&text).ok_or_else(|| format!("the server answered {text:?} to GET {path}").into())
}

fn parse(text: &str) -> Option<Response> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let name = |line: &str| Some(line.split_once(':')?.0.to_ascii_lowercase());
    let headers = lines.filter_map(name).collect();
    Some(Response { status, headers, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_understood() {
        let response = parse("HTTP/1.1 200 OK\r\nX-A: 1\r\ndate: 11:22\r\n\r\nhello").unwrap();
        assert_eq!(response.status, 200);
        assert_eq!(response.headers, ["x-a", "date"]);
        assert_eq!(response.body, "hello");
    }
}
