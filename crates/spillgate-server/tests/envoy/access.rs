//! Who may ask.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use spillgate_server::protocol::grpc::messages::RateLimitRequest;
use spillgate_testing::program;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::common::server::{Home, spillgate};
use crate::envoy::client::{Client, descriptor};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

const POLICY: &str = "[server]\nhttp = '127.0.0.1:0'\nresp = 'off'\ngrpc = '0.0.0.0:0'\n\
    [[limit]]\nname = 'api'\nmatch = { domain = 'edge' }\nquota = '5/h'\n";

/// An address of this machine that is not on loopback. Nothing is sent to find it.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("192.0.2.1:9").unwrap();
    socket.local_addr().unwrap().ip()
}

async fn connect(address: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

/// The code of a call with a header.
async fn asked(address: SocketAddr, authorization: Option<&str>) -> Code {
    let mut client = Client::over(connect(address).await);
    let mut request = Request::new(RateLimitRequest {
        domain: "edge".to_owned(),
        descriptors: vec![descriptor(&[("key", "value")])],
        hits_addend: 0,
    });
    if let Some(authorization) = authorization {
        request.metadata_mut().insert("authorization", authorization.parse().unwrap());
    }
    client.call(request).await.map_or_else(|status| status.code(), |_| Code::Ok)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_machines_give_the_token_or_are_known() {
    let home = Home::new(POLICY);
    let server = home.start(&["--token", TOKEN]);
    let public = SocketAddr::new(own_address(), server.grpc.port());
    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(asked(public, None).await, Code::Unauthenticated);
    assert_eq!(asked(public, Some("Bearer wrong")).await, Code::Unauthenticated);
    assert_eq!(asked(public, Some(TOKEN)).await, Code::Unauthenticated);
    assert_eq!(asked(public, Some(&bearer)).await, Code::Ok);
    let loopback = SocketAddr::new([127, 0, 0, 1].into(), server.grpc.port());
    assert_eq!(asked(loopback, None).await, Code::Ok);
    // A probe has no token; whoever watches needs one.
    let mut health = HealthClient::new(connect(public).await);
    let request = HealthCheckRequest::default();
    assert_eq!(health.check(request.clone()).await.unwrap().into_inner().status, 1);
    assert_eq!(health.watch(request).await.unwrap_err().code(), Code::Unauthenticated);
    server.stop();

    let range = format!("{}/32", own_address());
    let server = home.start(&["--grpc-allow", &range]);
    let public = SocketAddr::new(own_address(), server.grpc.port());
    assert_eq!(asked(public, None).await, Code::Ok);
    server.stop();
}

#[test]
fn an_address_that_others_reach_needs_a_token_or_a_range() {
    let home = Home::new(POLICY);
    let check = |arguments: &[&str]| {
        let mut check = spillgate();
        check.arg("check-config").arg(home.path("spillgate.toml")).args(arguments);
        let output = check.output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let (is_right, message) = check(&[]);
    assert!(!is_right && message.contains("neither a token nor grpc-allow"), "{message}");
    assert!(check(&["--grpc-allow", "10.0.0.0/8"]).0);
    assert!(check(&["--token", TOKEN]).0);
    assert!(check(&["--grpc", "127.0.0.1:0"]).0);
}

#[test]
fn grpc_is_spoken_if_there_is_something_to_ask_or_it_is_asked_for() {
    let plain =
        "[server]\nhttp = '127.0.0.1:0'\nresp = 'off'\n[[limit]]\nname = 'api'\nquota = '5/h'\n";
    let listens = |config: &str, arguments: &[&str]| {
        let home = Home::new(config);
        let mut check = spillgate();
        check.arg("check-config").arg(home.path("spillgate.toml")).args(arguments);
        let message = String::from_utf8(check.output().unwrap().stdout).unwrap();
        let line = message.lines().find_map(|line| line.trim().strip_prefix("grpc"));
        line.unwrap().trim().to_owned()
    };
    assert_eq!(listens(plain, &[]), "off");
    assert_eq!(listens(plain, &["--grpc", "127.0.0.1:1"]), "127.0.0.1:1");
    let descriptors = plain.replace("quota", "match = { domain = 'edge' }\nquota");
    assert_eq!(listens(&descriptors, &[]), "127.0.0.1:8391");
    assert_eq!(listens(&descriptors, &["--grpc", "off"]), "off");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_spoken_over_tls() {
    let home = Home::new(&POLICY.replace("0.0.0.0:0", "127.0.0.1:0"));
    home.certify();
    let (certificate, key) = (home.path("cert.pem"), home.path("key.pem"));
    let paths = [&certificate, &key].map(|path| path.to_str().unwrap());
    let server = home.start(&["--tls-cert", paths[0], "--tls-key", paths[1]]);
    assert!(server.banner.contains("grpcs://"), "{}", server.banner);
    // It agrees on HTTP/2, and answers a foreign request with what it takes it for.
    let url = format!("https://localhost:{}/", server.grpc.port());
    let mut curl = program("curl");
    let message = crate::common::server::run(
        curl.args(["-sS", "--max-time", "60", "--http2", "--cacert"]).args([
            paths[0],
            "-o",
            "/dev/null",
            "-w",
            "%{http_version} %{http_code}",
            &url,
        ]),
    );
    assert_eq!(message, "2 405");
    server.stop();
}
