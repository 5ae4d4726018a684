//! gRPC as it is on the wire: HTTP/2 all the way, with trailers.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, Version};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};

use crate::proxy::Setup;
use crate::upstream::{Upstream, ok};

type Trailing =
    StreamBody<futures_util::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

/// The message, then trailers.
fn trailing(message: Bytes, name: &'static str, value: &'static str) -> Trailing {
    let mut trailers = HeaderMap::new();
    trailers.insert(name, HeaderValue::from_static(value));
    let frames = vec![Ok(Frame::data(message)), Ok(Frame::trailers(trailers))];
    StreamBody::new(futures_util::stream::iter(frames))
}

/// A service that sends every message back if the request had its trailer, over HTTP/2 alone.
async fn service() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(socket), service_fn(echo));
            tokio::spawn(connection);
        }
    });
    address
}

async fn echo(request: Request<Incoming>) -> Result<Response<Trailing>, Infallible> {
    assert_eq!(request.version(), Version::HTTP_2);
    let te = request.headers().get("te").cloned();
    let body = request.into_body().collect().await.unwrap();
    let has_trailer = body.trailers().is_some_and(|trailers| trailers.contains_key("x-sum"));
    let status = if has_trailer && te.is_some_and(|te| te == "trailers") { "0" } else { "13" };
    let response = Response::builder().header("content-type", "application/grpc");
    Ok(response.body(trailing(body.to_bytes(), "grpc-status", status)).unwrap())
}

fn call(message: &Bytes) -> Request<Trailing> {
    Request::post("http://example.test/echo.Echo/Say")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(trailing(message.clone(), "x-sum", "7"))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_and_trailers_pass_both_ways_and_a_refusal_is_a_status_of_grpc() {
    let service = service().await;
    let policy = "[[limit]]\nname = 'api'\nquota = '1/h burst 3'\n";
    let proxy = Setup::to(&[format!("h2c://{service}")]).policy(policy).start();
    let socket = TcpStream::connect(proxy.address).await.unwrap();
    let (mut client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket))
            .await
            .unwrap();
    tokio::spawn(connection);
    for size in [5, 70_000, 1_000_000] {
        let message = Bytes::from(vec![7; size]);
        let response = client.send_request(call(&message)).await.unwrap();
        assert_eq!((response.status().as_u16(), response.version()), (200, Version::HTTP_2));
        let body = response.into_body().collect().await.unwrap();
        assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
        assert!(body.to_bytes() == message, "{size} bytes");
    }
    let response = client.send_request(call(&Bytes::new())).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["grpc-status"], "8", "that is: resource exhausted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_http1_client_reaches_an_http2_upstream() {
    let service = service().await;
    let proxy = Setup::to(&[format!("h2c://{service}")]).start();
    let socket = TcpStream::connect(proxy.address).await.unwrap();
    let (mut client, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..3 {
        let request =
            Request::post("/echo").header("host", "a").body(Full::new(Bytes::from("hello")));
        client.ready().await.unwrap();
        let response = client.send_request(request.unwrap()).await.unwrap();
        assert_eq!((response.status().as_u16(), response.version()), (200, Version::HTTP_11));
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hello");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_does_not_speak_http2_is_a_502() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let proxy = Setup::to(&[format!("h2c://{}", upstream.address)]).start();
    for _ in 0..3 {
        let response = proxy.get("/");
        assert_eq!(response.status(), 502, "{response:?}");
    }
}
