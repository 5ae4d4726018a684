//! `/v1/permits`: acquire, renew and release.

use serde_json::{Value, json};

use super::client::{Reply, ask, post};
use super::server::Server;

const POLICY: &str = r#"
[[limit]]
name = "jobs"
by-name = true
per = "user"
concurrent = 2

[[limit]]
name = "api"
quota = "1/h burst 5"
"#;

async fn acquire(server: &Server, body: &Value) -> Value {
    let reply = post(server, "/v1/permits", &body.to_string()).await;
    assert_eq!(reply.status, 200, "{body}: {reply:?}");
    reply.json()
}

async fn release(server: &Server, permit: &str) -> u16 {
    ask(server, &format!("DELETE /v1/permits/{permit}")).send().await.status
}

async fn renew(server: &Server, permit: &str, body: &str) -> Reply {
    post(server, &format!("/v1/permits/{permit}/renew"), body).await
}

#[tokio::test]
async fn permits_are_held_until_they_are_released() {
    let server = Server::with_policy(POLICY).await;
    let jobs = json!({ "limit": "jobs", "key": "42" });
    let first = acquire(&server, &jobs).await;
    assert_eq!(first["allowed"], true);
    assert_eq!((&first["max"], &first["remaining"]), (&json!(2), &json!(1)));
    assert_eq!(first["expires_in"], 30);
    let first = first["permit"].as_str().unwrap().to_owned();
    let with_ttl = json!({ "limit": "jobs", "key": "42", "count": 1, "ttl": "5m" });
    assert_eq!(acquire(&server, &with_ttl).await["expires_in"], 300);

    let third = acquire(&server, &jobs).await;
    assert_eq!((&third["allowed"], &third["permit"]), (&json!(false), &json!(null)));
    assert_eq!((&third["remaining"], &third["retry_after"]), (&json!(0), &json!(1)));
    assert_eq!(third["expires_in"], json!(null));

    let renewed = renew(&server, &first, r#"{"ttl":"1m"}"#).await;
    assert_eq!((renewed.status, renewed.json()), (200, json!({ "expires_in": 60 })));
    assert_eq!(release(&server, &first).await, 204);
    assert_eq!(release(&server, &first).await, 404, "it was released");
    assert_eq!(renew(&server, &first, r#"{"ttl":60}"#).await.status, 404);
    assert_eq!(acquire(&server, &jobs).await["allowed"], true);
    let metrics = ask(&server, "GET /metrics").send().await.body;
    assert!(metrics.contains("spillgate_permits_held{limit=\"jobs\"} 2"), "{metrics}");
}

#[tokio::test]
async fn what_cannot_be_acquired_is_refused_with_the_remedy() {
    let server = Server::with_policy(POLICY).await;
    for (body, status, says) in [
        (json!({ "limit": "jobs", "key": "1", "ttl": "0s" }), 422, "30s"),
        (json!({ "limit": "jobs", "key": "1", "ttl": "2d" }), 400, "1d"),
        (json!({ "limit": "jobs", "key": "1", "count": 0 }), 400, "1"),
        (json!({ "limit": "jobs", "key": "1", "lease": 5 }), 400, "lease"),
        (json!({ "limit": "jobs" }), 400, "user"),
        (json!({ "limit": "api", "key": "192.0.2.1" }), 400, "concurrency"),
        (json!({ "limit": "job", "key": "1" }), 404, "jobs"),
    ] {
        let reply = post(&server, "/v1/permits", &body.to_string()).await;
        assert_eq!(reply.status, status, "{body}: {reply:?}");
        assert!(reply.detail().contains(says), "{body}: {reply:?}");
    }
    for permit in ["x", &"0".repeat(64), "%ff"] {
        let status = release(&server, permit).await;
        assert!(status == 404 || (permit == "%ff" && status == 400), "{permit}: {status}");
    }
    assert_eq!(renew(&server, &"0".repeat(64), "{}").await.status, 400);
    let reply = ask(&server, "DELETE /v1/permits/x?count=1").send().await;
    assert_eq!(reply.status, 400, "unknown parameters are refused");
}
