//! Adaptive limits: `/v1/reports`, permits with an ending, and what is answered when the service is at its limit.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Reply, ask, check, post};
use super::server::Server;

const POLICY: &str = r#"
[[limit]]
name = "jobs"
adaptive = { controller = "aimd", min = 1, max = 1 }

[[limit]]
name = "upstream"
by-name = true
adaptive = { controller = "errors" }

[[limit]]
name = "plain"
by-name = true
quota = "1/h"
"#;

async fn acquire(server: &Server) -> Value {
    let reply = post(server, "/v1/permits", r#"{"limit":"jobs"}"#).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

async fn release(server: &Server, permit: &Value, query: &str) -> Reply {
    let permit = permit["permit"].as_str().unwrap();
    ask(server, &format!("DELETE /v1/permits/{permit}{query}")).send().await
}

async fn report(server: &Server, body: &Value) -> Reply {
    post(server, "/v1/reports", &body.to_string()).await
}

/// What `/v1/limits` says of a limit.
async fn limit(server: &Server, name: &str) -> Value {
    let limits = ask(server, "GET /v1/limits").token().send().await.json();
    let mut limits = limits["limits"].as_array().unwrap().iter();
    limits.find(|limit| limit["name"] == name).unwrap().clone()
}

async fn auth(server: &Server, query: &str) -> Reply {
    let mut auth = ask(server, &format!("GET /auth{query}"));
    for (name, value) in [
        ("x-original-uri", "/"),
        ("x-original-method", "GET"),
        ("x-original-host", "example.com"),
        ("x-real-ip", "192.0.2.1"),
    ] {
        auth = auth.header(name, value);
    }
    auth.send().await
}

const REQUEST: &str = r#"{"request":{"path":"/","ip":"192.0.2.1"}}"#;

#[tokio::test]
async fn while_the_service_is_at_its_limit_checks_are_shed() {
    let server = Server::with_policy(POLICY).await;
    assert_eq!(check(&server, REQUEST).await["allowed"], true);
    let first = acquire(&server).await;
    assert_eq!((&first["allowed"], &first["max"]), (&json!(true), &json!(1)), "{first}");
    for shed in [
        acquire(&server).await,
        check(&server, REQUEST).await,
        check(&server, r#"{"limit":"jobs"}"#).await,
    ] {
        assert_eq!((&shed["allowed"], &shed["shed"]), (&json!(false), &json!(true)), "{shed}");
        assert_eq!((&shed["limit"], &shed["retry_after"]), (&json!("jobs"), &json!(1)), "{shed}");
    }
    assert_eq!(release(&server, &first, "").await.status, 204);
    let allowed = check(&server, REQUEST).await;
    assert_eq!((&allowed["allowed"], &allowed["shed"]), (&json!(true), &json!(null)));
}

#[tokio::test]
async fn a_proxy_is_told_503_or_the_status_that_it_wants() {
    let server = Server::with_policy(POLICY).await;
    assert_eq!(auth(&server, "").await.status, 200);
    let held = acquire(&server).await;
    for (query, status) in [("", 503), ("?deny=403", 403)] {
        let reply = auth(&server, query).await;
        assert_eq!(reply.status, status, "{reply:?}");
        assert_eq!(reply.header("retry-after"), Some("1"), "{reply:?}");
        assert_eq!(reply.header("x-spillgate-status"), Some("503"), "{reply:?}");
        assert!(reply.body.contains("#temporary-reduced-capacity"), "{reply:?}");
    }
    release(&server, &held, "").await;
    assert_eq!(auth(&server, "").await.status, 200);
}

#[tokio::test]
async fn a_permit_is_released_with_an_ending_or_without() {
    let server = Server::with_policy(POLICY).await;
    for query in ["", "?ending=ok", "?ending=failed"] {
        let held = acquire(&server).await;
        assert_eq!(release(&server, &held, query).await.status, 204, "{query}");
        assert_eq!(release(&server, &held, query).await.status, 404, "{query}");
    }
    let held = acquire(&server).await;
    let wrong = release(&server, &held, "?ending=fine").await;
    assert_eq!((wrong.status, wrong.detail().contains("use ok or failed")), (400, true));
    assert_eq!(acquire(&server).await["allowed"], false, "it is still held");
    assert_eq!(limit(&server, "jobs").await["held"], 1);
}

#[tokio::test]
async fn reported_failures_move_a_limit_which_is_shown_with_the_reason() {
    let server = Server::with_policy(POLICY).await;
    let failed = json!({ "limit": "upstream", "ending": "failed", "count": 20 });
    let moved = async {
        loop {
            assert_eq!(report(&server, &failed).await.status, 204);
            let shown = limit(&server, "upstream").await;
            if shown["adaptive"]["limit"].as_f64().unwrap() < 0.9 {
                return shown;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let shown = tokio::time::timeout(Duration::from_secs(60), moved).await.unwrap();
    assert_eq!(shown["adaptive"]["reason"], "failures", "{shown}");
    assert_eq!(shown["adaptive"]["controller"], "errors", "{shown}");
    let metrics = ask(&server, "GET /metrics").send().await.body;
    let line = r#"spillgate_adaptive_limit{limit="upstream"} 0."#;
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test]
async fn reports_that_are_wrong_are_refused_with_the_remedy_and_none_is_noted() {
    let server = Server::with_policy(POLICY).await;
    let ok = json!({ "limit": "upstream", "latency": 0.012 });
    let many: Vec<_> = (0..1001).map(|_| ok.clone()).collect();
    for (body, status, says) in [
        (json!({ "latency": 1 }), 400, "\"limit\""),
        (json!({ "limit": "upstream" }), 400, "latency is missing"),
        (json!({ "limit": "upstream", "latency": -1 }), 400, "from 0 to 3600"),
        (json!({ "limit": "upstream", "latency": 3_601 }), 400, "from 0 to 3600"),
        (json!({ "limit": "upstream", "latency": "12ms" }), 400, "latency"),
        (json!({ "limit": "upstream", "latency": 1, "ending": "fine" }), 400, "fine"),
        (json!({ "limit": "upstream", "latency": 1, "count": 0 }), 400, "from 1 to 10000"),
        (json!({ "limit": "upstream", "latency": 1, "count": 10_001 }), 400, "from 1 to 10000"),
        (json!({ "limit": "upstream", "latency": 1, "cost": 1 }), 400, "cost"),
        (json!({ "limit": "plain", "latency": 1 }), 400, "plain"),
        (json!({ "limit": "upstraem", "latency": 1 }), 404, "upstream"),
        (json!({ "limit": "upstream", "latency": 1, "reports": [] }), 400, "reports"),
        (json!({ "reports": many }), 400, "at most 1000"),
        (json!({ "reports": [ok, { "limit": "plain", "ending": "failed" }] }), 400, "plain"),
        (json!({ "reports": [ok, { "limit": "none", "ending": "failed" }] }), 404, "none"),
    ] {
        let reply = report(&server, &body).await;
        assert_eq!(reply.status, status, "{body}: {reply:?}");
        assert!(reply.detail().contains(says), "{body}: {reply:?}");
    }
    for body in [
        json!({ "limit": "upstream", "latency": 0 }),
        json!({ "limit": "upstream", "latency": 0.5, "ending": "ok", "count": 10_000 }),
        json!({ "reports": [ok, ok, { "limit": "jobs", "latency": 1.0, "count": 3.0 }] }),
        json!({ "reports": [] }),
    ] {
        let reply = report(&server, &body).await;
        assert_eq!((reply.status, reply.body.as_str()), (204, ""), "{body}: {reply:?}");
    }
}

#[tokio::test]
async fn explain_says_where_the_limit_is_and_why() {
    let server = Server::with_policy(POLICY).await;
    let body = REQUEST;
    let explain = async |accept: &str| {
        let asked = ask(&server, "POST /v1/explain").token().header("accept", accept);
        asked.json(body).send().await
    };
    let _held = acquire(&server).await;
    let text = explain("text/plain").await.body;
    assert!(text.starts_with("answer   shed"), "{text}");
    assert!(text.contains("1 of 1 in flight"), "{text}");
    assert!(text.contains("aimd"), "{text}");
    assert_eq!(explain("application/json").await.json()["answer"], "shed");
}
