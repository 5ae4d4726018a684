//! Whatever comes over a connection of gRPC, calls among it, is answered or refused, and ends.
#![no_main]

mod common;

use std::future::pending;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use spillgate_server::protocol::grpc::{GrpcServer, serve};
use spillgate_server::protocol::http::Bounds;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, join};

use self::common::{RUNTIME, app};

const POLICY: &str = "[[limit]]\nname = 'a'\nquota = '100/h'\nmatch = { domain = 'd' }";
const PEER: ([u8; 4], u16) = ([127, 0, 0, 1], 1);

const PATHS: [&str; 4] = [
    "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
    "/grpc.health.v1.Health/Check",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/nobody/knows",
];

#[derive(Arbitrary, Debug)]
enum Piece {
    /// A call with a message, which may be none.
    Call {
        path: u8,
        flag: u8,
        message: Vec<u8>,
        is_framed: bool,
        ends: bool,
    },
    Frame {
        kind: u8,
        flags: u8,
        stream: u8,
        payload: Vec<u8>,
    },
    Bytes(Vec<u8>),
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    let payload = &payload[..payload.len().min(16_384)];
    out.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
}

/// Headers as they are, without a table.
fn head(path: &str) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
    ] {
        block.push(0);
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend(text.bytes());
        }
    }
    block
}

impl Piece {
    fn write(&self, next: &mut u32, out: &mut Vec<u8>) {
        match self {
            Self::Bytes(bytes) => out.extend(bytes),
            Self::Frame { kind, flags, stream, payload } => {
                frame(*kind, *flags, u32::from(*stream), payload, out);
            }
            Self::Call { path, flag, message, is_framed, ends } => {
                let path = PATHS[usize::from(*path) % PATHS.len()];
                frame(1, 4, *next, &head(path), out);
                let mut body = Vec::new();
                if *is_framed {
                    body.push(*flag);
                    body.extend((message.len() as u32).to_be_bytes());
                }
                body.extend(message);
                frame(0, u8::from(*ends), *next, &body, out);
                *next += 2;
            }
        }
    }
}

fuzz_target!(|pieces: Vec<Piece>| {
    let mut stream = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    frame(4, 0, 0, &[], &mut stream);
    let mut next = 1;
    pieces.iter().for_each(|piece| piece.write(&mut next, &mut stream));
    RUNTIME.block_on(async {
        let grpc = GrpcServer::new(app(POLICY), Bounds::default());
        let (mut writer, requests) = duplex(1024 * 1024);
        let (mut reader, responses) = duplex(1024 * 1024);
        let send = async {
            // The server may hang up before.
            let _ = writer.write_all(&stream).await;
            let _ = writer.shutdown().await;
        };
        let mut heard = Vec::new();
        // What breaks the protocol is an error, and a client that hangs up may be one.
        let served = serve(join(requests, responses), Some(PEER.into()), &grpc, pending());
        let (_, (), _) = tokio::join!(served, send, reader.read_to_end(&mut heard));
    });
});
