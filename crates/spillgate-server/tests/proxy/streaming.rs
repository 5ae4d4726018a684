//! Bodies pass while they are still being sent, and no faster than they are read.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spillgate_testing::effort;

use crate::proxy::setup::{Proxy, Setup};
use crate::proxy::upstream::{Upstream, ok, respond};
use crate::proxy::wire::Wire;

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_request_that_trickles_is_seen_before_it_ends() {
    for (headers, pieces) in [
        ("content-length: 6", ["one", "two", ""]),
        ("transfer-encoding: chunked", ["3\r\none\r\n", "3\r\ntwo\r\n", "0\r\n\r\n"]),
    ] {
        let (tell, message) = channel();
        let tell = Mutex::new(tell);
        let upstream = Upstream::playing(move |mut wire, _| {
            wire.head().unwrap();
            for word in ["one", "two"] {
                assert!(wire.until(word.as_bytes()).is_some());
                tell.lock().unwrap().send(word).unwrap();
            }
            wire.send(ok("thanks"));
        });
        let proxy = Proxy::to(&upstream);
        let mut wire = proxy.connect();
        wire.send(format!("POST / HTTP/1.1\r\nhost: a\r\n{headers}\r\n\r\n"));
        for (piece, word) in pieces.into_iter().zip(["one", "two"]) {
            wire.send(piece);
            assert_eq!(message.recv_timeout(PATIENCE).unwrap(), word);
        }
        wire.send(pieces[2]);
        assert_eq!(wire.response("POST").unwrap().text(), "thanks");
    }
}

#[test]
fn a_response_that_trickles_is_seen_before_it_ends() {
    for (headers, pieces) in [
        ("content-length: 6", ["one", "two", ""]),
        ("transfer-encoding: chunked", ["3\r\none\r\n", "3\r\ntwo\r\n", "0\r\n\r\n"]),
    ] {
        let (go_on, may_go_on) = channel::<()>();
        let may_go_on = Mutex::new(may_go_on);
        let upstream = Upstream::playing(move |mut wire, seen| {
            seen.next(&mut wire).unwrap();
            wire.send(format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n"));
            for piece in pieces {
                may_go_on.lock().unwrap().recv_timeout(PATIENCE).unwrap();
                wire.send(piece);
            }
            wire.is_over();
        });
        let proxy = Proxy::to(&upstream);
        let mut wire = proxy.connect();
        wire.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        assert_eq!(wire.head().unwrap().status(), 200, "before there is any body");
        for word in ["one", "two"] {
            go_on.send(()).unwrap();
            assert!(wire.until(word.as_bytes()).is_some());
        }
        go_on.send(()).unwrap();
    }
}

#[test]
fn both_ends_can_talk_at_the_same_time() {
    let upstream = Upstream::playing(|mut wire, _| {
        wire.head().unwrap();
        wire.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        for word in ["one", "two"] {
            assert!(wire.until(word.as_bytes()).is_some());
            wire.send(format!("3\r\n{word}\r\n"));
        }
        assert!(wire.until(b"0\r\n\r\n").is_some());
        wire.send("0\r\n\r\n");
    });
    let proxy = Proxy::to(&upstream);
    let mut wire = proxy.connect();
    wire.send("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
    assert_eq!(wire.head().unwrap().status(), 200);
    for word in ["one", "two"] {
        wire.send(format!("3\r\n{word}\r\n"));
        assert!(wire.until(word.as_bytes()).is_some());
    }
    wire.send("0\r\n\r\n");
    assert!(wire.until(b"0\r\n\r\n").is_some());
}

#[test]
fn trailers_pass_both_ways() {
    let upstream = Upstream::answering(|_| {
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
         5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n"
            .to_owned()
    });
    let proxy = Proxy::to(&upstream);
    let mut wire = proxy.connect();
    wire.send(
        "POST / HTTP/1.1\r\nhost: a\r\nte: trailers\r\nconnection: te\r\ntrailer: x-sum\r\n\
         transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 8\r\n\r\n",
    );
    let response = wire.response("POST").unwrap();
    assert_eq!(response.trailers, [("x-sum".to_owned(), "7".to_owned())], "{response:?}");
    let request = upstream.request();
    assert_eq!(request.trailers, [("x-sum".to_owned(), "8".to_owned())], "{request:?}");
}

#[test]
fn requests_that_are_sent_together_are_answered_in_order() {
    let upstream = Upstream::answering(|request| ok(&request.text()));
    let proxy = Proxy::to(&upstream);
    let mut wire = proxy.connect();
    let bodies = ["one", "two", "three"];
    let post = |body: &str| {
        let length = body.len();
        format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    wire.send(bodies.map(post).concat());
    for body in bodies {
        assert_eq!(wire.response("POST").unwrap().text(), body);
    }
    assert_eq!(upstream.requests().len(), 3);
}

#[test]
fn who_asks_first_is_told_to_continue_and_then_sends_the_body() {
    let upstream = Upstream::answering(|request| ok(&request.text()));
    let proxy = Proxy::to(&upstream);
    let mut wire = proxy.connect();
    for _ in 0..2 {
        wire.send("PUT / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n");
        assert_eq!(wire.head().unwrap().status(), 100);
        wire.send("hello");
        assert_eq!(wire.response("PUT").unwrap().text(), "hello");
    }
}

#[test]
fn who_asks_first_and_is_refused_is_not_told_to_continue() {
    let upstream = Upstream::answering(|_| ok("hello"));
    let policy = "[[limit]]\nname = 'one'\nquota = '1/h'\n";
    let proxy = Setup::to(&[upstream.url()]).policy(policy).start();
    assert_eq!(proxy.get("/").status(), 200);
    let mut wire = proxy.connect();
    wire.send("PUT / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n");
    assert_eq!(wire.head().unwrap().status(), 429);
    upstream.request();
}

#[test]
fn an_answer_that_does_not_wait_for_the_body_is_passed_on() {
    let upstream = Upstream::playing(|mut wire, _| {
        wire.head().unwrap();
        wire.send(respond("413 Content Too Large", "connection: close\r\n", "too large"));
        wire.finish();
        // What still comes is read, so that nothing is lost to a reset.
        wire.rest();
    });
    let proxy = Proxy::to(&upstream);
    let mut wire = proxy.connect();
    wire.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\nsome of it");
    let response = wire.response("POST").unwrap();
    assert_eq!((response.status(), response.text().as_str()), (413, "too large"));
}

/// More than the system's buffers hold on four sockets, and much less than was offered.
const HELD: usize = 64 << 20;
const OFFERED: usize = 256 << 20;

/// Writes as long as somebody makes room in time; tells how much went out.
fn pour(wire: &Wire, count: &AtomicUsize) {
    let mut socket = wire.socket();
    let patience = Duration::from_millis(if effort() > 1 { 1000 } else { 500 });
    socket.set_write_timeout(Some(patience)).unwrap();
    let block = vec![b'x'; 64 * 1024];
    while count.load(Ordering::Relaxed) < OFFERED {
        match socket.write(&block) {
            Ok(written) => count.fetch_add(written, Ordering::Relaxed),
            Err(_) => return,
        };
    }
}

#[test]
fn whoever_does_not_read_is_not_sent_more_and_nothing_piles_up() {
    let sent = Arc::<AtomicUsize>::default();
    let (upstream_sent, (tell, message)) = (Arc::clone(&sent), channel());
    let tell = Mutex::new(tell);
    let upstream = Upstream::playing(move |mut wire, _| {
        let is_upload = wire.head().unwrap().start.starts_with("POST");
        if !is_upload {
            wire.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {OFFERED}\r\n\r\n"));
            pour(&wire, &upstream_sent);
        }
        tell.lock().unwrap().send(wire).unwrap();
    });
    let proxy = Proxy::to(&upstream);
    let before = proxy.server.resident();

    let mut client = proxy.connect();
    client.send(format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {OFFERED}\r\n\r\n"));
    let uploaded = AtomicUsize::new(0);
    pour(&client, &uploaded);
    let uploaded = uploaded.into_inner();
    assert!(uploaded < HELD, "{uploaded} bytes went nowhere");

    let mut reader = proxy.connect();
    reader.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    let silent = [message.recv_timeout(PATIENCE).unwrap(), message.recv_timeout(PATIENCE).unwrap()];
    let downloaded = sent.load(Ordering::Relaxed);
    assert!(downloaded < HELD, "{downloaded} bytes went nowhere");

    let grown = proxy.server.resident().saturating_sub(before);
    assert!(grown < 16 << 20, "the proxy holds {grown} bytes more");
    drop((client, reader, silent));
}
