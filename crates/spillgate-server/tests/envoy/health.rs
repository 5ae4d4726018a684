//! Whether the server is ready, as orchestrators ask.

use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::common::server::until;
use crate::envoy::client::{channel, start};

const POLICY: &str = "[[limit]]\nname = 'api'\nmatch = { domain = 'edge' }\nquota = '5/h'\n";

fn request(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_and_its_service_are_serving_and_others_are_not_known() {
    let (_home, server) = start(POLICY, &[], &[]);
    let mut health = HealthClient::new(channel(&server).await);
    for service in ["", "envoy.service.ratelimit.v3.RateLimitService"] {
        let output = health.check(request(service)).await.unwrap().into_inner();
        assert_eq!(output.status(), ServingStatus::Serving);
    }
    let error = health.check(request("other")).await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    let mut watch = health.watch(request("other")).await.unwrap().into_inner();
    let output = watch.message().await.unwrap().unwrap();
    assert_eq!(output.status(), ServingStatus::ServiceUnknown);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_watches_is_told_when_the_server_is_about_to_end() {
    let (_home, server) = start(POLICY, &[], &[]);
    let mut health = HealthClient::new(channel(&server).await);
    let mut watch = health.watch(request("")).await.unwrap().into_inner();
    assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    server.signal("TERM");
    assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    assert!(watch.message().await.unwrap().is_none(), "it ends with the server");
    let (status, log) = server.wait();
    assert!(status.success(), "{log}");
    assert!(!log.contains("did not read their replies"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_watches_is_asked_now_and_then_whether_it_is_still_there() {
    let (_home, server) = start(POLICY, &[], &[]);
    let mut health = HealthClient::new(channel(&server).await);
    let mut watch = health.watch(request("")).await.unwrap().into_inner();
    assert!(watch.message().await.unwrap().is_some());
    let port = format!(":{:04X}", server.grpc.port());
    until("a timer that asks the client", || {
        let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
        sockets.lines().any(|line| {
            let fields: Vec<_> = line.split_whitespace().collect();
            // The server's end of an open connection, and the timer of keep-alive.
            fields[1].ends_with(&port) && fields[3] == "01" && fields[5].starts_with("02:")
        })
    });
}
