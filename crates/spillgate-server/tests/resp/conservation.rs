use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::{Server, start};

/// Sends the same call `count` times, `pipeline` at once, and counts how many pass.
async fn call(server: &Server, call: &str, count: usize, pipeline: usize) -> usize {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let requests = format!("{call}\r\n").repeat(pipeline);
    let mut allowed = 0;
    for _ in 0..count / pipeline {
        socket.write_all(requests.as_bytes()).await.unwrap();
        let mut lines = 0;
        let mut replies = Vec::new();
        while lines < 6 * pipeline {
            let read = socket.read_buf(&mut replies).await.unwrap();
            lines += replies[replies.len() - read..].iter().filter(|byte| **byte == b'\n').count();
        }
        let replies = String::from_utf8(replies).unwrap();
        allowed += replies.matches("*5\r\n:0\r\n").count();
        assert_eq!(replies.matches("*5\r\n").count(), pipeline);
    }
    allowed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_connections_share_a_key_to_the_last_token() {
    const CONNECTIONS: usize = 64;
    let server: &Server = Box::leak(Box::new(start(None).await));
    let mut callers = JoinSet::new();
    for caller in 0..CONNECTIONS {
        // One a day, so nothing is refilled meanwhile. Every third costs 2.
        let cost = if caller % 3 == 0 { 2 } else { 1 };
        let hot = format!("CL.THROTTLE hot 4999 1 86400 {cost}");
        let own = format!("CL.THROTTLE own:{caller} 99 1 86400");
        callers.spawn(async move {
            let shared = call(server, &hot, 300, 1 + caller % 7).await * cost;
            (shared, call(server, &own, 300, 30).await)
        });
    }
    let spent = callers.join_all().await;
    assert_eq!(spent.iter().map(|(shared, _)| shared).sum::<usize>(), 5000);
    assert!(spent.iter().all(|(_, own)| *own == 100));
    let counts = server.endpoint.stats().counts();
    assert_eq!(counts.errors, 0);
    assert_eq!(counts.allowed + counts.limited, counts.commands);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_connections_share_a_limit_of_the_policy() {
    let server: &Server = Box::leak(Box::new(start(None).await));
    let mut callers = JoinSet::new();
    for _ in 0..32 {
        callers.spawn(call(server, "SG.CHECK api 203.0.113.7", 20, 5));
    }
    assert_eq!(callers.join_all().await.iter().sum::<usize>(), 5);
}
