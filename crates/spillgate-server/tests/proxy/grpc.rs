//! gRPC as it is on the wire: HTTP/2 all the way, with trailers.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, Version};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::proxy::h2c::Service;
use crate::proxy::http2::connect;
use crate::proxy::setup::Setup;

type Trailing =
    StreamBody<futures_util::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

/// The message, then trailers.
fn trailing(message: Bytes, name: &'static str, value: &'static str) -> Trailing {
    let mut trailers = HeaderMap::new();
    trailers.insert(name, HeaderValue::from_static(value));
    let frames = vec![Ok(Frame::data(message)), Ok(Frame::trailers(trailers))];
    StreamBody::new(futures_util::stream::iter(frames))
}

/// Sends a message back, if it came with its trailer.
async fn echo(request: Request<Incoming>) -> Response<Trailing> {
    assert_eq!(request.version(), Version::HTTP_2);
    let te = request.headers().get("te").cloned();
    let body = request.into_body().collect().await.unwrap();
    let has_trailer = body.trailers().is_some_and(|trailers| trailers.contains_key("x-sum"));
    let status = if has_trailer && te.is_some_and(|te| te == "trailers") { "0" } else { "13" };
    let response = Response::builder().header("content-type", "application/grpc");
    response.body(trailing(body.to_bytes(), "grpc-status", status)).unwrap()
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
    let service = Service::start("127.0.0.1:0", echo).await;
    let policy = "[[limit]]\nname = 'api'\nquota = '1/h burst 3'\n";
    let proxy = Setup::to(&[service.url()]).policy(policy).start();
    let mut client = connect(proxy.address).await;
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
    let service = Service::start("127.0.0.1:0", echo).await;
    let proxy = Setup::to(&[service.url()]).start();
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
