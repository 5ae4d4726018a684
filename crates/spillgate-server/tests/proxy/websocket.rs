//! Upgrades, with a WebSocket library at both ends, and byte by byte.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{accept_async, connect_async};

use crate::common::server::until;
use crate::proxy::setup::{Proxy, Setup};
use crate::proxy::upstream::{Upstream, ok, respond};

const PATIENCE: Duration = Duration::from_secs(60);

/// A service that sends every message back, and tells when a conversation is over.
async fn echo() -> (SocketAddr, UnboundedReceiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, over) = unbounded_channel();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let tell = tell.clone();
            tokio::spawn(async move {
                let Ok(mut socket) = accept_async(socket).await else { return };
                while let Some(Ok(message)) = socket.next().await {
                    if (message.is_text() || message.is_binary())
                        && socket.send(message).await.is_err()
                    {
                        break;
                    }
                }
                let _ = tell.send(());
            });
        }
    });
    (address, over)
}

fn url(proxy: &Proxy) -> String {
    format!("ws://{}/echo", proxy.address)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_every_size_come_back_and_both_ends_say_goodbye() {
    let (address, mut over) = echo().await;
    let proxy = Setup::to(&[format!("http://{address}")]).start();
    let (mut socket, response) = connect_async(url(&proxy)).await.unwrap();
    assert_eq!(response.status(), 101);
    for size in [0, 1, 125, 126, 65_535, 65_536, 1_000_000] {
        for message in [Message::text("x".repeat(size)), Message::binary(vec![7; size])] {
            socket.send(message.clone()).await.unwrap();
            let reply = timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
            assert!(reply == message, "{size} bytes");
        }
    }
    socket.close(None).await.unwrap();
    let last = timeout(PATIENCE, socket.next()).await.unwrap();
    assert!(matches!(last, Some(Ok(Message::Close(_)))), "{last:?}");
    timeout(PATIENCE, over.recv()).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_leaves_ends_the_other_end() {
    let (address, mut over) = echo().await;
    let proxy = Setup::to(&[format!("http://{address}")]).start();
    let (mut socket, _) = connect_async(url(&proxy)).await.unwrap();
    socket.send(Message::text("hello")).await.unwrap();
    drop(socket);
    timeout(PATIENCE, over.recv()).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upgrades_meet_limits_and_a_refused_one_is_told_429() {
    let (address, _over) = echo().await;
    let policy = "[[limit]]\nname = 'sockets'\nquota = '2/h'\n";
    let proxy = Setup::to(&[format!("http://{address}")]).policy(policy).start();
    let mut open = Vec::new();
    for _ in 0..2 {
        open.push(connect_async(url(&proxy)).await.unwrap().0);
    }
    match connect_async(url(&proxy)).await {
        Err(Error::Http(response)) => assert_eq!(response.status(), 429),
        other => panic!("{other:?}"),
    }
    // Messages are not counted.
    for socket in &mut open {
        for _ in 0..10 {
            socket.send(Message::text("hello")).await.unwrap();
            assert!(socket.next().await.unwrap().unwrap().is_text());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_is_silent_for_too_long_is_ended() {
    // Where a busy machine lets more time pass than is meant to, once more with more of it.
    for patience in [1, 4, 16].map(Duration::from_secs) {
        let (address, mut over) = echo().await;
        let bound = format!("upgrade-idle-timeout = '{}s'\n", patience.as_secs());
        let proxy = Setup::to(&[format!("http://{address}")])
            .proxy(&bound)
            .proxy("idle-timeout = '300ms'\n")
            .start();
        let (mut socket, _) = connect_async(url(&proxy)).await.unwrap();
        let begin = Instant::now();
        let mut longest = Duration::ZERO;
        // For longer than it may be silent.
        for _ in 0..4 {
            let silent = Instant::now();
            tokio::time::sleep(patience.mul_f64(0.4)).await;
            let is_sent = socket.send(Message::text("still here")).await.is_ok();
            let reply = timeout(PATIENCE, socket.next()).await.unwrap();
            longest = longest.max(silent.elapsed());
            let is_there = is_sent && matches!(reply, Some(Ok(Message::Text(_))));
            assert!(is_there || longest >= patience.mul_f64(0.9), "{reply:?} after {longest:?}");
        }
        if longest >= patience.mul_f64(0.9) {
            continue;
        }
        assert!(begin.elapsed() > patience);
        let end = timeout(PATIENCE, socket.next()).await.unwrap();
        assert!(!matches!(end, Some(Ok(_))), "{end:?}");
        timeout(PATIENCE, over.recv()).await.unwrap().unwrap();
        return;
    }
    panic!("this machine is too busy");
}

const UPGRADE: &str = "GET /chat HTTP/1.1\r\nhost: a\r\nconnection: keep-alive, Upgrade\r\nupgrade: chat\r\n\
    sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: chat\r\n\
    sec-websocket-accept: x\r\n\r\n";

#[test]
fn what_is_sent_together_with_the_heads_is_not_lost() {
    let upstream = Upstream::playing(|mut wire, seen| {
        let request = seen.next(&mut wire).unwrap();
        assert_eq!(request.header("upgrade"), Some("chat"));
        assert!(request.header("connection").unwrap().eq_ignore_ascii_case("upgrade"));
        wire.send(format!("{SWITCH}first words"));
        assert_eq!(wire.take(5), b"early");
        wire.send("goodbye");
    });
    let proxy = Proxy::to(&upstream);
    let mut client = proxy.connect();
    client.send(format!("{UPGRADE}early"));
    let response = client.head().unwrap();
    assert_eq!((response.status(), response.header("upgrade")), (101, Some("chat")));
    assert!(response.header("connection").unwrap().eq_ignore_ascii_case("upgrade"));
    assert_eq!(client.rest(), b"first wordsgoodbye");
}

#[test]
fn one_end_may_finish_before_the_other() {
    let upstream = Upstream::playing(|mut wire, seen| {
        seen.next(&mut wire).unwrap();
        wire.send(SWITCH);
        let all = wire.rest();
        wire.send(format!("{} bytes", all.len()));
    });
    let proxy = Proxy::to(&upstream);
    let mut client = proxy.connect();
    client.send(UPGRADE);
    assert_eq!(client.head().unwrap().status(), 101);
    client.send("x".repeat(100_000));
    client.finish();
    assert_eq!(client.rest(), b"100000 bytes");
}

#[test]
fn an_upgrade_that_the_upstream_declines_is_an_ordinary_response() {
    let upstream = Upstream::answering(|request| match request.header("upgrade") {
        Some(_) => respond("426 Upgrade Required", "", "not here"),
        None => ok("plain"),
    });
    let proxy = Proxy::to(&upstream);
    let mut client = proxy.connect();
    client.send(UPGRADE);
    let response = client.response("GET").unwrap();
    assert_eq!((response.status(), response.text().as_str()), (426, "not here"));
    // What the client says next could be either protocol, so it has to begin anew.
    assert_eq!(response.header("connection"), Some("close"));
    assert!(client.is_over());
    assert_eq!(proxy.get("/").text(), "plain");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upgrades_do_not_keep_a_server_from_ending() {
    let (address, mut over) = echo().await;
    let proxy =
        Setup::to(&[format!("http://{address}")]).server("shutdown-timeout = '500ms'\n").start();
    let (mut socket, _) = connect_async(url(&proxy)).await.unwrap();
    socket.send(Message::text("hello")).await.unwrap();
    assert!(socket.next().await.unwrap().is_ok());
    let pid_is_gone = std::thread::spawn(move || {
        proxy.server.signal("TERM");
        proxy.server.wait()
    });
    until("the end", || pid_is_gone.is_finished());
    timeout(PATIENCE, over.recv()).await.unwrap().unwrap();
}
