//! Whatever comes over a connection, it is answered the same whether it arrives at once or
//! byte by byte: what is read by the short way is not read otherwise by the long one.
#![no_main]

mod common;

use std::future::pending;
use std::sync::Arc;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use spillgate_server::protocol::http::{HttpServer, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, join};

use self::common::{RUNTIME, app};

/// Nothing depends on the time.
const POLICY: &str = "[[limit]]\nname = 'a'\nper = 'global'\nquota = 'burst 100'";

/// What makes a message another one, or may be believed to.
const HEADERS: [&str; 16] = [
    "host: localhost",
    "Host: 127.0.0.1:80",
    "host: evil.example",
    "content-length: 3",
    "content-length: 03",
    "content-length: +3",
    "content-length: 3, 3",
    "transfer-encoding: chunked",
    "Transfer-Encoding : chunked",
    "connection: close",
    "expect: 100-continue",
    "origin: http://localhost",
    "authorization: Bearer x",
    "content-type: application/json; charset=utf-8",
    "content-type: text/plain",
    " folded: line",
];

#[derive(Arbitrary, Debug)]
enum Piece {
    /// A check that looks as most do, perhaps with a length that is wrong by some bytes.
    Check {
        headers: Vec<u8>,
        key: String,
        wrong: i8,
    },
    Bytes(Vec<u8>),
}

impl Piece {
    fn write(&self, stream: &mut Vec<u8>) {
        match self {
            Self::Bytes(bytes) => stream.extend(bytes),
            Self::Check { headers, key, wrong } => {
                let body = format!("{{\"limit\":\"a\",\"cost\":{}}}{key}", key.len());
                let length = body.len() as i64 + i64::from(*wrong);
                let headers: String = headers
                    .iter()
                    .map(|index| format!("{}\r\n", HEADERS[usize::from(*index) % HEADERS.len()]))
                    .collect();
                stream.extend(
                    format!(
                        "POST /v1/check HTTP/1.1\r\nhost: localhost\r\n{headers}\
                         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
                    )
                    .bytes(),
                );
            }
        }
    }
}

/// The status and the body of each response, and what was spent, when so many bytes can be
/// read at once.
async fn converse(stream: &[u8], at_once: usize) -> (Vec<(String, String)>, u64) {
    let app = app(POLICY);
    let http = HttpServer::new(Arc::clone(&app));
    let (mut writer, requests) = duplex(at_once);
    let (mut reader, responses) = duplex(1024 * 1024);
    let server = join(requests, responses);
    let send = async {
        // The server may hang up before.
        let _ = writer.write_all(stream).await;
        let _ = writer.shutdown().await;
    };
    let mut heard = Vec::new();
    // What breaks the protocol is an error, and a client that hangs up may be one.
    let (_, _, _) =
        tokio::join!(serve(server, None, &http, pending()), send, reader.read_to_end(&mut heard));
    let left = app.gate().peek_limit("a", &[], 0).await.expect("it is there").remaining();
    (parse(&String::from_utf8(heard).expect("a response is text")), 100 - left)
}

fn parse(mut text: &str) -> Vec<(String, String)> {
    let mut responses = Vec::new();
    while let Some((head, rest)) = text.split_once("\r\n\r\n") {
        let status = head.lines().next().expect("a line").to_owned();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |length| length.parse().expect("a length"));
        let (body, rest) = rest.split_at(length);
        responses.push((status, body.to_owned()));
        text = rest;
    }
    assert_eq!(text, "", "half a response");
    // Of a head that does not end hyper may see that it is wrong, or only that it is short.
    responses.pop_if(|(_, body)| body.is_empty());
    responses
}

fuzz_target!(|pieces: Vec<Piece>| {
    let mut stream = Vec::new();
    pieces.iter().for_each(|piece| piece.write(&mut stream));
    RUNTIME.block_on(async {
        let stream_text = String::from_utf8_lossy(&stream);
        let (mut together, mut spent) = converse(&stream, 1024 * 1024).await;
        let (apart, spent_apart) = converse(&stream, 1).await;
        // A connection ends with a refusal if it would have to wait for the refused body.
        let is_refused = apart.last().is_some_and(|(status, _)| status != "HTTP/1.1 200 OK");
        if is_refused && apart.len() < together.len() {
            together.truncate(apart.len());
            spent = spent_apart;
        }
        assert_eq!((together, spent), (apart, spent_apart), "{stream_text:?}");
    });
});
