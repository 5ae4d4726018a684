//! An axum server on a socket, and clients that hurry.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::{HeaderName, Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use spillgate_tower::SpillgateLayer;
use tokio::net::TcpListener;

use crate::common::{TestGate, one_limit};

/// Serves "hello" behind a gate, on a port of its own.
async fn serve(gate: TestGate) -> SocketAddr {
    let app =
        Router::new().route("/", get(async || "hello")).layer(SpillgateLayer::new(gate).log(false));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(axum::serve(listener, service).into_future());
    address
}

/// Sends requests from many connections at once, and tells how many passed.
async fn passed(
    address: SocketAddr,
    connections: u32,
    requests: u32,
    header: fn(u32) -> Option<(HeaderName, String)>,
) -> usize {
    let clients = (0..connections).map(|connection| {
        tokio::spawn(async move {
            let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
            let mut passed = 0;
            for request in 0..requests {
                let mut builder = Request::get(format!("http://{address}/"));
                if let Some((name, value)) = header(connection * requests + request) {
                    builder = builder.header(name, value);
                }
                let response = client.request(builder.body(Body::empty()).unwrap()).await.unwrap();
                match response.status() {
                    StatusCode::OK => passed += 1,
                    StatusCode::TOO_MANY_REQUESTS => {}
                    status => panic!("{status}"),
                }
            }
            passed
        })
    });
    let mut sum = 0;
    for client in clients.collect::<Vec<_>>() {
        sum += client.await.unwrap();
    }
    sum
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn exactly_the_burst_passes_from_64_connections_at_once() {
    for burst in [1, 50, 100, 200] {
        let (gate, clock) = one_limit(&format!("{burst}/h"));
        let address = serve(gate).await;
        for round in 0..3 {
            assert_eq!(passed(address, 64, 5, |_| None).await, burst, "round {round}");
            clock.advance(std::time::Duration::from_secs(3600));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_an_untrusted_peer_writes_into_headers_it_stays_one_caller() {
    let (gate, _) = one_limit("20/h");
    let address = serve(gate).await;
    let header = |request: u32| {
        let [_, b, c, d] = request.to_be_bytes();
        let client = format!("10.{b}.{c}.{d}");
        Some(match request % 6 {
            0 => (HeaderName::from_static("x-forwarded-for"), client),
            1 => (HeaderName::from_static("forwarded"), format!("for={client}")),
            2 => (HeaderName::from_static("x-real-ip"), client),
            3 => (HeaderName::from_static("cf-connecting-ip"), client),
            4 => (HeaderName::from_static("x-api-key"), client),
            _ => (HeaderName::from_static("x-user-id"), client),
        })
    };
    assert_eq!(passed(address, 16, 30, header).await, 20);
}
