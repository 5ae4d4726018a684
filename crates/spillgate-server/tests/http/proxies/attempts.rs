//! What clients of a proxy try in order to pass without being counted.

use super::Proxy;

/// What stands before a header that comes last, and after it.
fn with(headers: &str) -> Vec<u8> {
    format!("GET /api/users HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{headers}\r\n").into_bytes()
}

fn many(count: usize, length: usize) -> String {
    let value = "v".repeat(length);
    (0..count).map(|number| format!("x-{number}: {value}\r\n")).collect()
}

/// Requests for a path that is limited, each of which makes the proxy describe it to Spillgate in
/// some way that is not usual, or refuse it itself.
pub(super) fn attempts() -> Vec<Vec<u8>> {
    let long = |length: usize| "v".repeat(length);
    let lines = [
        "GET /api/users HTTP/1.0\r\n\r\n".to_owned(),
        "GET /api/users\r\n\r\n".to_owned(),
        "get /api/users HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n".to_owned(),
        "G<T /api/users HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n".to_owned(),
        "PROPFIND /api/users HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n".to_owned(),
        "GET http://h/api/users HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n".to_owned(),
        "GET http://h:99999/api/users HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n".to_owned(),
        "GET http://a@b/api/users HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n".to_owned(),
        "GET /api/users HTTP/1.1\r\nhost: h\r\nhost: i\r\nconnection: close\r\n\r\n".to_owned(),
        "GET /api/users HTTP/1.1\r\nhost:\r\nconnection: close\r\n\r\n".to_owned(),
        "GET /api/users HTTP/1.1\r\nhost: a b\r\nconnection: close\r\n\r\n".to_owned(),
        "GET /api/users HTTP/1.1\r\nhost: [::1\r\nconnection: close\r\n\r\n".to_owned(),
        "GET /api/users HTTP/1.1\r\nhost: x_y!$&'()*+,;=\r\nconnection: close\r\n\r\n".to_owned(),
        "GET /api/users HTTP/1.1\nhost: h\nconnection: close\n\n".to_owned(),
        "GET /api/users HTTP/1.1\r\nhost: h\r\nconnection: close\r\nx-a: b\r\n folded\r\n\r\n".to_owned(),
        format!("GET /api/{} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n", long(7_900)),
        format!("GET /api/{} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n", long(200_000)),
        format!("GET /api/users?{} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n", long(7_900)),
        format!("{} /api/users HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n", "X".repeat(2_000)),
        "GET /api/users#fragment HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n".to_owned(),
        "GET /api/%zz HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n".to_owned(),
        "GET /api/users%00 HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n".to_owned(),
        "GET /api/{}|\\^`\" HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n".to_owned(),
        "POST /api/users HTTP/1.1\r\nhost: h\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n\
         5\r\nhello\r\n0\r\n\r\n"
            .to_owned(),
        "POST /api/users HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello".to_owned(),
        "GET /api/users HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 5\r\n\
         transfer-encoding: chunked\r\n\r\n0\r\n\r\n"
            .to_owned(),
    ];
    let headers = [
        many(95, 1),
        many(300, 1),
        many(1_000, 1),
        many(3, 6_000),
        many(1, 7_900),
        many(1, 100_000),
        many(8, 120_000),
        many(1, 2_000_000),
        "x-original-uri: /free\r\nx-original-uri: /free\r\n".to_owned(),
        "X-Original-URI: /free\r\nX_Original_URI: /free\r\nx_real_ip: 8.8.8.8\r\n".to_owned(),
        "x-forwarded-uri: /free\r\nx-forwarded-uri: /free\r\n".to_owned(),
        "x-forwarded-uri:\r\nx-original-uri:\r\nx-real-ip:\r\nx-forwarded-for:\r\n".to_owned(),
        "x-forwarded-for: , ,\r\nx-forwarded-for: 8.8.8.8\r\n".to_owned(),
        "connection: x-original-uri, x-original-method, x-real-ip\r\n".to_owned(),
        "connection: x-forwarded-uri, x-forwarded-for, x-forwarded-method, host\r\n".to_owned(),
        "connection: keep-alive, close, upgrade\r\nupgrade: websocket\r\n".to_owned(),
        "upgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n".to_owned(),
        "expect: 100-continue\r\n".to_owned(),
        "expect: something-else\r\n".to_owned(),
        "te: trailers, deflate\r\ntrailer: x-original-uri\r\n".to_owned(),
        "range: bytes=0-0\r\nif-none-match: *\r\nif-match: x\r\n".to_owned(),
        "origin: null\r\nauthorization: Bearer x\r\nauthorization: Bearer y\r\n".to_owned(),
        "content-length: x\r\n".to_owned(),
        "content-length: 0\r\ncontent-length: 0\r\n".to_owned(),
        "transfer-encoding: gzip\r\n".to_owned(),
        "content-type: application/grpc\r\nte: trailers\r\n".to_owned(),
        "accept-encoding: gzip\r\naccept: text/event-stream\r\n".to_owned(),
        "x-a:\u{1}\r\n".to_owned(),
        "x-a: \u{0}\r\n".to_owned(),
        "x-a: \u{7f}\r\n".to_owned(),
        "x-\u{e9}: a\r\n".to_owned(),
        "x a: b\r\n".to_owned(),
        "x-a : b\r\n".to_owned(),
        ": b\r\n".to_owned(),
        "no colon\r\n".to_owned(),
        "x-a: b\rx-original-uri: /free\r\n".to_owned(),
        "x-a: b\nx-original-uri: /free\n".to_owned(),
        "x@(),/: b\r\n".to_owned(),
    ];
    let mut all: Vec<_> = lines.into_iter().map(String::into_bytes).collect();
    all.extend(headers.iter().map(|headers| with(headers)));
    for (before, byte, after) in [
        ("GET /api/", b'\xe9', " HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"),
        ("GET /api/", b'\x01', " HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"),
        ("GET /api/?", b'\xff', " HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"),
        ("GET /api/users HTTP/1.1\r\nconnection: close\r\nhost: ", b'\xe9', "\r\n\r\n"),
        (
            "GET /api/users HTTP/1.1\r\nconnection: close\r\nhost: h\r\ncookie: ",
            b'\xe9',
            "\r\n\r\n",
        ),
        ("GET /api/users HTTP/1.1\r\nconnection: close\r\nhost: h\r\nx-a: ", b'\x1b', "\r\n\r\n"),
        ("G", b'\xe9', "T /api/users HTTP/1.1\r\nconnection: close\r\nhost: h\r\n\r\n"),
    ] {
        all.push([before.as_bytes(), &[byte], after.as_bytes()].concat());
    }
    all
}

/// A client that has spent everything tries it all, one after the other and once more after
/// something usual.
pub(super) async fn try_all(proxy: &Proxy, burst: usize) {
    for _ in 0..burst {
        assert_eq!(proxy.ask("GET /api/users", &many(95, 1)).await.status, 200, "{}", proxy.log());
    }
    assert_eq!(proxy.served(), burst);
    for attempt in attempts() {
        let reply = proxy.send(&attempt).await;
        let shown =
            |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
        assert_eq!(proxy.served(), burst, "{:?}: {:?}", shown(&attempt), shown(&reply));
        let is_refused = !reply.starts_with(b"HTTP/1.1 2") && !reply.starts_with(b"HTTP/1.1 1");
        assert!(is_refused, "{:?}: {:?}", shown(&attempt), shown(&reply));
    }
    assert_eq!(proxy.ask("GET /api/users", "").await.status, 429);
}
