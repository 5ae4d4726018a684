//! HTTP/2 from the client, HTTP/1.1 or HTTP/2 to the upstream.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::common::server::until;
use crate::proxy::setup::{Proxy, Setup};
use crate::proxy::upstream::{Upstream, ok};

const PATIENCE: Duration = Duration::from_secs(60);

/// A client that knows beforehand that HTTP/2 is spoken.
pub(crate) async fn connect<B>(address: SocketAddr) -> SendRequest<B>
where
    B: hyper::body::Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + Unpin
        + 'static,
{
    let socket = TcpStream::connect(address).await.unwrap();
    let (client, connection) = handshake(TokioExecutor::new(), TokioIo::new(socket)).await.unwrap();
    tokio::spawn(connection);
    client
}

fn get(path: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("http://example.test{path}")).body(Empty::new()).unwrap()
}

async fn text(response: Response<Incoming>) -> String {
    let body = timeout(PATIENCE, response.collect()).await.unwrap().unwrap();
    String::from_utf8(body.to_bytes().to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_on_one_connection_reach_an_http1_upstream() {
    let upstream = Upstream::answering(|request| ok(request.path()));
    let proxy = Proxy::to(&upstream);
    let client = connect(proxy.address).await;
    let ask = |number| {
        let mut client = client.clone();
        async move {
            let path = format!("/{number}?q");
            let response = client.send_request(get(&path)).await.unwrap();
            assert_eq!((response.status().as_u16(), response.version()), (200, Version::HTTP_2));
            assert_eq!(text(response).await, path);
        }
    };
    join_all((0..100).map(ask)).await;
    let request = upstream.requests().pop().unwrap();
    assert!(request.start.ends_with(" HTTP/1.1"), "{request:?}");
    for (name, value) in [
        ("host", "example.test"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "example.test"),
    ] {
        assert_eq!(request.header(name), Some(value), "{request:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_pass_both_ways() {
    let upstream = Upstream::answering(|request| ok(&request.text()));
    let proxy = Proxy::to(&upstream);
    let mut client = connect(proxy.address).await;
    for size in [0, 1, 20_000, 2_000_000] {
        let body = Full::new(Bytes::from("x".repeat(size)));
        let request = Request::post("http://example.test/").body(body).unwrap();
        let response = client.send_request(request).await.unwrap();
        assert_eq!(text(response).await.len(), size);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_cookies_are_one_header_for_http1() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let proxy = Proxy::to(&upstream);
    let mut client = connect(proxy.address).await;
    let request =
        Request::get("http://example.test/").header("cookie", "a=1").header("cookie", "b=2");
    client.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
    assert_eq!(upstream.request().header("cookie"), Some("a=1; b=2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_given_up_ends_at_the_upstream_and_others_go_on() {
    let (tell, mut message) = tokio::sync::mpsc::unbounded_channel();
    let upstream = Upstream::playing(move |mut wire, seen| {
        while let Some(request) = seen.next(&mut wire) {
            if request.path() == "/slow" {
                tell.send(wire.is_over()).unwrap();
                return;
            }
            wire.send(ok("hello"));
        }
    });
    let proxy = Proxy::to(&upstream);
    let client = connect(proxy.address).await;
    let given_up = tokio::spawn(client.clone().send_request(get("/slow")));
    until("it is there", || !upstream.requests().is_empty());
    given_up.abort();
    assert!(timeout(PATIENCE, message.recv()).await.unwrap().unwrap());
    let response = client.clone().send_request(get("/")).await.unwrap();
    assert_eq!(text(response).await, "hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_count_requests_and_not_connections() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let policy = "[[limit]]\nname = 'api'\nquota = '1/h burst 10'\n";
    let proxy = Setup::to(&[upstream.url()]).policy(policy).start();
    let client = connect(proxy.address).await;
    let ask = |_| {
        let mut client = client.clone();
        async move { client.send_request(get("/")).await.unwrap().status().as_u16() }
    };
    let statuses = join_all((0..50).map(ask)).await;
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 10);
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 40);
    assert_eq!(upstream.requests().len(), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_or_broken_upstream_is_a_502_for_http2_too() {
    let broken = Upstream::playing(|mut wire, seen| {
        seen.next(&mut wire);
        wire.send("nonsense\r\n\r\n");
    });
    let proxy = Proxy::to(&broken);
    let mut client = connect(proxy.address).await;
    let response = client.send_request(get("/")).await.unwrap();
    assert_eq!(response.status(), 502);
    let content_type = response.headers()["content-type"].to_str().unwrap().to_owned();
    assert_eq!(content_type, "application/problem+json");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_that_breaks_off_is_an_error_and_not_an_end() {
    for framing in ["content-length: 100", "transfer-encoding: chunked"] {
        let upstream = Upstream::playing(move |mut wire, seen| {
            seen.next(&mut wire);
            wire.send(format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n4\r\nsome\r\n"));
        });
        let proxy = Proxy::to(&upstream);
        let mut client = connect(proxy.address).await;
        let response = client.send_request(get("/")).await.unwrap();
        assert_eq!(response.status(), 200);
        let body = timeout(PATIENCE, response.collect()).await.unwrap();
        assert!(body.is_err(), "{framing}: {body:?}");
    }
}
