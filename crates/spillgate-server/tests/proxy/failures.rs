//! Upstreams that are slow, dead or gone, and what the client is told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use crate::common::server::until;
use crate::proxy::setup::{Proxy, Setup};
use crate::proxy::upstream::{Upstream, nobody, ok};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn an_upstream_that_does_not_answer_in_time_is_a_504_and_is_hung_up_on() {
    let (tell, message) = mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    let upstream = Upstream::playing(move |mut wire, seen| {
        while let Some(request) = seen.next(&mut wire) {
            if request.path() == "/slow" {
                tell.lock().unwrap().send(wire.is_over()).unwrap();
                return;
            }
            wire.send(ok("quick"));
        }
    });
    let proxy = Setup::to(&[upstream.url()]).proxy("response-timeout = '1s'\n").start();
    let mut client = proxy.connect();
    let response = client.get("/slow", "");
    assert_eq!(response.status(), 504, "{response:?}");
    response.problem();
    assert!(message.recv_timeout(PATIENCE).unwrap(), "the upstream was hung up on");
    // Neither the client's connection nor the upstream is given up for that.
    assert_eq!(client.get("/", "").text(), "quick");
}

#[test]
fn a_body_that_stands_still_is_cut_off() {
    let upstream = Upstream::playing(|mut wire, seen| {
        seen.next(&mut wire).unwrap();
        wire.send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nsome");
        wire.is_over();
    });
    let proxy = Setup::to(&[upstream.url()]).proxy("idle-timeout = '300ms'\n").start();
    let response = proxy.get("/");
    assert!(!response.is_whole && response.text() == "some", "{response:?}");
}

#[test]
fn a_body_that_is_slow_but_moves_is_not_cut_off() {
    let upstream = Upstream::playing(|mut wire, seen| {
        seen.next(&mut wire).unwrap();
        wire.send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n");
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(300));
            wire.send("x");
        }
        wire.is_over();
    });
    let proxy = Setup::to(&[upstream.url()])
        .proxy("idle-timeout = '2s'\nresponse-timeout = '2s'\n")
        .start();
    let response = proxy.get("/");
    assert!(response.is_whole && response.text() == "xxxxxxxxxx", "{response:?}");
}

#[test]
fn a_client_that_stops_in_the_middle_of_its_body_is_not_waited_for() {
    let upstream = Upstream::answering(|_| ok("all of it"));
    let proxy = Setup::to(&[upstream.url()]).proxy("idle-timeout = '300ms'\n").start();
    let mut client = proxy.connect();
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nsome");
    let response = client.response("POST");
    assert!(response.is_none_or(|response| matches!(response.status(), 408 | 504)));
    until("the end at the upstream", || {
        upstream.requests().iter().any(|request| !request.is_whole)
    });
}

#[test]
fn a_client_that_stops_in_the_middle_of_its_head_is_not_waited_for() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let proxy = Setup::to(&[upstream.url()]).server("io-timeout = '300ms'\n").start();
    let mut client = proxy.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n");
    assert!(client.response("GET").is_none_or(|response| response.status() == 408));
    assert!(client.rest().is_empty());
    assert_eq!(upstream.connections(), 0);
}

#[test]
fn a_dead_upstream_is_a_502_until_it_is_back() {
    let place = nobody();
    let address = place.address();
    let proxy = Setup::to(&[format!("http://{address}")]).start();
    let response = proxy.get("/");
    assert_eq!(response.status(), 502, "{response:?}");
    let port = address.port().to_string();
    assert!(!response.problem().contains(&port), "where it is does not concern the client");
    // There is no other, so it is tried again, and found as soon as it is there.
    assert_eq!(proxy.get("/").status(), 502);
    let _upstream = Upstream::at(address, |_| ok("back"));
    until("the upstream is back", || proxy.get("/").text() == "back");
    let log = proxy.server.stop();
    assert!(log.contains(&address.to_string()), "{log}");
}

/// A listener that accepts nobody and has no room for more, and those who take it.
async fn full() -> (TcpListener, Vec<JoinHandle<std::io::Result<TcpStream>>>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // Those who are not accepted take all the places there are; the last wait in vain.
    let waiting = (0..4).map(|_| tokio::spawn(TcpStream::connect(address))).collect();
    (listener, waiting)
}

const HASTY: &str = "connect-timeout = '500ms'\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_takes_no_connection_in_time_is_a_504_or_another_is_asked() {
    let (listener, _waiting) = full().await;
    let upstream = Upstream::answering(|_| ok("hello"));
    let hasty = |urls: &[String]| Setup::to(urls).proxy(HASTY).start();
    let full = format!("http://{}", listener.local_addr().unwrap());
    let alone = hasty(std::slice::from_ref(&full));
    until("all places are taken", || alone.get("/").status() == 504);
    let both = hasty(&[full, upstream.url()]);
    for _ in 0..4 {
        assert_eq!(both.get("/").text(), "hello");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_wait_for_a_connection_that_all_share_do_not_wait_in_turn() {
    let (listener, _waiting) = full().await;
    let url = format!("h2c://{}", listener.local_addr().unwrap());
    let proxy = Setup::to(&[url]).proxy(HASTY).start();
    until("all places are taken", || proxy.get("/").status() == 504);
    // In turn, the last would wait for longer than a test does.
    let mut clients: Vec<_> = (0..100).map(|_| proxy.connect()).collect();
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    }
    for client in clients.iter_mut().rev() {
        assert_eq!(client.response("GET").unwrap().status(), 504);
    }
}

#[test]
fn an_upstream_that_ends_and_comes_back_is_found_again() {
    let upstream = Upstream::at("127.0.0.78:0", |_| ok("first"));
    let address = upstream.address;
    let proxy = Proxy::to(&upstream);
    assert_eq!(proxy.get("/").text(), "first");
    drop(upstream);
    assert_eq!(proxy.get("/").status(), 502);
    let _upstream = Upstream::at(address, |_| ok("second"));
    until("the second", || proxy.get("/").text() == "second");
}

#[test]
fn an_upstream_whose_name_leads_nowhere_is_a_502() {
    let proxy = Setup::to(&["http://nobody.invalid:80".to_owned()]).start();
    let response = proxy.get("/");
    assert_eq!(response.status(), 502, "{response:?}");
    response.problem();
    let log = proxy.server.stop();
    assert!(log.contains("nobody.invalid"), "{log}");
}

#[test]
fn an_upstream_that_fails_its_probe_is_left_alone_until_it_passes_one() {
    let is_well = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&is_well);
    let upstream = Upstream::answering(move |request| {
        let is_fine = request.path() != "/health" || asked.load(Ordering::Relaxed);
        let status = if is_fine { "200 OK" } else { "503 Service Unavailable" };
        crate::proxy::upstream::respond(status, "", "")
    });
    let proxy = Setup::to(&[upstream.url()])
        .proxy("health-check-path = '/health'\nhealth-check-interval = '100ms'\n")
        .start();
    until("it is well", || proxy.get("/").status() == 200);
    is_well.store(false, Ordering::Relaxed);
    until("it is left alone", || proxy.get("/").status() == 503);
    is_well.store(true, Ordering::Relaxed);
    until("it is asked again", || proxy.get("/").status() == 200);
}
