//! Permits and the bound of requests per upstream: held until a request has ended, however it does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{sleep, spawn};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::Request;
use http_body_util::{BodyExt, Empty};
use tokio::net::TcpListener;
use tokio_tungstenite::{accept_async, connect_async};

use crate::common::server::until;
use crate::proxy::http2::connect;
use crate::proxy::setup::{OPEN, Proxy, Setup};
use crate::proxy::upstream::{Upstream, ok};
use crate::proxy::wire::Wire;

const UPLOADS: &str = "[[limit]]\nname = 'uploads'\nconcurrent = 1\n";

fn held(proxy: &Proxy) -> Option<f64> {
    proxy.metric("spillgate_permits_held{limit=\"uploads\"}")
}

fn in_flight(proxy: &Proxy, url: &str) -> Option<f64> {
    proxy.metric(&format!("spillgate_proxy_upstream_requests{{upstream=\"{url}\"}}"))
}

fn until_released(proxy: &Proxy) {
    until("every permit to be returned", || held(proxy) == Some(0.0));
}

/// A service that answers `/slow` with half a body and `/silent` with nothing, until the connection
/// is closed, breaks off at `/broken`, and answers anything else at once.
fn service() -> Upstream {
    Upstream::playing(|mut wire, seen| {
        while let Some(request) = seen.next(&mut wire) {
            let half = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello";
            match request.path() {
                "/slow" => {
                    wire.send(half);
                    wire.is_over();
                    return;
                }
                "/silent" => {
                    wire.is_over();
                    return;
                }
                "/broken" => {
                    wire.send(half);
                    return;
                }
                "/closed" => return,
                path => wire.send(ok(path)),
            };
        }
    })
}

fn ask(proxy: &Proxy, path: &str) -> Wire {
    let mut wire = proxy.connect();
    wire.send(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n"));
    wire
}

#[test]
fn a_permit_is_held_until_the_body_is_sent_or_the_client_disconnects() {
    let upstream = service();
    let proxy = Setup::to(&[upstream.url()]).policy(UPLOADS).start();
    let mut kept = proxy.connect();
    assert_eq!(kept.get("/", "").status(), 200);
    until_released(&proxy);
    for path in ["/slow", "/silent"] {
        let client = ask(&proxy, path);
        until("the permit to be held", || held(&proxy) == Some(1.0));
        let denied = kept.get("/", "");
        assert_eq!((denied.status(), denied.header("retry-after")), (429, Some("1")));
        assert_eq!(denied.header("ratelimit"), Some("\"uploads\";r=0"));
        drop(client);
        until_released(&proxy);
        assert_eq!(kept.get("/", "").status(), 200, "{path}");
    }
    let denied = "spillgate_requests_total{limit=\"uploads\",outcome=\"denied\"}";
    assert_eq!(proxy.metric(denied), Some(2.0));
}

#[test]
fn an_upstream_that_fails_or_times_out_returns_the_permit() {
    let upstream = service();
    let proxy = Setup::to(&[upstream.url()])
        .proxy("response-timeout = '100ms'\nidle-timeout = '100ms'\n")
        .policy(UPLOADS)
        .start();
    assert_eq!(ask(&proxy, "/closed").response("GET").unwrap().status(), 502);
    until_released(&proxy);
    assert_eq!(ask(&proxy, "/silent").response("GET").unwrap().status(), 504);
    until_released(&proxy);
    for path in ["/broken", "/slow"] {
        let mut client = ask(&proxy, path);
        assert_eq!(client.head().unwrap().status(), 200);
        assert_eq!(client.rest(), b"hello", "the rest never comes");
        until_released(&proxy);
    }
    assert_eq!(proxy.get("/").status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_reset_returns_the_permit() {
    let upstream = service();
    let proxy = Setup::to(&[upstream.url()]).policy(UPLOADS).start();
    let mut client = connect::<Empty<Bytes>>(proxy.address).await;
    let get = |path: &str| Request::get(format!("http://a.test{path}")).body(Empty::new()).unwrap();
    let mut slow = client.send_request(get("/slow")).await.unwrap();
    assert_eq!(slow.frame().await.unwrap().unwrap().into_data().unwrap(), "hello");
    assert_eq!(held(&proxy), Some(1.0));
    assert_eq!(client.send_request(get("/")).await.unwrap().status(), 429);
    drop(slow);
    until_released(&proxy);
    // One that is reset before its response.
    let waiting = tokio::spawn(client.send_request(get("/silent")));
    until("the permit to be held", || held(&proxy) == Some(1.0));
    waiting.abort();
    until_released(&proxy);
    assert_eq!(client.send_request(get("/")).await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_websocket_holds_until_it_is_closed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let Ok(mut socket) = accept_async(socket).await else { return };
                while let Some(Ok(_)) = socket.next().await {}
            });
        }
    });
    let policy = "[[limit]]\nname = 'uploads'\nconcurrent = 2\n";
    let proxy = Setup::to(std::slice::from_ref(&url))
        .proxy("max-concurrent-per-upstream = 1\n")
        .policy(policy)
        .start();
    let open = || connect_async(format!("ws://{}/chat", proxy.address));
    for closes in [true, false] {
        let (mut socket, response) = open().await.unwrap();
        assert_eq!(response.status(), 101);
        until("what it holds", || held(&proxy) == Some(1.0));
        assert_eq!(in_flight(&proxy, &url), Some(1.0));
        let busy = open().await.unwrap_err().to_string();
        assert!(busy.contains("503"), "{busy}");
        if closes {
            socket.close(None).await.unwrap();
            while let Some(Ok(_)) = socket.next().await {}
        }
        drop(socket);
        until_released(&proxy);
        until("the upstream to be free", || in_flight(&proxy, &url) == Some(0.0));
    }
}

#[test]
fn upstreams_at_their_bound_are_skipped_and_if_all_are_the_answer_is_503() {
    let upstreams = [service(), service()];
    let urls = upstreams.each_ref().map(Upstream::url);
    let proxy = Setup::to(&urls).proxy("max-concurrent-per-upstream = 1\n").start();
    let busy = [ask(&proxy, "/slow"), ask(&proxy, "/slow")];
    until("both to be busy", || urls.iter().all(|url| in_flight(&proxy, url) == Some(1.0)));
    let refused = proxy.get("/");
    assert_eq!((refused.status(), refused.header("retry-after")), (503, Some("1")));
    assert!(refused.problem().contains("busy"), "{refused:?}");
    assert_eq!(proxy.metric("spillgate_proxy_failures_total{kind=\"busy\"}"), Some(1.0));
    // A reload that makes new connections still counts those that are in flight.
    let file =
        Setup::to(&urls).proxy("max-concurrent-per-upstream = 1\nconnect-timeout = '4s'\n").file();
    proxy.home.write(&file);
    proxy.server.signal("HUP");
    until("the reload", || {
        proxy.metric("spillgate_reloads_total{outcome=\"accepted\"}") == Some(1.0)
    });
    assert_eq!(proxy.get("/").status(), 503);
    drop(busy);
    until("one to be free", || proxy.get("/").status() == 200);
    until("both to be free", || urls.iter().all(|url| in_flight(&proxy, url) == Some(0.0)));
}

#[test]
fn an_upstream_never_has_more_requests_than_its_bound() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&now), Arc::clone(&most));
    let upstream = Upstream::answering(move |_| {
        counts.1.fetch_max(counts.0.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        // Until as many as may have arrived, which the last ones need not.
        for _ in 0..50 {
            if counts.0.load(Ordering::SeqCst) >= 3 {
                break;
            }
            sleep(Duration::from_micros(100));
        }
        counts.0.fetch_sub(1, Ordering::SeqCst);
        ok("hello")
    });
    let proxy = Setup::to(&[upstream.url()])
        .proxy("max-concurrent-per-upstream = 3\n")
        .policy(OPEN)
        .start();
    let address = proxy.address;
    let clients: Vec<_> = (0..16)
        .map(|_| {
            spawn(move || {
                let mut client = Wire::connect(address);
                (0..50).map(|_| client.get("/", "").status()).collect::<Vec<_>>()
            })
        })
        .collect();
    let statuses: Vec<_> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{statuses:?}");
    assert!(statuses.contains(&200) && statuses.contains(&503));
    assert!(most.load(Ordering::SeqCst) <= 3, "{most:?}");
    until("every request to end", || in_flight(&proxy, &upstream.url()) == Some(0.0));
}
