//! Connections that fail, over real sockets.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use spillgate_client::{BoxError, ClientLayer, is_not_sent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::{Layer, ServiceExt, service_fn};

use crate::common::Body;

/// What a server does with its first connection. Others get a response.
#[derive(Clone, Copy, Debug, PartialEq)]
enum First {
    /// Resets it before it has read a byte.
    ResetAtOnce,
    /// Reads the request, and resets it.
    ResetAfterRequest,
    /// Reads the request, and closes it.
    CloseAfterRequest,
}

/// A server, and how many requests it has read.
async fn serve(first: First) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    tokio::spawn(async move {
        for connection in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            if connection == 0 && first == First::ResetAtOnce {
                stream.set_zero_linger().unwrap();
                continue;
            }
            read_request(&mut stream).await;
            counted.fetch_add(1, Ordering::SeqCst);
            if connection == 0 {
                if first == First::ResetAfterRequest {
                    stream.set_zero_linger().unwrap();
                }
                continue;
            }
            let response = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.write_all(response).await.unwrap();
        }
    });
    (address, requests)
}

/// Reads up to the end of the body, which is "body".
async fn read_request(stream: &mut TcpStream) {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\nbody") {
        assert!(stream.read_buf(&mut read).await.unwrap() > 0, "{read:?}");
    }
}

fn request(method: &Method, address: SocketAddr) -> Request<Body> {
    let request = Request::builder().method(method).uri(format!("http://{address}/"));
    request.header("host", "localhost").body(Body::from("body")).unwrap()
}

#[tokio::test]
async fn what_the_far_side_has_read_is_repeated_only_if_it_is_idempotent() {
    for first in [First::ResetAfterRequest, First::CloseAfterRequest] {
        for (method, expected) in [(Method::PUT, 2), (Method::POST, 1)] {
            let (address, requests) = serve(first).await;
            let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
            let layer = ClientLayer::learning();
            let result = layer.layer(client).oneshot(request(&method, address)).await;
            assert_eq!(requests.load(Ordering::SeqCst), expected, "{method} {first:?}");
            assert_eq!(result.is_ok(), expected == 2, "{method} {first:?}");
        }
    }
}

/// Sends a request over a connection of its own, once the first one is known to be dead.
async fn send(request: Request<Body>, is_first: bool) -> Result<Response<Incoming>, BoxError> {
    let address = request.uri().authority().unwrap().as_str().to_owned();
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    if is_first {
        // However it ends: the reset has arrived.
        let _ = connection.await;
    }
    Ok(sender.send_request(request).await?)
}

#[tokio::test]
async fn what_was_reset_before_any_byte_was_sent_is_repeated() {
    let (address, requests) = serve(First::ResetAtOnce).await;
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    let service =
        service_fn(move |request| send(request, counted.fetch_add(1, Ordering::SeqCst) == 0));
    let layer = ClientLayer::learning();
    let response = layer.layer(service).oneshot(request(&Method::POST, address)).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!((attempts.load(Ordering::SeqCst), requests.load(Ordering::SeqCst)), (2, 1));
}

#[tokio::test]
async fn what_found_no_server_is_repeated() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    let layer = ClientLayer::builder().max_retries(2).build().unwrap();
    let error = layer.layer(client).oneshot(request(&Method::POST, address)).await.unwrap_err();
    let error = error.into_service_error().unwrap();
    assert!(is_not_sent(&*error), "{error:?}");
    assert_eq!(layer.counts().retries, 2);
    // It never arrived, so it is not in flight anywhere.
    assert_eq!(layer.status()[0].in_flight, 0);
}

#[test]
fn a_reset_alone_does_not_say_that_nothing_was_sent() {
    for (kind, expected) in [
        (io::ErrorKind::ConnectionRefused, true),
        (io::ErrorKind::HostUnreachable, true),
        (io::ErrorKind::ConnectionReset, false),
        (io::ErrorKind::BrokenPipe, false),
        (io::ErrorKind::TimedOut, false),
    ] {
        let error = io::Error::other(io::Error::from(kind));
        assert_eq!(is_not_sent(&io::Error::from(kind)), expected, "{kind:?}");
        assert_eq!(is_not_sent(&error), expected, "{kind:?} as a cause");
    }
}
