//! Where the peer's address comes from.

use std::net::{IpAddr, SocketAddr};
use std::process::Command;

use axum::extract::connect_info::{ConnectInfo, MockConnectInfo};
use http::{Extensions, Request, Response, StatusCode};
use spillgate_tower::{PeerAddr, SpillgateLayer};
use tonic::transport::server::TcpConnectInfo;

use crate::common::{PEER, one_limit, send, send_to};

/// A request with something in its extensions.
fn with<T: Clone + Send + Sync + 'static>(extension: T) -> Request<()> {
    let mut request = Request::new(());
    request.extensions_mut().insert(extension);
    request
}

#[tokio::test]
async fn the_address_is_found_wherever_it_is() {
    let (gate, _) = one_limit("1/h burst 3");
    let layer = SpillgateLayer::new(gate);
    let address: IpAddr = PEER.parse().unwrap();
    let socket = SocketAddr::new(address, 1234);
    let tonic = TcpConnectInfo { local_addr: None, remote_addr: Some(socket) };
    let requests = [
        with(PeerAddr(address)),
        with(ConnectInfo(socket)),
        with(MockConnectInfo(socket)),
        with(tonic),
    ];
    let mut statuses = Vec::new();
    for request in requests {
        statuses.push(send(&layer, request).await.status.as_u16());
    }
    assert_eq!(statuses, [200, 200, 200, 429], "all are the same caller");
}

#[tokio::test]
async fn the_extensions_reach_the_service_as_they_were() {
    let (gate, _) = one_limit("1/s");
    let socket = SocketAddr::new(PEER.parse().unwrap(), 1234);
    let request = with(TcpConnectInfo { local_addr: None, remote_addr: Some(socket) });
    let layer = SpillgateLayer::new(gate);
    let answer = send_to(&layer, request, |request| {
        assert!(request.extensions().get::<TcpConnectInfo>().is_some());
        Response::default()
    });
    assert_eq!(answer.await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_closure_is_asked_instead() {
    #[derive(Clone)]
    struct Proxied(IpAddr);

    let (gate, _) = one_limit("1/h");
    let peer = |extensions: &Extensions| extensions.get().map(|Proxied(address)| *address);
    let layer = SpillgateLayer::new(gate).peer_from(peer);
    let mut statuses = Vec::new();
    for (proxied, socket) in [("192.0.2.1", PEER), ("192.0.2.2", PEER), ("192.0.2.1", PEER)] {
        let mut request = with(PeerAddr(socket.parse().unwrap()));
        request.extensions_mut().insert(Proxied(proxied.parse().unwrap()));
        statuses.push(send(&layer, request).await.status.as_u16());
    }
    assert_eq!(statuses, [200, 200, 429]);
}

#[tokio::test]
async fn without_an_address_callers_share_a_bucket() {
    let (gate, _) = one_limit("1/h burst 5");
    let layer = SpillgateLayer::new(gate);
    let mut statuses = Vec::new();
    for _ in 0..8 {
        statuses.push(send(&layer, Request::new(())).await.status.as_u16());
    }
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429, 429]);
}

/// In a process of its own, whose standard error nobody else writes to.
#[test]
fn without_a_subscriber_a_missing_address_is_told_once_on_standard_error() {
    let test = "peer::without_an_address_callers_share_a_bucket";
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--quiet"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(
        message.starts_with("spillgate: the peer's address of a request is not known"),
        "{message}"
    );
    assert!(message.contains("`into_make_service_with_connect_info::<SocketAddr>()`"), "{message}");
}
