//! A real axum service, and clients that come and go.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use http::StatusCode;
use spillgate_policy::{Gate, Policy};
use spillgate_tower::SpillgateLayer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::ONE;

const PATIENCE: Duration = Duration::from_secs(20);

async fn serve(policy: &str) -> (SocketAddr, Arc<Gate>) {
    let gate = Arc::new(Gate::new(Policy::from_toml(policy).unwrap()).unwrap());
    let app = Router::new()
        .route("/hello", get(async || "hello"))
        .route("/fails", get(async || StatusCode::BAD_GATEWAY))
        .route("/never", get(std::future::pending::<&str>))
        .layer(SpillgateLayer::new(Arc::clone(&gate)).log(false));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(axum::serve(listener, service).into_future());
    (address, gate)
}

async fn send(address: SocketAddr, path: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    socket
}

async fn ask(address: SocketAddr, path: &str) -> String {
    let mut response = String::new();
    send(address, path).await.read_to_string(&mut response).await.unwrap();
    response
}

fn in_flight(gate: &Gate) -> u32 {
    gate.adaptive_states()[0].status.in_flight
}

async fn until(is_so: impl AsyncFn() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap();
}

#[tokio::test]
async fn others_are_shed_while_a_client_waits_and_served_when_it_has_left() {
    let (address, gate) = serve(ONE).await;
    let waits = send(address, "/never").await;
    until(async || in_flight(&gate) == 1).await;
    let shed = ask(address, "/hello").await;
    assert!(shed.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{shed}");
    assert!(shed.contains("retry-after: 1\r\n"), "{shed}");
    assert!(shed.contains("#temporary-reduced-capacity"), "{shed}");
    drop(waits);
    until(async || in_flight(&gate) == 0).await;
    assert!(ask(address, "/hello").await.ends_with("hello"));
    assert_eq!(gate.adaptive_states()[0].status.changes, 0, "it has learnt nothing from that");
}

#[tokio::test]
async fn a_service_that_fails_is_spared_and_still_tried() {
    let (address, gate) = serve(super::SPARED).await;
    until(async || {
        ask(address, "/fails").await;
        gate.adaptive_states()[0].status.limit < 0.9
    })
    .await;
    let mut answers = Vec::new();
    for _ in 0..100 {
        answers.push(ask(address, "/fails").await[9..12].to_owned());
    }
    assert!(answers.contains(&"503".to_owned()), "{answers:?}");
    assert!(answers.contains(&"502".to_owned()), "{answers:?}");
}
