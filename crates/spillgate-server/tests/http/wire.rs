use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{Reply, ask, check, raw};
use super::server::Server;

const BODY: &str = r#"{"limit":"many","key":"user:1"}"#;

/// A plain check, with more headers.
pub(crate) fn request(extra: &str) -> String {
    let length = BODY.len();
    format!(
        "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{extra}\r\n{BODY}"
    )
}

#[tokio::test]
async fn garbage_closes_its_connection_and_no_other() {
    let server = Server::start().await;
    let streams: [&[u8]; 8] = [
        b"\0\0\0\0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello\r\n\r\n",
        b"*3\r\n$8\r\nSG.CHECK\r\n$3\r\napi\r\n$1\r\nx\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost localhost\r\n\r\n",
        b"GET / HTTP/9.9\r\nhost: localhost\r\n\r\n",
        b"GET  /  / HTTP/1.1\r\n\r\n",
        b"POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
    ];
    for stream in streams {
        let reply = raw(&server, stream).await;
        let is_refused = reply.is_empty()
            || reply.starts_with(b"HTTP/1.1 4")
            || reply.starts_with(b"HTTP/1.1 5");
        assert!(
            is_refused,
            "{:?}: {:?}",
            String::from_utf8_lossy(stream),
            String::from_utf8_lossy(&reply)
        );
    }
    assert_eq!(check(&server, BODY).await["remaining"], 999);
}

#[tokio::test]
async fn heads_and_bodies_that_are_too_large_are_refused() {
    let server = Server::start().await;
    let with = |extra: &str| request(&format!("connection: close\r\n{extra}"));
    let long = format!("x-long: {}\r\n", "x".repeat(20_000));
    let status = |bytes: Vec<u8>| Reply::parse(&bytes).status;
    assert_eq!(status(raw(&server, with(&long).as_bytes()).await), 431);
    let many: String = (0..200).map(|number| format!("x-{number}: y\r\n")).collect();
    assert_eq!(status(raw(&server, with(&many).as_bytes()).await), 431);
    let body = format!(r#"{{"limit":"{}"}}"#, "x".repeat(1024 * 1024));
    let reply = ask(&server, "POST /v1/check").json(&body).send().await;
    assert_eq!(
        (reply.status, reply.detail().as_str()),
        (413, "request body larger than 1048576 bytes")
    );
    // One that does not say how long it is.
    let chunk = "x".repeat(64 * 1024);
    let mut chunked =
        "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                       transfer-encoding: chunked\r\n\r\n"
            .to_owned();
    for _ in 0..17 {
        chunked.push_str(&format!("{:x}\r\n{chunk}\r\n", chunk.len()));
    }
    chunked.push_str("0\r\n\r\n");
    assert_eq!(status(raw(&server, chunked.as_bytes()).await), 413);
    let path = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(70_000));
    assert!(matches!(status(raw(&server, path.as_bytes()).await), 414 | 431));
    assert_eq!(check(&server, BODY).await["remaining"], 999);
}

#[tokio::test]
async fn a_request_that_would_upgrade_is_answered_like_any_other() {
    let server = Server::start().await;
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\n";
    let text = request(upgrade);
    let (head, body) = text.split_at(text.len() - BODY.len());
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    for _ in 0..2 {
        // The body comes later.
        socket.write_all(head.as_bytes()).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        socket.write_all(body.as_bytes()).await.unwrap();
        let mut reply = Vec::new();
        while !reply.ends_with(b"}") {
            assert!(socket.read_buf(&mut reply).await.unwrap() > 0);
        }
        assert_eq!(Reply::parse(&reply).status, 200, "{}", String::from_utf8_lossy(&reply));
    }
    assert_eq!(check(&server, BODY).await["remaining"], 997);
}

#[tokio::test]
async fn a_body_in_pieces_is_one_body() {
    let server = Server::start().await;
    let mut chunked = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                       content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        .to_owned();
    for byte in BODY.chars() {
        chunked.push_str(&format!("1\r\n{byte}\r\n"));
    }
    chunked.push_str("0\r\nx-trailer: y\r\n\r\n");
    let reply = Reply::parse(&raw(&server, chunked.as_bytes()).await);
    assert_eq!((reply.status, &reply.json()["remaining"]), (200, &serde_json::json!(999)));
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::start().await;
    let mut stream = request("").repeat(49);
    stream.push_str(&request("connection: close\r\n"));
    let replies = String::from_utf8(raw(&server, stream.as_bytes()).await).unwrap();
    let message: Vec<_> = replies
        .match_indices("\"remaining\":")
        .map(|(place, name)| replies[place + name.len()..].split(',').next().unwrap().to_owned())
        .collect();
    let expected: Vec<_> = (0..50).map(|spent| (999 - spent).to_string()).collect();
    assert_eq!(message, expected);
}

#[tokio::test]
async fn plain_checks_and_unusual_ones_are_answered_alike() {
    let server = Server::start().await;
    for (headers, body) in [
        ("", r#"{"limit":"many","key":"user:1","cost":0}"#),
        ("", r#"{"limit":"many","key":"user:1","cost":1001}"#),
        ("", r#"{"batch":[{"limit":"total","cost":0},{"limit":"totl"}]}"#),
        ("", r#"{"request":{"path":"/elsewhere"}}"#),
        ("", r#"{"limit":"man"}"#),
        ("", "nonsense"),
        ("host: evil.example\r\n", BODY),
        ("content-type: text/plain\r\n", BODY),
    ] {
        let request = |extra: &str| {
            let given = |name: &str| headers.starts_with(name);
            let host = if given("host") { "" } else { "host: localhost\r\n" };
            let kind =
                if given("content-type") { "" } else { "content-type: application/json\r\n" };
            let length = body.len();
            format!(
                "POST /v1/check HTTP/1.1\r\n{host}{kind}{headers}content-length: {length}\r\n\
                 {extra}\r\n{body}"
            )
        };
        let plain = Reply::parse(&raw(&server, request("").as_bytes()).await);
        let unusual = request("connection: keep-alive\r\n");
        let unusual = Reply::parse(&raw(&server, unusual.as_bytes()).await);
        assert_eq!((plain.status, &plain.body), (unusual.status, &unusual.body), "{body}");
        for name in ["content-type", "content-length", "www-authenticate", "cache-control"] {
            assert_eq!(plain.header(name), unusual.header(name), "{name} of {body}");
        }
        assert!(plain.header("date").unwrap().ends_with(" gmt"), "{plain:?}");
    }
}

#[tokio::test]
async fn a_connection_may_ask_for_other_things_after_plain_checks() {
    let server = Server::start().await;
    let plain = request("");
    let stream = format!("{plain}{plain}GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n{plain}");
    let replies = String::from_utf8(raw(&server, stream.as_bytes()).await).unwrap();
    assert_eq!(replies.matches("HTTP/1.1 200 OK\r\n").count(), 4, "{replies}");
    let (before, after) = replies.split_once("ok\n").unwrap();
    assert!(
        before.contains("\"remaining\":998") && after.contains("\"remaining\":997"),
        "{replies}"
    );
    let metrics = ask(&server, "GET /metrics").send().await.body;
    assert!(metrics.contains(r#"spillgate_http_requests_total{route="check",status="2xx"} 3"#));
}

#[tokio::test]
async fn a_client_that_sends_no_more_is_still_answered() {
    let server = Server::start().await;
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    socket.write_all(request("").as_bytes()).await.unwrap();
    socket.shutdown().await.unwrap();
    let mut reply = Vec::new();
    socket.read_to_end(&mut reply).await.unwrap();
    assert_eq!(Reply::parse(&reply).status, 200);
    // One that hangs up in the middle has asked nothing.
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let request = request("");
    socket.write_all(&request.as_bytes()[..request.len() - 1]).await.unwrap();
    socket.shutdown().await.unwrap();
    let mut reply = Vec::new();
    let _ = socket.read_to_end(&mut reply).await;
    assert!(!reply.starts_with(b"HTTP/1.1 200"));
    assert_eq!(check(&server, BODY).await["remaining"], 998);
}
