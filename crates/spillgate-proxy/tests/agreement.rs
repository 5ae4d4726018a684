//! hyper reads what the framing guard lets through as the guard does.
//!
//! A stream of bytes is read twice: by hyper through the guard, and cut into requests by the
//! framing alone, each of which a hyper of its own reads without a guard. Whatever requests the
//! first sees, the second must see as well, one per piece, with the same method, target and body.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue, UPGRADE};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use spillgate_net::Activity;
use spillgate_proxy::framing::{Framing, Guard};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, duplex, join, sink};

/// A request as hyper reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) body: Bytes,
}

/// Checks that both readings agree, however many bytes arrive at once, and returns the requests.
pub(crate) async fn assert_agreement(stream: &[u8]) -> Vec<Seen> {
    let text = String::from_utf8_lossy(stream);
    let pieces = cut(stream);
    let mut first = None;
    for at_once in [64 * 1024, 7, 1] {
        let seen = read(stream, at_once, true).await;
        assert!(seen.len() <= pieces.len(), "{seen:?} in {} pieces: {text:?}", pieces.len());
        for (seen, piece) in seen.iter().zip(&pieces) {
            let alone = read(piece, 64 * 1024, false).await;
            let piece = String::from_utf8_lossy(piece);
            assert_eq!(
                alone,
                std::slice::from_ref(seen),
                "{piece:?} in {text:?}, {at_once} at once"
            );
        }
        let first = first.get_or_insert_with(|| seen.clone());
        assert_eq!(*first, seen, "{text:?}, {at_once} at once");
    }
    first.unwrap_or_default()
}

/// The requests of a stream, according to the framing.
fn cut(mut stream: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    while let Ok(Some(length)) = Framing::default().next_request(stream) {
        let (piece, rest) = stream.split_at(length);
        pieces.push(piece);
        stream = rest;
    }
    pieces
}

/// The requests of a stream whose bodies are complete, according to hyper.
async fn read(stream: &[u8], at_once: usize, is_guarded: bool) -> Vec<Seen> {
    let (mut writer, requests) = duplex(at_once);
    let send = async {
        // hyper may close the stream before it has read everything.
        let _ = writer.write_all(stream).await;
        drop(writer);
    };
    let io = join(requests, sink());
    let serve = async {
        match is_guarded {
            true => serve(Guard::new(io, Arc::<Activity>::default())).await,
            false => serve(io).await,
        }
    };
    tokio::join!(serve, send).0
}

async fn serve(mut io: impl AsyncRead + AsyncWrite + Unpin) -> Vec<Seen> {
    let seen = Mutex::new(Vec::new());
    let service = service_fn(async |request| {
        let (request, is_last) = collect(request).await;
        let is_last = is_last || request.is_none();
        seen.lock().unwrap().extend(request);
        let mut response = Response::new(Empty::<Bytes>::new());
        if is_last {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok::<_, Infallible>(response)
    });
    let mut builder = http1::Builder::new();
    builder.max_headers(100).max_header_size(16 * 1024).max_buf_size(64 * 1024).half_close(true);
    // A stream that violates the protocol is an error; what was read before counts.
    let _ = builder.serve_connection(TokioIo::new(&mut io), service).await;
    // As a connection that is closed does: nothing is left to block the writer.
    let _ = io.read_to_end(&mut Vec::new()).await;
    seen.into_inner().unwrap()
}

/// The request, if its body is complete, and whether the proxy takes no more after it.
async fn collect(request: Request<Incoming>) -> (Option<Seen>, bool) {
    let (head, body) = request.into_parts();
    let switches = head.headers.get_all(UPGRADE).iter();
    let switches = switches.into_iter().any(|to| !to.as_bytes().eq_ignore_ascii_case(b"h2c"));
    let is_last = switches || head.method == Method::CONNECT;
    let seen = body.collect().await.ok().map(|body| Seen {
        method: head.method.to_string(),
        target: head.uri.to_string(),
        body: body.to_bytes(),
    });
    (seen, is_last)
}
