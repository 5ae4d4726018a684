use spillgate_server::Access;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{Reply, ask, check, raw};
use super::server::{POLICY, Server, app, token};

/// The headers of Traefik and Caddy, and those of nginx as it is told to.
const FAMILIES: [[&str; 4]; 2] = [
    ["x-forwarded-uri", "x-forwarded-method", "x-forwarded-host", "x-forwarded-for"],
    ["x-original-uri", "x-original-method", "x-original-host", "x-real-ip"],
];

async fn auth(server: &Server, query: &str, headers: &[(&str, &str)]) -> Reply {
    let mut asks = ask(server, &format!("GET /auth{query}"));
    for (name, value) in headers {
        asks = asks.header(name, value);
    }
    asks.send().await
}

/// Asks about a request as a proxy of a family does.
async fn about(server: &Server, family: usize, path: &str, client: &str) -> Reply {
    let [uri, method, host, ip] = FAMILIES[family];
    auth(server, "", &[(uri, path), (method, "GET"), (host, "example.com"), (ip, client)]).await
}

#[tokio::test]
async fn a_proxy_on_the_same_machine_is_answered_for_its_clients() {
    let server = Server::start().await;
    for (family, client) in [(0, "203.0.113.7"), (1, "203.0.113.8")] {
        for remaining in (0..5).rev() {
            let reply = about(&server, family, "/api/x?y=1", client).await;
            assert_eq!((reply.status, reply.body.as_str()), (200, ""), "{reply:?}");
            let expected = format!("\"api\";r={remaining};t=");
            assert!(reply.header("ratelimit").unwrap().starts_with(&expected), "{reply:?}");
            assert_eq!(reply.header("x-ratelimit-limit"), Some("5"));
            assert_eq!(reply.header("x-spillgate-status"), Some("200"));
        }
        let reply = about(&server, family, "/api/x", client).await;
        assert_eq!(reply.status, 429);
        assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() > 3500);
        assert!(reply.detail().contains("The limit api is exceeded."), "{reply:?}");
    }
    let metrics = ask(&server, "GET /metrics").send().await.body;
    assert!(
        metrics.contains(r#"spillgate_requests_total{limit="api",outcome="denied"} 2"#),
        "{metrics}"
    );
}

#[tokio::test]
async fn what_a_client_writes_itself_does_not_count() {
    let server = Server::start().await;
    // The last of the list is whom the proxy was called by.
    for (index, spoofed) in
        ["1.1.1.1, ", "9.9.9.9,  ", "garbage, ", "127.0.0.1, ", ""].iter().enumerate()
    {
        let reply = about(&server, 0, "/api/x", &format!("{spoofed}203.0.113.7")).await;
        assert_eq!(reply.status, 200, "{index}");
    }
    assert_eq!(about(&server, 0, "/api/x", "8.8.8.8, 203.0.113.7").await.status, 429);
    // The path is what stands before the query, whatever that holds.
    for spoofed in ["/api/x?to=http://h/free", "http://example.com/api/x?/free", "/free/../api/x"] {
        assert_eq!(about(&server, 0, spoofed, "203.0.113.7").await.status, 429, "{spoofed}");
    }
    assert_eq!(about(&server, 0, "/api/x#/free", "203.0.113.7").await.status, 400);
    // Another client's headers beside those of the proxy.
    let [uri, method, host, ip] = FAMILIES[1];
    let nginx = [(uri, "/api/x"), (method, "GET"), (host, "h"), (ip, "203.0.113.7")];
    let with = |extra| [&nginx[..], &[extra]].concat();
    assert_eq!(auth(&server, "", &with(("x-forwarded-for", "8.8.8.8"))).await.status, 429);
    assert_eq!(auth(&server, "", &with(("x-forwarded-method", "PUT"))).await.status, 429);
    assert_eq!(auth(&server, "", &with(("x-forwarded-uri", "/free"))).await.status, 400);
    assert_eq!(auth(&server, "", &with((uri, "/free"))).await.status, 400);
    assert_eq!(auth(&server, "", &with((ip, "8.8.8.8"))).await.status, 400);
    assert_eq!(auth(&server, "", &with(("origin", "https://example.com"))).await.status, 429);
    assert_eq!(auth(&server, "", &with(("authorization", "Bearer x"))).await.status, 429);
    // A refusal in gRPC has the status 200, and the proxy would let it pass.
    let grpc = [(uri, "/api/x"), (method, "POST"), (host, "h"), (ip, "203.0.113.7")];
    let grpc = [&grpc[..], &[("content-type", "application/grpc")]].concat();
    assert_eq!(auth(&server, "", &grpc).await.status, 429);
}

#[tokio::test]
async fn a_proxy_that_leaves_something_out_is_told_what() {
    let server = Server::start().await;
    for family in FAMILIES {
        for missing in family {
            let all = family
                .map(|name| (name, if name.ends_with("method") { "GET" } else { "192.0.2.1" }));
            let headers: Vec<_> = all.into_iter().filter(|(name, _)| *name != missing).collect();
            let reply = auth(&server, "", &headers).await;
            assert_eq!(reply.status, 400, "{missing}");
            assert!(reply.detail().contains(missing), "{missing}: {}", reply.detail());
        }
    }
    assert_eq!(about(&server, 0, "/", "nobody").await.status, 400);
    assert_eq!(
        check(&server, r#"{"limit":"api","key":"192.0.2.1","cost":0}"#).await["remaining"],
        5
    );
}

#[tokio::test]
async fn whoever_is_not_known_as_a_proxy_is_refused() {
    let elsewhere = ["10.0.0.0/8".parse().unwrap()];
    let access = Access::loopback(token()).auth_from(elsewhere);
    let server = Server::with(app().with_access(access)).await;
    let reply = about(&server, 0, "/", "203.0.113.7").await;
    assert_eq!(reply.status, 403);
    assert!(reply.detail().contains("127.0.0.1 is not a trusted proxy"), "{reply:?}");
    assert!(reply.detail().contains("auth-allow"), "{reply:?}");
    // A policy that trusts it is enough, and then finds the client itself.
    let trusting = format!("[identity]\ntrusted-proxies = ['127.0.0.1', '192.0.2.0/24']\n{POLICY}");
    server.app.replace(&trusting).unwrap();
    assert_eq!(about(&server, 0, "/", "9.9.9.9, 203.0.113.7, 192.0.2.1").await.status, 200);
    let left = check(&server, r#"{"limit":"api","key":"203.0.113.7","cost":0}"#).await;
    assert_eq!(left["remaining"], 4);
}

#[tokio::test]
async fn a_refusal_can_have_a_status_that_the_proxy_knows() {
    let server = Server::start().await;
    server
        .app
        .gate()
        .list(
            spillgate_policy::ListKind::Block,
            "198.51.100.1",
            spillgate_policy::Terms::permanent(),
        )
        .await
        .unwrap();
    let [uri, method, host, ip] = FAMILIES[1];
    let ask = |query: &'static str, path: &'static str, client: &'static str| {
        let server = &server;
        async move {
            let headers = [(uri, path), (method, "GET"), (host, "h"), (ip, client)];
            let reply = auth(server, query, &headers).await;
            (reply.status, reply.header("x-spillgate-status").map(str::to_owned))
        }
    };
    for _ in 0..2 {
        assert_eq!(ask("?deny=403", "/once", "192.0.2.1").await, (200, Some("200".into())));
    }
    assert_eq!(ask("?deny=403", "/once", "192.0.2.1").await, (403, Some("429".into())));
    assert_eq!(ask("", "/once", "192.0.2.1").await, (429, Some("429".into())));
    assert_eq!(ask("?deny=401", "/once", "198.51.100.1").await, (401, Some("403".into())));
    for wrong in ["?deny=200", "?deny=x", "?deny=500", "?deny=600", "?den=403"] {
        assert_eq!(ask(wrong, "/", "192.0.2.9").await, (400, Some("400".into())), "{wrong}");
    }
    for wrong in ["?deny=403&x=1", "?x&deny=403", "?deny=403&deny=401", "?deny=200&deny=403"] {
        assert_eq!(ask(wrong, "/", "192.0.2.9").await, (403, Some("400".into())), "{wrong}");
    }
}

#[tokio::test]
async fn a_cost_that_is_settled_by_the_response_stands_since_nobody_sees_it() {
    let server = Server::start().await;
    for expected in [200, 200, 429] {
        assert_eq!(about(&server, 0, "/login", "192.0.2.1").await.status, expected);
    }
}

#[tokio::test]
async fn a_shaper_holds_a_request_back_until_it_is_its_turn() {
    let server = Server::start().await;
    let begin = tokio::time::Instant::now();
    for _ in 0..3 {
        assert_eq!(about(&server, 0, "/queue", "192.0.2.1").await.status, 200);
    }
    // 20 a second: the third leaves 100 ms after the first.
    assert!(begin.elapsed().as_millis() >= 95, "{:?}", begin.elapsed());
}

/// What nginx sends about a request, with more headers.
fn described(extra: &[u8]) -> Vec<u8> {
    let head = b"GET /auth?deny=403 HTTP/1.1\r\nHost: localhost\r\nX-Original-URI: /once\r\n\
                 X-Original-Method: GET\r\nX-Original-Host: h\r\nX-Real-IP: 192.0.2.1\r\n";
    [head, extra, b"\r\n"].concat()
}

fn many(count: usize, length: usize) -> Vec<u8> {
    let value = "v".repeat(length);
    (0..count).flat_map(|number| format!("x-{number}: {value}\r\n").into_bytes()).collect()
}

/// Heads that cannot be decided about, and the status that they would have elsewhere.
fn undecidable() -> Vec<(Vec<u8>, &'static str)> {
    let lines: [&[u8]; 15] = [
        b"x-a: \x01\r\n",
        b"x-a: \0\r\n",
        b"x-\xe9: a\r\n",
        b"x a: b\r\n",
        b": b\r\n",
        b"no colon\r\n",
        b"x-a: b\r\n folded\r\n",
        b"x-a: b\n",
        b"host: localhost\r\n",
        b"x-original-uri: /free\r\n",
        b"x-forwarded-uri: /free\r\n",
        b"x-real-ip: 8.8.8.8\r\n",
        b"content-length: 5\r\n",
        b"content-length: x\r\n",
        b"transfer-encoding: chunked\r\n",
    ];
    let mut heads: Vec<_> = lines.into_iter().map(|line| (described(line), "400")).collect();
    let whole = String::from_utf8(described(b"")).unwrap();
    for (part, other) in [
        ("X-Original-URI: /once\r\n", ""),
        ("X-Original-URI: /once", "X-Original-URI: /caf\u{e9}"),
        ("X-Original-Method: GET", "X-Original-Method: G<T"),
        ("X-Original-Method: GET", "X-Original-Method:"),
        ("X-Original-Host: h\r\n", ""),
        ("X-Real-IP: 192.0.2.1", "X-Real-IP: nobody"),
        ("Host: localhost\r\nX", "X"),
        (" HTTP/1.1", " HTTP/2.0"),
        (" HTTP/1.1", ""),
        ("?deny=403 HTTP", "?deny=403&x=1 HTTP"),
        ("/auth?deny=403", "/auth?deny=403&\u{1}"),
    ] {
        assert!(whole.contains(part), "{part}");
        heads.push((whole.replace(part, other).into_bytes(), "400"));
    }
    heads.push((whole.replace("Host: localhost", "Host: evil.example").into_bytes(), "421"));
    heads.push((described(&many(2, 100_000)), "431"));
    heads.push((described(&many(1, 2_000_000)), "431"));
    heads.push((described(&many(40_000, 1)), "431"));
    heads
}

#[tokio::test]
async fn whatever_cannot_be_decided_about_has_the_status_of_a_refusal() {
    let server = Server::start().await;
    // Also on a connection on which something else was asked before, however it was sent.
    let before = [
        "",
        "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "HEAD /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: 26\r\n\r\n{\"limit\":\"total\",\"cost\":0}",
        "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\n1a\r\n{\"limit\":\"total\",\"cost\":0}\r\n0\r\n\r\n",
        "GET /nowhere HTTP/1.1\r\nhost: localhost\r\n\r\n",
    ];
    for before in before {
        for (head, status) in undecidable() {
            let shown = String::from_utf8_lossy(&head[..head.len().min(300)]).into_owned();
            let replies = raw(&server, &[before.as_bytes(), &head].concat()).await;
            let replies = String::from_utf8(replies).unwrap();
            let last = replies.rfind("HTTP/1.1 ").unwrap_or_else(|| panic!("{shown:?}: {replies}"));
            let reply = Reply::parse(&replies.as_bytes()[last..]);
            let message = (reply.status, reply.header("x-spillgate-status"));
            assert_eq!(message, (403, Some(status)), "{before:?} {shown:?}: {reply:?}");
        }
    }
    let left = check(&server, r#"{"limit":"once","key":"192.0.2.1","cost":0}"#).await;
    assert_eq!(left["remaining"], 2, "nothing was spent");
}

#[tokio::test]
async fn another_method_at_auth_is_a_refusal_too() {
    let server = Server::start().await;
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"] {
        let head = String::from_utf8(described(b"content-length: 0\r\n")).unwrap();
        let head = head.replacen("GET", method, 1);
        let reply = Reply::parse(&raw(&server, head.as_bytes()).await);
        let message = (reply.status, reply.header("x-spillgate-status"), reply.header("allow"));
        assert_eq!(message, (403, Some("405"), Some("get, head")), "{reply:?}");
    }
}

#[tokio::test]
async fn a_request_with_more_and_larger_headers_than_other_routes_take_is_decided_about() {
    let server = Server::start().await;
    for (extra, expected) in
        [(many(95, 1), 200), (many(3, 30_000), 200), (many(2_000, 1), 403), (many(1, 8_000), 403)]
    {
        let reply = Reply::parse(&raw(&server, &described(&extra)).await);
        assert_eq!(reply.status, expected, "{reply:?}");
    }
}

#[tokio::test]
async fn a_connection_is_kept_whatever_is_asked_over_it_and_however_it_arrives() {
    let server = Server::start().await;
    let plain = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                 content-length: 26\r\n\r\n{\"limit\":\"total\",\"cost\":0}";
    let others = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n\
                  GET /auth/x HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let stream = [plain.as_bytes(), &described(b""), others.as_bytes()].concat().repeat(2);
    for size in [1, 7, stream.len()] {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        socket.set_nodelay(true).unwrap();
        for piece in stream.chunks(size) {
            socket.write_all(piece).await.unwrap();
            tokio::task::yield_now().await;
        }
        socket.shutdown().await.unwrap();
        let mut replies = String::new();
        socket.read_to_string(&mut replies).await.unwrap();
        let statuses: Vec<_> = replies
            .match_indices("HTTP/1.1 ")
            .map(|(at, line)| replies[at + line.len()..][..3].to_owned())
            .collect();
        // Two may pass, at all.
        let auth = if size == 1 { "200" } else { "403" };
        assert_eq!(statuses, ["200", auth, "200", "404", "200", auth, "200", "404"], "{replies}");
        assert!(!replies.contains("connection: close"), "{replies}");
    }
    let close = String::from_utf8(described(b"connection: close\r\n")).unwrap();
    for last in [close.clone(), close.replace("HTTP/1.1", "HTTP/1.0").replace("close", "x")] {
        let replies = raw(&server, [last.as_bytes(), others.as_bytes()].concat().as_slice()).await;
        let replies = String::from_utf8(replies).unwrap();
        assert_eq!(replies.matches("HTTP/1.1 ").count(), 1, "{replies}");
        assert!(replies.contains("connection: close\r\n"), "{replies}");
    }
}
