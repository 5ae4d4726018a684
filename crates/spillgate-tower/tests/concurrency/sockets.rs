//! Real connections: clients that go away, and those that switch protocols.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::routing::get;
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt, stream};
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use http::{HeaderValue, Response, StatusCode};
use hyper_util::rt::TokioIo;
use spillgate_tower::{HeldPermits, SpillgateLayer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::{held, uploads};
use crate::common::TestGate;

async fn serve(limit: u32) -> (SocketAddr, Arc<TestGate>) {
    let gate = Arc::new(uploads(limit));
    let app = Router::new()
        .route("/hello", get(async || "hello"))
        .route("/endless", get(endless))
        .route("/never", get(std::future::pending::<&str>))
        .route("/panic", get(panic))
        .route("/chat", get(chat))
        .layer(SpillgateLayer::new(Arc::clone(&gate)).log(false));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(axum::serve(listener, service).into_future());
    (address, gate)
}

async fn panic() -> &'static str {
    panic!("as it should")
}

/// A body that never ends.
async fn endless() -> Body {
    let parts = stream::unfold((), async |()| {
        tokio::task::yield_now().await;
        Some((Ok::<_, Infallible>(Bytes::from_static(&[b'.'; 1024])), ()))
    });
    Body::from_stream(parts)
}

/// Echoes messages over a WebSocket, and holds the permits of the request meanwhile.
async fn chat(mut request: Request) -> Response<Body> {
    let permits = request.extensions_mut().remove::<HeldPermits>();
    let key = request.headers()[SEC_WEBSOCKET_KEY].clone();
    tokio::spawn(async move {
        let connection = TokioIo::new(hyper::upgrade::on(request).await.unwrap());
        let mut socket = WebSocketStream::from_raw_socket(connection, Role::Server, None).await;
        while let Some(Ok(message)) = socket.next().await {
            if message.is_text() && socket.send(message).await.is_err() {
                break;
            }
        }
        drop(permits);
    });
    let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).unwrap();
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_ACCEPT, accept)
        .body(Body::empty())
        .unwrap()
}

/// Waits until so many permits are held.
async fn until_held(gate: &TestGate, expected: u64) {
    let reached = async {
        while held(gate) != expected {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let reached = tokio::time::timeout(Duration::from_secs(10), reached).await;
    assert!(reached.is_ok(), "{} permits are held, not {expected}", held(gate));
}

async fn request(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn status(stream: &mut TcpStream) -> String {
    let mut head = vec![0; 12];
    stream.read_exact(&mut head).await.unwrap();
    String::from_utf8(head).unwrap().split_off(9)
}

#[tokio::test]
async fn a_whole_response_returns_the_permit_while_the_connection_stays() {
    let (address, gate) = serve(1).await;
    let mut stream = request(address, "/hello").await;
    assert_eq!(status(&mut stream).await, "200");
    until_held(&gate, 0).await;
    let mut again = request(address, "/hello").await;
    assert_eq!(status(&mut again).await, "200");
    drop((stream, again));
}

#[tokio::test]
async fn a_client_that_disconnects_in_the_middle_of_a_body_returns_the_permit() {
    let (address, gate) = serve(1).await;
    let mut stream = request(address, "/endless").await;
    assert_eq!(status(&mut stream).await, "200");
    stream.read_exact(&mut [0; 4096]).await.unwrap();
    assert_eq!(held(&gate), 1);
    let mut denied = request(address, "/hello").await;
    assert_eq!(status(&mut denied).await, "429");
    drop(stream);
    until_held(&gate, 0).await;
}

#[tokio::test]
async fn a_client_that_disconnects_before_the_response_returns_the_permit() {
    let (address, gate) = serve(2).await;
    let streams = (request(address, "/never").await, request(address, "/never").await);
    until_held(&gate, 2).await;
    drop(streams.0);
    until_held(&gate, 1).await;
    drop(streams.1);
    until_held(&gate, 0).await;
}

#[tokio::test]
async fn a_handler_that_panics_returns_the_permit() {
    let (address, gate) = serve(1).await;
    let mut stream = request(address, "/panic").await;
    let mut rest = Vec::new();
    // The connection ends without a response.
    let _ = stream.read_to_end(&mut rest).await;
    assert!(rest.is_empty());
    until_held(&gate, 0).await;
}

#[tokio::test]
async fn a_websocket_holds_its_permit_until_it_is_closed() {
    let (address, gate) = serve(1).await;
    let connect = || tokio_tungstenite::connect_async(format!("ws://{address}/chat"));
    let (mut socket, _) = connect().await.unwrap();
    socket.send(Message::text("hello")).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::text("hello"));
    assert_eq!(held(&gate), 1);
    let refused = connect().await.unwrap_err().to_string();
    assert!(refused.contains("429"), "{refused}");
    socket.close(None).await.unwrap();
    while let Some(Ok(_)) = socket.next().await {}
    until_held(&gate, 0).await;
    // One that vanishes without a close.
    let (socket, _) = connect().await.unwrap();
    until_held(&gate, 1).await;
    drop(socket);
    until_held(&gate, 0).await;
}
