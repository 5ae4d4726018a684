use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::client::check;
use super::server::Server;

/// Sends the same body `count` times over one connection, `pipeline` at once, and counts how
/// often `sign` is answered.
async fn call(server: &Server, body: &str, count: usize, pipeline: usize, sign: &str) -> usize {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let length = body.len();
    let request = format!(
        "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    let requests = request.repeat(pipeline);
    let mut allowed = 0;
    for _ in 0..count / pipeline {
        socket.write_all(requests.as_bytes()).await.unwrap();
        let mut replies = String::new();
        // Each ends with its document.
        while replies.matches("\"wait\":0").count() < pipeline || !replies.ends_with('}') {
            let mut bytes = vec![0; 64 * 1024];
            let read = socket.read(&mut bytes).await.unwrap();
            assert!(read > 0, "{replies}");
            replies.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        }
        assert_eq!(replies.matches("HTTP/1.1 200 OK").count(), pipeline, "{replies}");
        allowed += replies.matches(sign).count();
    }
    allowed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_connections_share_a_key_to_the_last_token() {
    let server: &Server = Box::leak(Box::new(Server::start().await));
    let mut callers = JoinSet::new();
    for caller in 0..64 {
        // Every third costs 2.
        let cost = if caller % 3 == 0 { 2 } else { 1 };
        callers.spawn(async move {
            let body = format!(r#"{{"limit":"many","key":"user:hot","cost":{cost}}}"#);
            let own = format!(r#"{{"limit":"many","key":"user:{caller}","cost":100}}"#);
            let sign = "\"allowed\":true";
            let shared = call(server, &body, 60, 1 + caller % 5, sign).await * cost;
            (shared, call(server, &own, 20, 4, sign).await)
        });
    }
    let spent = callers.join_all().await;
    assert_eq!(spent.iter().map(|(shared, _)| shared).sum::<usize>(), 1000);
    assert!(spent.iter().all(|(_, own)| *own == 10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_names_and_several_at_once_share_one_allowance() {
    let server: &Server = Box::leak(Box::new(Server::start().await));
    let forms = [
        r#"{"limit":"many","key":"192.0.2.1"}"#,
        r#"{"request":{"path":"/many","ip":"192.0.2.1"}}"#,
        r#"{"checks":[{"limit":"many","key":"192.0.2.1"}]}"#,
    ];
    let mut callers = JoinSet::new();
    for caller in 0..24 {
        callers.spawn(call(
            server,
            forms[caller % 3],
            60,
            6,
            "{\"allowed\":true,\"limit\":\"many\",\"max\":1000,\"remaining\":",
        ));
    }
    assert_eq!(callers.join_all().await.iter().sum::<usize>(), 1000);
    let left = check(server, r#"{"limit":"many","key":"192.0.2.1","cost":0}"#).await;
    assert_eq!(left["remaining"], 0);
}
