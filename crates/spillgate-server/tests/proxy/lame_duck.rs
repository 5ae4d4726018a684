//! SIGTERM, of every protocol that can tell a client to leave: no request is cut off.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::SendRequest;
use spillgate::{Clock, SystemClock};
use tokio::time::timeout;

use crate::common::goaway::is_goaway;
use crate::common::server::{Home, Server, spillgate, until};
use crate::proxy::http2::connect;
use crate::proxy::setup::{OPEN, listener};
use crate::proxy::upstream::{Upstream, ok};
use crate::proxy::wire::Wire;

const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than a test takes: whoever waits for its end waits in vain.
const LONG: &str = "1min";

const CHECK: &str = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
    content-length: 31\r\n\r\n{\"limit\":\"all\",\"key\":\"1.2.3.4\"}";
const GET: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// A server that speaks everything, and is a lame duck for so long.
struct Duck {
    server: Server,
    proxy: SocketAddr,
    _upstream: Upstream,
    _home: Home,
}

impl Duck {
    fn start(time: &str) -> Self {
        let upstream = Upstream::answering(|_| ok("hello"));
        let home = Home::new(&format!(
            "[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\ngrpc = '127.0.0.1:0'\n\
             [proxy]\nlisten = '127.0.0.1:0'\nto = '{}'\n{OPEN}",
            upstream.url()
        ));
        let mut command = spillgate();
        command.arg("serve").arg("--config").arg(home.path("spillgate.toml"));
        command.env("SPILLGATE_SHUTDOWN_DELAY", time);
        let server = Server::start(command);
        let proxy = listener(&server);
        Self { server, proxy, _upstream: upstream, _home: home }
    }
}

/// Asks the same on one connection until it is told that the response is the last.
fn ask_until_told(address: SocketAddr, request: &str, count: &AtomicUsize) {
    let mut wire = Wire::connect(address);
    loop {
        assert!(wire.send(request), "cut off while it asks {request:?}");
        let response = wire.response("GET");
        let response = response.unwrap_or_else(|| panic!("cut off after it asked {request:?}"));
        assert!(response.is_whole && response.status() == 200, "{response:?}");
        count.fetch_add(1, Ordering::Relaxed);
        if response.header("connection") == Some("close") {
            assert!(wire.is_over(), "the connection stays open");
            return;
        }
    }
}

#[test]
fn no_request_over_http1_is_cut_off_whose_client_leaves_when_it_is_told() {
    let duck = Duck::start(LONG);
    let http = duck.server.http;
    let clients: Vec<(Arc<AtomicUsize>, JoinHandle<()>)> =
        [(http, CHECK), (http, GET), (duck.proxy, GET), (duck.proxy, GET)]
            .map(|(address, request)| {
                let count = Arc::<AtomicUsize>::default();
                let counted = Arc::clone(&count);
                (count, spawn(move || ask_until_told(address, request, &counted)))
            })
            .into();
    until("some load", || clients.iter().all(|(count, _)| count.load(Ordering::Relaxed) > 50));
    duck.server.signal("TERM");
    for (_, client) in clients {
        client.join().unwrap();
    }
}

type Client = SendRequest<Full<Bytes>>;

/// Asks the same on one connection until that takes no more requests. One that was not sent at
/// all is for the next connection, and not cut off: hyper returns it, or names the GOAWAY that
/// arrived between `ready` and sending.
async fn call_until_told(mut client: Client, request: fn() -> Request<Full<Bytes>>) -> usize {
    for answered in 0.. {
        if client.ready().await.is_err() {
            return answered;
        }
        let response = match client.try_send_request(request()).await {
            Ok(response) => response,
            Err(mut error) => {
                let unsent = error.take_message().is_some() || is_goaway(error.error());
                assert!(unsent, "cut off after {answered}: {error:?}");
                return answered;
            }
        };
        assert_eq!(response.status(), 200);
        let body = response.into_body().collect().await.unwrap();
        assert!(!body.to_bytes().is_empty());
    }
    unreachable!("the loop has no other end")
}

fn page() -> Request<Full<Bytes>> {
    Request::get("http://example.test/").body(Full::default()).unwrap()
}

/// Whether the server is well, over gRPC.
fn call() -> Request<Full<Bytes>> {
    Request::post("http://localhost/grpc.health.v1.Health/Check")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::from(&[0; 5][..]))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_over_http2_is_cut_off_whose_client_leaves_when_it_is_told() {
    let duck = Duck::start(LONG);
    let mut clients = Vec::new();
    let asked = [(duck.proxy, page as fn() -> _), (duck.server.grpc, call)];
    for (address, request) in asked {
        let client = connect(address).await;
        // Until this is answered it has not begun.
        client.clone().send_request(request()).await.unwrap();
        clients.push(tokio::spawn(call_until_told(client, request)));
    }
    // One that is silent is told as well.
    let mut idle: Vec<Client> = Vec::new();
    for (address, request) in asked {
        let mut client = connect(address).await;
        client.send_request(request()).await.unwrap().into_body().collect().await.unwrap();
        idle.push(client);
    }
    duck.server.signal("TERM");
    for client in clients {
        timeout(PATIENCE, client).await.unwrap().unwrap();
    }
    for client in idle {
        until("the end of an idle connection", || client.is_closed());
    }
    // Who comes late is served once, and told then.
    for (address, request) in asked {
        let client = connect(address).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        let answered = timeout(PATIENCE, call_until_told(client, request)).await.unwrap();
        assert!(answered > 0, "a new client was sent away");
    }
}

#[test]
fn a_lame_duck_says_so_takes_new_clients_and_keeps_those_it_cannot_tell() {
    let duck = Duck::start(LONG);
    let mut redis = Wire::connect(duck.server.resp);
    let mut ping = || redis.send("PING\r\n") && redis.until(b"\r\n").as_deref() == Some(b"+PONG");
    assert!(ping());
    let mut idle = Wire::connect(duck.server.http);
    idle.send(GET);
    assert_eq!(idle.response("GET").unwrap().header("connection"), None);
    duck.server.signal("TERM");
    until("it is not ready", || {
        let mut wire = Wire::connect(duck.server.http);
        wire.send("GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n");
        wire.response("GET").unwrap().status() == 503
    });
    for address in [duck.server.http, duck.proxy] {
        let mut wire = Wire::connect(address);
        wire.send(GET);
        let response = wire.response("GET").unwrap();
        assert_eq!((response.status(), response.header("connection")), (200, Some("close")));
    }
    assert!(ping() && ping(), "the Redis protocol has no word for it");
    idle.send(GET);
    assert_eq!(idle.response("GET").unwrap().header("connection"), Some("close"));
    // A second signal ends it.
    duck.server.signal("TERM");
    assert_eq!(duck.server.wait().0.code(), Some(1));
}

#[test]
fn idle_connections_end_with_the_time_of_a_lame_duck() {
    let duck = Duck::start("500ms");
    let mut idle = [duck.server.http, duck.proxy].map(|address| {
        let mut wire = Wire::connect(address);
        wire.send(GET);
        assert_eq!(wire.response("GET").unwrap().status(), 200);
        wire
    });
    let before = SystemClock.now();
    duck.server.signal("TERM");
    for wire in &mut idle {
        assert!(wire.is_over());
    }
    let (status, log) = duck.server.wait();
    let took = SystemClock.now().since(before);
    assert!(status.success() && took >= Duration::from_millis(500), "{took:?} {log}");
    assert!(log.contains("asking clients to connect elsewhere"), "{log}");
}

#[test]
fn control_c_waits_for_nobody_who_might_still_come() {
    let duck = Duck::start(LONG);
    duck.server.signal("INT");
    let ended = spawn(move || duck.server.wait());
    until("the end", || ended.is_finished());
    let (status, log) = ended.join().unwrap();
    assert!(status.success() && !log.contains("asking clients to connect elsewhere"), "{log}");
}
