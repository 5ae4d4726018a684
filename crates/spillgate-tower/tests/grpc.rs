//! A tonic server and client, and gRPC clients of other servers.

use std::net::SocketAddr;
use std::time::Duration;

use http::{Method, Request};
use spillgate_tower::{GrpcStatus, SpillgateLayer};
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

use crate::common::{Answer, PEER, TestGate, gate, get, one_limit, send};

/// Serves the health service behind a gate, on a port of its own.
async fn serve(gate: TestGate) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_, health) = tonic_health::server::health_reporter();
    let server = Server::builder()
        .layer(SpillgateLayer::new(gate).respond_with(GrpcStatus))
        .add_service(health)
        .serve_with_incoming(TcpIncoming::from(listener));
    tokio::spawn(server);
    address
}

async fn check(address: SocketAddr) -> Result<tonic::metadata::MetadataMap, Status> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let mut client = HealthClient::new(endpoint.connect().await.unwrap());
    let response = client.check(HealthCheckRequest::default()).await?;
    Ok(response.metadata().clone())
}

#[tokio::test]
async fn a_denied_call_has_a_status_that_tells_when_to_come_back() {
    let (gate, clock) = one_limit("2/min");
    let address = serve(gate).await;
    let metadata = check(address).await.unwrap();
    assert_eq!(metadata.get("ratelimit").unwrap(), "\"public\";r=1;t=30");
    check(address).await.unwrap();
    clock.advance(Duration::from_micros(3_600_001));
    let status = check(address).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.message(), "The limit public is exceeded. Try again in 27 s.");
    let delay = status.get_details_retry_info().unwrap().retry_delay;
    assert_eq!(delay, Some(Duration::from_nanos(26_399_999_000)));
    assert_eq!(status.metadata().get("grpc-retry-pushback-ms").unwrap(), "26400");
    assert_eq!(status.metadata().get("ratelimit").unwrap(), "\"public\";r=0;t=57");
    clock.advance(Duration::from_micros(26_399_999));
    check(address).await.unwrap();
}

#[tokio::test]
async fn a_blocked_call_and_one_that_never_passes_are_not_to_be_retried() {
    let blocked = "block = [\"127.0.0.1\"]\n[[limit]]\nname = \"a\"\nquota = \"1/s\"";
    let never = "[[limit]]\nname = \"a\"\nquota = \"1/s\"\ncost = 2";
    for (policy, code) in [(blocked, Code::PermissionDenied), (never, Code::ResourceExhausted)] {
        let address = serve(gate(policy).0).await;
        let status = check(address).await.unwrap_err();
        assert_eq!(status.code(), code);
        assert!(status.get_details_retry_info().is_none());
        assert_eq!(status.metadata().get("grpc-retry-pushback-ms").unwrap(), "-1");
    }
}

fn call(content_type: &'static str) -> Request<()> {
    let mut request = get(PEER, "/service/method");
    *request.method_mut() = Method::POST;
    request.headers_mut().insert("content-type", content_type.parse().unwrap());
    request
}

fn status(answer: &Answer) -> Status {
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").unwrap().starts_with("application/grpc"));
    assert_eq!(answer.body, "");
    Status::from_header_map(&answer.headers).unwrap()
}

#[tokio::test]
async fn a_server_that_speaks_both_answers_each_client_in_its_language() {
    let (gate, _) = one_limit("1/h");
    let layer = SpillgateLayer::new(gate);
    send(&layer, get(PEER, "/")).await;
    for grpc in ["application/grpc", "application/grpc+proto", "application/grpc-web"] {
        let denied = send(&layer, call(grpc)).await;
        assert_eq!(status(&denied).code(), Code::ResourceExhausted);
        let web = grpc == "application/grpc-web";
        let spoken = if web { grpc } else { "application/grpc" };
        assert_eq!(denied.header("content-type").unwrap(), spoken);
        // A cache would take the 200 for the resource.
        let mut not_a_call = call(grpc);
        *not_a_call.method_mut() = Method::GET;
        assert_eq!(send(&layer, not_a_call).await.status, 429);
    }
    for other in ["application/json", "text/html", ""] {
        assert_eq!(send(&layer, call(other)).await.status, 429);
    }
}

#[tokio::test]
async fn delays_of_any_length_are_encoded_right() {
    for (quota, elapsed) in
        [("1/ms", 999_999), ("1/s", 1), ("1/min", 0), ("1/week", 127), ("1 per 50000 day", 128)]
    {
        let (gate, clock) = one_limit(quota);
        let layer = SpillgateLayer::new(gate);
        send(&layer, call("application/grpc")).await;
        clock.advance(Duration::from_nanos(elapsed));
        let decision = layer.gate().peek_limit("public", &[PEER], 1).await.unwrap();
        let status = status(&send(&layer, call("application/grpc")).await);
        let delay = status.get_details_retry_info().unwrap().retry_delay;
        assert_eq!(delay, decision.retry_after(), "{quota} after {elapsed}");
    }
}
