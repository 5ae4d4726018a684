//! Property tests of the framing guard against hyper.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use spillgate_testing::strategy::cases;

use crate::agreement::{Seen, assert_agreement};

fn check(stream: &[u8]) -> Vec<Seen> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(assert_agreement(stream))
}

/// A request that every parser reads alike, and what it is.
fn valid() -> impl Strategy<Value = (Vec<u8>, Seen)> {
    let method = select(vec!["GET", "POST", "PUT", "DELETE", "OPTIONS", "QUERY"]);
    let body = vec(any::<u8>(), 0..40);
    let chunks = proptest::option::of(vec(1_usize..20, 1..4));
    (method, "/[a-z]{0,6}", body, chunks, any::<bool>()).prop_map(
        |(method, target, body, chunks, has_trailer)| {
            let mut bytes = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n").into_bytes();
            match chunks {
                None if body.is_empty() => bytes.extend(b"\r\n"),
                None => {
                    bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
                    bytes.extend(&body);
                }
                Some(sizes) => {
                    bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                    let mut rest = &body[..];
                    for size in sizes.into_iter().cycle() {
                        let (chunk, left) = rest.split_at(size.min(rest.len()));
                        rest = left;
                        bytes.extend(format!("{:x};x=y\r\n", chunk.len()).bytes());
                        if chunk.is_empty() {
                            break;
                        }
                        bytes.extend(chunk);
                        bytes.extend(b"\r\n");
                    }
                    bytes.extend(if has_trailer { &b"a: b\r\n\r\n"[..] } else { b"\r\n" });
                }
            }
            let seen = Seen { method: method.to_owned(), target, body: Bytes::from(body) };
            (bytes, seen)
        },
    )
}

/// Lines that make a message another one, or may be believed to.
const LINES: [&str; 36] = [
    "GET / HTTP/1.1\r\n",
    "POST /x HTTP/1.1\r\n",
    "POST /x HTTP/1.0\r\n",
    "CONNECT a:1 HTTP/1.1\r\n",
    "GET / HTTP/1.1\n",
    "Host: a\r\n",
    "\r\n",
    "\n",
    "\r",
    "\0",
    " ",
    "Content-Length: 5\r\n",
    "Content-Length: 0\r\n",
    "content-length:\t5 \r\n",
    "Content-Length : 5\r\n",
    "Content-Length: +5\r\n",
    "Content-Length: 5, 5\r\n",
    "Content-Length: 5\n",
    "Content-Length:\r\n 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding:\x0bchunked\r\n",
    "transfer-encoding: Chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding: identity\r\n",
    "Transfer-Encoding : chunked\r\n",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "Upgrade: websocket\r\n",
    "Upgrade: h2c\r\n",
    "Expect: 100-continue\r\n",
    " folded: line\r\n",
    "5\r\nhello\r\n",
    "5;x=y\nhello\r\n",
    "ffffffffffffffff\r\n",
    "0\r\n",
    "hello",
];

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn valid_pipelines_pass_unchanged(requests in vec(valid(), 1..5)) {
        let stream = requests.iter().flat_map(|(bytes, _)| bytes.clone()).collect::<Vec<_>>();
        let expected: Vec<_> = requests.into_iter().map(|(_, seen)| seen).collect();
        prop_assert_eq!(check(&stream), expected);
    }

    #[test]
    fn hyper_agrees_about_whatever_passes(lines in vec(select(&LINES[..]), 1..16)) {
        check(lines.concat().as_bytes());
    }

    #[test]
    fn hyper_agrees_about_requests_with_hostile_lines(
        requests in vec((valid(), select(&LINES[..]), any::<proptest::sample::Index>()), 1..4),
    ) {
        let mut stream = Vec::new();
        for ((mut bytes, _), line, at) in requests {
            // At the beginning of a line, where it may be taken for one.
            let starts: Vec<_> = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').collect();
            let at = starts[at.index(starts.len())].0 + 1;
            bytes.splice(at..at, line.bytes());
            stream.extend(bytes);
        }
        check(&stream);
    }

    #[test]
    fn hyper_agrees_about_any_bytes(bytes in vec(any::<u8>(), 0..200)) {
        check(&bytes);
    }
}
