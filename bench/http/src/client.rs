//! A client just good enough to ask a server something now and then.

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
    let text = ask(port, "GET", path, &[], "")?;
    parse(&text).ok_or_else(|| format!("the server answered {text:?} to GET {path}").into())
}

/// The whole answer as it was sent.
pub fn ask(port: u16, method: &str, path: &str, headers: &[String], body: &str) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
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
