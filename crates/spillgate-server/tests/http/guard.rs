use spillgate_server::{Access, Secret};

use super::client::{Ask, ask};
use super::server::{Server, TOKEN, app, token};

/// A route, and who may ask it: anyone on loopback, anyone elsewhere.
const ROUTES: &[(&str, bool, bool)] = &[
    ("GET /healthz", true, true),
    ("GET /readyz", true, true),
    ("GET /metrics", true, false),
    ("GET /", true, false),
    ("GET /v1/openapi.json", true, false),
    ("POST /v1/check", true, false),
    ("POST /v1/reserve", true, false),
    ("POST /v1/settle", true, false),
    ("GET /v1/limits", false, false),
    ("GET /v1/limits/api/keys/user:1", false, false),
    ("DELETE /v1/limits/api/keys/user:1", false, false),
    ("PUT /v1/limits/api/keys/user:1/override", false, false),
    ("DELETE /v1/limits/api/keys/user:1/override", false, false),
    ("GET /v1/overrides", false, false),
    ("GET /v1/limits/api/overrides", false, false),
    ("GET /v1/policy", false, false),
    ("PUT /v1/policy", false, false),
    ("GET /v1/lists/block", false, false),
    ("GET /v1/lists/block/192.0.2.1", false, false),
    ("PUT /v1/lists/block/192.0.2.1", false, false),
    ("DELETE /v1/lists/block/192.0.2.1", false, false),
    ("POST /v1/explain", false, false),
    ("GET /v1/status", true, false),
    ("GET /v1/status?reveal=true", false, false),
    ("GET /v1/history", true, false),
    ("GET /v1/top", true, false),
    ("GET /v1/top?reveal=true", false, false),
    ("GET /assets/page.html", true, true),
    ("GET /nowhere", true, false),
];

/// Asks with each of these headers, and tells who was let in.
async fn tries(server: &Server, line: &str) -> [bool; 4] {
    let tries: [fn(Ask<'_>) -> Ask<'_>; 4] = [
        |ask| ask,
        |ask| ask.token(),
        |ask| ask.header("authorization", "Bearer open-sesam"),
        |ask| ask.header("authorization", TOKEN),
    ];
    let mut admitted = [false; 4];
    for (admitted, headers) in admitted.iter_mut().zip(tries) {
        let reply = headers(ask(server, line)).send().await;
        let is_challenged = reply.header("www-authenticate") == Some("bearer realm=\"spillgate\"");
        assert_eq!(is_challenged, reply.status == 401, "{line}: {reply:?}");
        *admitted = reply.status != 401;
    }
    admitted
}

#[tokio::test]
async fn a_token_is_asked_for_where_the_table_says() {
    let loopback = Server::start().await;
    let network = Server::with(app().with_access(Access::network(token().unwrap()))).await;
    let without = Server::with(app().with_access(Access::loopback(None))).await;
    for (line, on_loopback, elsewhere) in ROUTES.iter().copied() {
        let open = |is_open| [is_open, true, is_open, is_open];
        assert_eq!(tries(&loopback, line).await, open(on_loopback), "{line} on loopback");
        assert_eq!(tries(&network, line).await, open(elsewhere), "{line} elsewhere");
        assert_eq!(tries(&without, line).await, [on_loopback; 4], "{line} without a token");
    }
}

#[tokio::test]
async fn metrics_can_be_open_and_a_token_can_change() {
    let access = || Access::network(token().unwrap());
    let server = Server::with(app().with_access(access().open_metrics(true))).await;
    assert_eq!(tries(&server, "GET /metrics").await, [true; 4]);
    assert_eq!(tries(&server, "GET /v1/limits").await, [false, true, false, false]);
    server.app.set_access(Access::network(Secret::new("another").unwrap()));
    assert_eq!(tries(&server, "GET /v1/limits").await, [false; 4]);
    assert_eq!(tries(&server, "GET /metrics").await, [false; 4]);
    // Two tokens are none, whichever is right.
    server.app.set_access(access());
    let twice = ask(&server, "GET /v1/limits").token().header("authorization", "Bearer x");
    assert_eq!(twice.send().await.status, 400);
}

#[tokio::test]
async fn only_its_own_hosts_lead_to_a_server() {
    let loopback = Server::start().await;
    let network =
        app().with_access(Access::network(token().unwrap()).hosts(["spillgate.internal"]));
    let network = Server::with(network).await;
    for (host, on_loopback, elsewhere) in [
        ("localhost", 200, 200),
        ("LocalHost:80", 200, 200),
        ("127.0.0.1:8390", 200, 200),
        ("127.8.7.6", 200, 200),
        ("[::1]:8390", 200, 200),
        ("[::ffff:127.0.0.1]", 200, 200),
        ("192.0.2.7", 421, 200),
        ("[2001:db8::7]:80", 421, 200),
        ("spillgate.internal", 421, 200),
        ("Spillgate.Internal:8390", 421, 200),
        ("evil.example", 421, 421),
        ("localhost.evil.example", 421, 421),
        ("127.0.0.1.evil.example", 421, 421),
        ("evil.example:127", 421, 421),
        ("localhost:x", 421, 421),
        ("", 400, 400),
    ] {
        for (server, expected) in [(&loopback, on_loopback), (&network, elsewhere)] {
            let reply = ask(server, "GET /metrics").token().header("host", host).send().await;
            assert_eq!(reply.status, expected, "{host:?}: {reply:?}");
        }
    }
}

#[tokio::test]
async fn web_pages_of_other_origins_are_refused() {
    let server = Server::start().await;
    let own = format!("http://{}", server.address);
    for (origin, expected) in [
        (own.as_str(), 200),
        ("http://localhost", 403),
        ("http://evil.example", 403),
        ("https://127.0.0.1", 403),
        ("null", 403),
        ("file://", 403),
    ] {
        let asks = ask(&server, "POST /v1/check").json(r#"{"limit":"total","cost":0}"#);
        let reply = asks.header("origin", origin).send().await;
        assert_eq!(reply.status, expected, "{origin:?}");
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
    let preflight = ask(&server, "OPTIONS /v1/check").header("origin", "http://evil.example");
    assert_eq!(preflight.send().await.status, 403);
}

#[tokio::test]
async fn a_body_must_say_that_it_is_json() {
    let server = Server::start().await;
    for (content_type, expected) in [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/jsonx", 415),
        ("", 415),
    ] {
        let asks = ask(&server, "POST /v1/check");
        let reply = asks.body(content_type, r#"{"limit":"total","cost":0}"#).send().await;
        assert_eq!(reply.status, expected, "{content_type:?}: {reply:?}");
    }
    let policy = ask(&server, "PUT /v1/policy").token().body("application/json", "x = 1");
    assert_eq!(policy.send().await.status, 415);
}

#[tokio::test]
async fn a_method_that_is_not_for_a_path_is_told_which_are() {
    let server = Server::start().await;
    for (line, allow) in [
        ("PATCH /v1/check", "post"),
        ("GET /v1/check", "post"),
        ("POST /v1/limits/api/keys/x", "get, head, delete"),
        ("OPTIONS /v1/policy", "get, head, put"),
        ("HEAD /v1/check", "post"),
    ] {
        let reply = ask(&server, line).send().await;
        assert_eq!((reply.status, reply.header("allow")), (405, Some(allow)), "{line}");
    }
    for path in ["/v1", "/v1/check/", "//v1/check", "/v1/limits/api/keys/", "/v1/lists//x"] {
        assert_eq!(ask(&server, &format!("POST {path}")).send().await.status, 404, "{path}");
    }
    let head = ask(&server, "HEAD /healthz").send().await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}
