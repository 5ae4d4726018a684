use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::{Talk, endpoint};
use crate::protocol::resp::codec::Limits;
use crate::protocol::resp::{Password, Timeouts};

const SECOND: Duration = Duration::from_secs(1);

const TIMEOUTS: Timeouts =
    Timeouts { idle: Duration::from_secs(100), stalled: Duration::from_secs(10) };

#[tokio::test]
async fn a_pipeline_is_answered_in_order_however_it_arrives() {
    let mut requests = String::new();
    let mut replies = String::new();
    for number in 0..200 {
        requests += &format!("*2\r\n$4\r\nECHO\r\n$3\r\n{number:03}\r\nPING\r\n\r\n");
        replies += &format!("$3\r\n{number:03}\r\n+PONG\r\n");
    }
    for size in [1, 2, 3, 7, 50, 1000, requests.len()] {
        let mut talk = Talk::with(&Arc::new(endpoint().0));
        for piece in requests.as_bytes().chunks(size) {
            talk.send(piece).await;
            tokio::task::yield_now().await;
        }
        talk.expect(&replies).await;
    }
}

#[tokio::test]
async fn replies_to_a_batch_come_in_one_write() {
    let mut talk = Talk::with(&Arc::new(endpoint().0));
    talk.send("PING\r\n".repeat(1000)).await;
    let mut bytes = vec![0; 64 * 1024];
    // A stream in memory hands over one write at a time, as much as there is room for.
    assert_eq!(talk.io.read(&mut bytes).await.unwrap(), 7000);
}

#[tokio::test]
async fn a_client_that_has_sent_all_gets_all_replies() {
    let mut talk = Talk::with(&Arc::new(endpoint().0));
    talk.send("PING\r\nPING\r\nPIN").await;
    talk.io.shutdown().await.unwrap();
    assert_eq!(talk.rest().await, "+PONG\r\n+PONG\r\n");
}

#[tokio::test]
async fn a_protocol_error_is_told_after_what_came_before_it() {
    let endpoint = Arc::new(endpoint().0);
    let mut talk = Talk::with(&endpoint);
    talk.send("PING\r\n*1\r\n:4\r\nPING\r\n").await;
    talk.io.shutdown().await.unwrap();
    assert_eq!(talk.rest().await, "+PONG\r\n-ERR Protocol error: expected '$', got ':'\r\n");
    assert_eq!(endpoint.stats().counts().protocol_errors, 1);
}

#[tokio::test]
async fn a_browser_is_not_answered_and_does_nothing() {
    let endpoint = Arc::new(endpoint().0);
    let mut talk = Talk::with(&endpoint);
    talk.send("POST / HTTP/1.1\r\nHost: x\r\n\r\nCL.THROTTLE k 15 30 60\r\n").await;
    assert_eq!(talk.rest().await, "");
    let counts = endpoint.stats().counts();
    assert_eq!((counts.foreign, counts.commands, counts.open), (1, 0, 0));
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_read_from() {
    let limits = Limits { backlog: 100_000, ..Limits::default() };
    let endpoint = Arc::new(endpoint().0.limits(limits));
    let talk = Talk::with(&endpoint);
    let (mut reading, mut writing) = tokio::io::split(talk.io);
    let request = format!("ECHO {}\r\n", "x".repeat(993));
    let count = 5000;
    let flood = request.repeat(count);
    let sender = tokio::spawn(async move { writing.write_all(flood.as_bytes()).await });
    // The stream holds 64 KiB, the server 100,000 bytes and one reply.
    while endpoint.stats().counts().commands < 160 {
        tokio::task::yield_now().await;
    }
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    let commands = endpoint.stats().counts().commands;
    assert!((160..=170).contains(&commands), "{commands} were carried out");
    // Once it reads, it gets everything.
    let mut replies = vec![0; count * 1001];
    reading.read_exact(&mut replies).await.unwrap();
    let reply = format!("$993\r\n{}\r\n", "x".repeat(993));
    assert!(replies.chunks(1001).all(|given| given == reply.as_bytes()));
    sender.await.unwrap().unwrap();
    talk.server.abort();
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_dropped_and_a_busy_one_is_not() {
    let endpoint = Arc::new(endpoint().0.timeouts(TIMEOUTS));
    let mut busy = Talk::with(&endpoint);
    let silent = Talk::with(&endpoint);
    let start = Instant::now();
    let silence = tokio::spawn(async move {
        assert_eq!(silent.rest().await, "");
        start.elapsed()
    });
    for _ in 0..50 {
        busy.ask("PING", "+PONG\r\n").await;
        sleep(9 * SECOND).await;
    }
    let silence = silence.await.unwrap();
    assert!((100 * SECOND..=110 * SECOND).contains(&silence), "{silence:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_stranger_is_dropped_sooner_than_a_client_with_the_password() {
    let endpoint = endpoint().0.timeouts(TIMEOUTS).password(Password::new("hush"));
    let endpoint = Arc::new(endpoint);
    let mut known = Talk::with(&endpoint);
    known.ask("AUTH hush", "+OK\r\n").await;
    let start = Instant::now();
    let stranger = Talk::with(&endpoint);
    let mut refused = Talk::with(&endpoint);
    refused.ask("PING", "-NOAUTH Authentication required.\r\n").await;
    assert_eq!((stranger.rest().await, refused.rest().await), (String::new(), String::new()));
    assert!(start.elapsed() <= 21 * SECOND, "{:?}", start.elapsed());
    sleep(60 * SECOND).await;
    known.ask("PING", "+PONG\r\n").await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_trickles_in_is_not_waited_for() {
    let endpoint = Arc::new(endpoint().0.timeouts(TIMEOUTS));
    let mut talk = Talk::with(&endpoint);
    talk.ask("PING", "+PONG\r\n").await;
    // A silence is no stall: the time runs from the first byte of a request.
    sleep(60 * SECOND).await;
    let start = Instant::now();
    let mut sent = 0;
    while talk.io.write_all(b"x").await.is_ok() {
        sent += 1;
        sleep(SECOND).await;
    }
    assert!((10..=21).contains(&sent), "{sent} bytes in {:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_is_dropped() {
    let endpoint = Arc::new(endpoint().0.timeouts(TIMEOUTS));
    let mut talk = Talk::with(&endpoint);
    let flood = format!("ECHO {}\r\n", "x".repeat(1000)).repeat(2000);
    let start = Instant::now();
    assert!(talk.io.write_all(flood.as_bytes()).await.is_err());
    assert!(start.elapsed() <= 21 * SECOND, "{:?}", start.elapsed());
    assert_eq!(endpoint.stats().counts().open, 0);
}

#[tokio::test]
async fn at_shutdown_what_was_received_is_answered() {
    let endpoint = Arc::new(endpoint().0);
    let (stop, stopped) = oneshot::channel();
    let mut talk = Talk::until(&endpoint, async { stopped.await.unwrap() });
    talk.ask("PING", "+PONG\r\n").await;
    talk.send("PING\r\n".repeat(500)).await;
    stop.send(()).unwrap();
    let rest = timeout(5 * SECOND, talk.rest()).await.unwrap();
    assert_eq!(rest, "+PONG\r\n".repeat(500));
}

#[tokio::test]
async fn shutdown_ends_silent_and_busy_clients_alike() {
    let endpoint = Arc::new(endpoint().0);
    let (stop, stopped) = oneshot::channel();
    let silent = Talk::until(&endpoint, async { stopped.await.unwrap() });
    let (stop_busy, stopped) = oneshot::channel();
    let busy = Talk::until(&endpoint, async { stopped.await.unwrap() });
    let (mut reading, mut writing) = tokio::io::split(busy.io);
    tokio::spawn(async move { while writing.write_all(b"PING\r\n").await.is_ok() {} });
    let replies = tokio::spawn(async move { reading.read_to_end(&mut Vec::new()).await });
    tokio::task::yield_now().await;
    stop.send(()).unwrap();
    stop_busy.send(()).unwrap();
    assert_eq!(timeout(5 * SECOND, silent.rest()).await.unwrap(), "");
    assert!(timeout(5 * SECOND, replies).await.unwrap().unwrap().unwrap() > 0);
    timeout(5 * SECOND, busy.server).await.unwrap().unwrap().unwrap();
    assert_eq!(endpoint.stats().counts().open, 0);
}

/// The memory of all connections, and a share for each.
fn is_within(endpoint: &super::Tested, budget: usize, connections: usize) -> bool {
    endpoint.buffered() <= budget + connections * 16 * 1024
}

#[tokio::test(start_paused = true)]
async fn clients_that_do_not_read_take_no_more_than_the_budget_together() {
    const BUDGET: usize = 2 << 20;
    const CLIENTS: usize = 300;
    let endpoint = Arc::new(endpoint().0.buffers(BUDGET).timeouts(TIMEOUTS));
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut talk = Talk::with(&endpoint);
        let flood = async move {
            let request = format!("ECHO {}\r\n", "x".repeat(1000));
            // Until the server reads no more, or hangs up.
            while talk.io.write_all(request.as_bytes()).await.is_ok() {}
        };
        clients.push(tokio::spawn(flood));
    }
    // When time goes on, nobody has anything left to do.
    sleep(SECOND).await;
    assert!(endpoint.buffered() >= BUDGET / 2, "{}", endpoint.buffered());
    assert!(is_within(&endpoint, BUDGET, CLIENTS), "{}", endpoint.buffered());
    let mut reader = Talk::with(&endpoint);
    for _ in 0..100 {
        reader.ask("ECHO hello", "$5\r\nhello\r\n").await;
    }
    // More than a client may have unread now, for one that reads.
    reader.send("PING\r\n".repeat(2000)).await;
    reader.expect(&"+PONG\r\n".repeat(2000)).await;
    sleep(TIMEOUTS.stalled * 20).await;
    assert_eq!(endpoint.buffered(), 0, "those who read nothing are gone");
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_for_much_at_once_is_closed_when_the_budget_is_used_up() {
    const BUDGET: usize = 1 << 20;
    const CLIENTS: usize = 200;
    let large = format!("ECHO {}\r\n", "x".repeat(60_000));
    let transaction = format!("MULTI\r\n{}EXEC\r\n", large.repeat(8));
    let half = format!("*9\r\n{}", format!("$60000\r\n{}\r\n", "x".repeat(60_000)).repeat(8));
    for requests in [transaction, half] {
        let endpoint = Arc::new(endpoint().0.buffers(BUDGET).timeouts(TIMEOUTS));
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let (mut talk, requests) = (Talk::with(&endpoint), requests.clone());
            clients.push(tokio::spawn(async move {
                // Whoever is closed cannot send all of it.
                let _ = talk.io.write_all(requests.as_bytes()).await;
                talk
            }));
        }
        sleep(SECOND).await;
        assert!(is_within(&endpoint, BUDGET, CLIENTS), "{}", endpoint.buffered());
        let counts = endpoint.stats().counts();
        assert!(counts.evicted > 100, "{counts:?}");
        Talk::with(&endpoint).ask("PING", "+PONG\r\n").await;
    }
}
