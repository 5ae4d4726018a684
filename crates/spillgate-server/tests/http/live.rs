//! What people see: `/`, `/v1/status`, `/v1/history` and `/v1/top`.

use std::time::Duration;

use serde_json::{Value, json};
use spillgate_server::Access;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::client::{ask, check, post};
use super::server::{Server, app, token};

const POLICY: &str = "
    [identity]
    api-key = { header = 'x-api-key', accept = 'any' }
    [[limit]]
    name = 'api'
    quota = '2/h'
    [[limit]]
    name = 'login'
    quota = '1/h'
    per = 'user'
    by-name = true
    [[limit]]
    name = 'trial'
    quota = '1/h'
    per = 'ip'
    mode = 'shadow'
";

/// Requests with an API key, and checks by name: some of each are denied.
async fn traffic(server: &Server) {
    let request =
        r#"{"request":{"path":"/","ip":"192.0.2.1","headers":{"x-api-key":"hush-hush"}}}"#;
    for _ in 0..5 {
        check(server, request).await;
    }
    for _ in 0..3 {
        check(server, r#"{"limit":"login","key":"alice"}"#).await;
    }
}

async fn get(server: &Server, path: &str) -> Value {
    let reply = ask(server, &format!("GET {path}")).token().send().await;
    assert_eq!(reply.status, 200, "{path}: {reply:?}");
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    reply.json()
}

fn limit<'v>(report: &'v Value, name: &str) -> &'v Value {
    let limits = report["limits"].as_array().unwrap();
    let is_wanted = |limit: &&Value| limit["limit"] == name || limit["name"] == name;
    limits.iter().find(is_wanted).unwrap_or_else(|| panic!("no {name} in {report}"))
}

#[tokio::test]
async fn whoever_is_denied_is_listed_and_masked() {
    let server = Server::with_policy(POLICY).await;
    assert_eq!(get(&server, "/v1/top").await["limits"], json!([]));
    traffic(&server).await;
    let top = get(&server, "/v1/top").await;
    let api = limit(&top, "api");
    assert_eq!((&api["denied"]["total"], &api["denied"]["error"]), (&json!(3), &json!(0)));
    assert_eq!(api["denied"]["callers"][0]["count"], 3);
    assert_eq!(api["allowed"]["total"], 2);
    assert_eq!(limit(&top, "login")["denied"]["total"], 2);
    assert_eq!(limit(&top, "trial")["shadow_denied"]["callers"][0]["caller"], "ip=192.0.2.1");
    let text = top.to_string();
    assert!(!text.contains("hush") && !text.contains("alice"), "{text}");
    let one = get(&server, "/v1/top?limit=login&count=1").await;
    assert_eq!(one["limits"].as_array().unwrap().len(), 1);
    for (query, status) in
        [("limit=nope", 404), ("count=0", 400), ("count=x", 400), ("reveal=yes", 400)]
    {
        let reply = ask(&server, &format!("GET /v1/top?{query}")).token().send().await;
        assert_eq!(reply.status, status, "{query}: {reply:?}");
    }
}

#[tokio::test]
async fn an_operator_sees_callers_in_clear_and_can_act_on_them() {
    let server = Server::with_policy(POLICY).await;
    traffic(&server).await;
    for path in ["/v1/top?reveal=true", "/v1/status?reveal=true"] {
        let reply = ask(&server, &format!("GET {path}")).send().await;
        assert_eq!(reply.status, 401, "{reply:?}");
    }
    let top = get(&server, "/v1/top?reveal=true").await;
    let caller = &limit(&top, "api")["denied"]["callers"][0];
    assert_eq!(caller["caller"], "caller=api-key:hush-hush");
    assert_eq!(caller["values"], json!(["api-key:hush-hush"]));
    assert_eq!(caller["ban"], "key:hush-hush");
    let reset = ask(&server, "DELETE /v1/limits/api/keys/api-key:hush-hush").token().send().await;
    assert_eq!(reset.status, 204, "{reset:?}");
    let request =
        r#"{"request":{"path":"/","ip":"192.0.2.1","headers":{"x-api-key":"hush-hush"}}}"#;
    assert_eq!(check(&server, request).await["allowed"], true);
    let ban =
        ask(&server, "PUT /v1/bans/key:hush-hush").token().json(r#"{"ttl":"1h"}"#).send().await;
    assert_eq!(ban.status, 200, "{ban:?}");
    assert_eq!(check(&server, request).await["allowed"], false);
    let user = &limit(&top, "login")["denied"]["callers"][0];
    assert_eq!((&user["values"], &user["ban"]), (&json!(["alice"]), &json!("user:alice")));
}

#[tokio::test]
async fn the_status_agrees_with_the_metrics() {
    let server = Server::with_policy(POLICY).await;
    traffic(&server).await;
    post(&server, "/v1/check", r#"{"request":{"path":"/","ip":"192.0.2.9"}}"#).await;
    let status = get(&server, "/v1/status").await;
    let metrics = ask(&server, "GET /metrics").send().await.body;
    for name in ["api", "login", "trial"] {
        for (field, outcome) in
            [("allowed", "allowed"), ("denied", "denied"), ("shadow_denied", "shadow-denied")]
        {
            let count = &limit(&status, name)[field];
            let line = format!(
                "spillgate_requests_total{{limit=\"{name}\",outcome=\"{outcome}\"}} {count}\n"
            );
            assert!(metrics.contains(&line), "{line}{metrics}");
        }
    }
    assert_eq!(status["phase"], "ready");
    assert_eq!(status["top"]["callers"][0]["denied"], 3);
    assert!(status["top"]["callers"][0]["allowed"].as_u64() >= Some(2), "estimated: {status}");
    assert_eq!(limit(&status, "api")["used"][10], 3, "denied calls");
    assert_eq!((&status["store"], &status["upstreams"]), (&json!(null), &json!([])));
    assert!(!status.to_string().contains("hush"), "{status}");
}

/// Opens a stream of events.
async fn watch(server: &Server) -> (String, BufReader<TcpStream>) {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "GET /v1/status HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\n\r\n",
        server.address
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut reader = BufReader::new(socket);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).await.unwrap(), 0, "{head}");
    }
    (head, reader)
}

/// The next event; `None` at the end of the stream.
async fn next(reader: &mut BufReader<TcpStream>) -> Option<Value> {
    let mut line = String::new();
    loop {
        line.clear();
        let read = timeout(Duration::from_secs(30), reader.read_line(&mut line)).await;
        if read.unwrap().unwrap() == 0 || line == "0\r\n" {
            return None;
        }
        if let Some(data) = line.strip_prefix("data: ") {
            return Some(serde_json::from_str(data).unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_come_once_per_second_and_end_with_the_server() {
    let server = Server::with_policy(POLICY).await;
    let (head, mut events) = watch(&server).await;
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    assert_eq!(limit(&next(&mut events).await.unwrap(), "api")["denied"], 0);
    traffic(&server).await;
    let event = next(&mut events).await.unwrap();
    assert_eq!(limit(&event, "api")["denied"], 3);
    assert_eq!(event["top"]["callers"][0]["denied"], 3, "a denied caller is there at once");
    server.app.readiness().drain();
    while next(&mut events).await.is_some() {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_many_may_watch_and_whoever_leaves_makes_room() {
    let server = Server::with_policy(POLICY).await;
    let mut watching = Vec::new();
    for _ in 0..64 {
        let (head, events) = watch(&server).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        watching.push(events);
    }
    let (head, mut rest) = watch(&server).await;
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    let mut body = [0; 200];
    let _ = rest.read(&mut body).await;
    watching.truncate(32);
    // A client that has gone is noticed when the next event cannot be sent.
    let comes_back = async {
        while !watch(&server).await.0.starts_with("HTTP/1.1 200") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(30), comes_back).await.unwrap();
}

#[tokio::test]
async fn a_browser_gets_the_page_also_where_a_token_is_required() {
    let network = Server::with(app().with_access(Access::network(token().unwrap()))).await;
    for server in [&Server::start().await, &network] {
        let accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        let page = ask(server, "GET /").header("accept", accept).send().await;
        assert_eq!((page.status, page.header("vary")), (200, Some("accept")));
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert!(page.body.starts_with("<!doctype html>"), "{}", page.body);
        // Everything that it loads is there.
        let names = page.body.split(['"', '\'']).filter(|text| text.starts_with("/assets/"));
        for name in names {
            let file = ask(server, &format!("GET {name}")).send().await;
            assert_eq!(
                (file.status, file.header("x-content-type-options")),
                (200, Some("nosniff"))
            );
        }
        assert_eq!(ask(server, "GET /assets/..%2Fpage.rs").send().await.status, 404);
    }
    assert_eq!(ask(&network, "GET /").send().await.status, 401);
}

#[tokio::test]
async fn history_is_bounded_by_an_hour() {
    let server = Server::start().await;
    for (minutes, step, points) in [("?minutes=5", 1, 300), ("", 3, 300), ("?minutes=60", 10, 360)]
    {
        let history = get(&server, &format!("/v1/history{minutes}")).await;
        assert_eq!((&history["step"], &history["points"]), (&json!(step), &json!(points)));
        assert_eq!(history["total"]["unlimited"].as_array().unwrap().len(), points);
    }
    for minutes in ["0", "61", "x", "-1"] {
        let reply = ask(&server, &format!("GET /v1/history?minutes={minutes}")).send().await;
        assert_eq!(reply.status, 400, "{minutes}: {reply:?}");
    }
}
