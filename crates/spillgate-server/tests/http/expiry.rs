//! Expiry and comment of list entries and overrides.

use serde_json::{Value, json};
use spillgate_policy::rfc3339;
use spillgate_policy::store::Store;

use super::client::{Reply, ask, check};
use super::server::Server;

const ENTRY: &str = "/v1/lists/block/203.0.113.50";
const OVERRIDE: &str = "/v1/limits/api/keys/user:1/override";

async fn send(server: &Server, line: &str, body: &str) -> Reply {
    let ask = ask(server, line).token();
    if body.is_empty() { ask.send().await } else { ask.json(body).send().await }
}

async fn get(server: &Server, path: &str) -> Value {
    let reply = send(server, &format!("GET {path}"), "").await;
    assert_eq!(reply.status, 200, "{path}: {reply:?}");
    reply.json()
}

/// A moment in a year.
fn later(server: &Server) -> String {
    let year = std::time::Duration::from_secs(365 * 86_400);
    rfc3339::format(server.app.gate().store().now() + year)
}

/// Expects an end in so many seconds, or a few less.
fn assert_ends_in(shown: &Value, seconds: f64) {
    let left = shown["expires_in"].as_f64().unwrap();
    assert!(left <= seconds && left > seconds - 30.0, "{shown}");
    let time = shown["expires"].as_str().unwrap();
    assert!(time.len() == "2027-01-01T00:00:00Z".len() && time.ends_with('Z'), "{shown}");
}

#[tokio::test]
async fn an_entry_has_an_expiry_and_a_comment_by_body_or_query() {
    let server = Server::start().await;
    let put = |query: &'static str, body: &'static str| {
        let server = &server;
        async move {
            let reply = send(server, &format!("PUT {ENTRY}{query}"), body).await;
            assert_eq!(reply.status, 200, "{query} {body}: {reply:?}");
            reply.json()["changed"] == true
        }
    };
    for (query, body, seconds, comment) in [
        ("", r#"{"ttl":"1h","comment":"scan"}"#, Some(3600.0), json!("scan")),
        ("", r#"{"ttl":90}"#, Some(90.0), json!(null)),
        ("", r#"{"ttl":1e3}"#, Some(1000.0), json!(null)),
        ("?ttl=10m&comment=a+b%20c", "", Some(600.0), json!("a b c")),
        ("?ttl=7200", r#"{"comment":"both"}"#, Some(7200.0), json!("both")),
        ("?ttl=3650d", "", Some(315_360_000.0), json!(null)),
        ("", "{}", None, json!(null)),
        ("", r#"{"ttl":"1d","comment":null}"#, Some(86_400.0), json!(null)),
        ("", "", None, json!(null)),
    ] {
        assert!(put(query, body).await, "{query} {body}");
        let shown = get(&server, ENTRY).await;
        assert_eq!(shown["comment"], comment, "{query} {body}");
        assert_eq!(
            (&shown["entry"], &shown["source"]),
            (&json!("203.0.113.50/32"), &json!("run-time"))
        );
        match seconds {
            Some(seconds) => assert_ends_in(&shown, seconds),
            None => {
                assert_eq!((&shown["expires"], &shown["expires_in"]), (&json!(null), &json!(null)));
            }
        }
        assert_eq!(get(&server, "/v1/lists/block").await["entries"].as_array().unwrap().len(), 1);
    }
    assert!(!put("", "").await, "it is so already");
    let later = later(&server);
    let line = format!("PUT {ENTRY}?expires={}", later.replace('Z', "%2B00:00"));
    assert_eq!(send(&server, &line, "").await.status, 200);
    assert_eq!(get(&server, ENTRY).await["expires"], later);
    let request = r#"{"request":{"path":"/","ip":"203.0.113.50"}}"#;
    assert_eq!(check(&server, request).await["blocked"], true);
    assert_eq!(send(&server, &format!("DELETE {ENTRY}"), "").await.status, 200);
    assert_eq!(send(&server, &format!("GET {ENTRY}"), "").await.status, 404);
    assert_eq!(check(&server, request).await["allowed"], true);
}

#[tokio::test]
async fn an_override_has_an_expiry_and_a_comment_and_is_listed() {
    let server = Server::start().await;
    let body = r#"{"quota":"1/h burst 50","ttl":"1h","comment":"trial"}"#;
    assert_eq!(send(&server, &format!("PUT {OVERRIDE}"), body).await.status, 204);
    let photos = "/v1/limits/photos/keys/192.0.2.1/override?part=7";
    let later = later(&server);
    let body = format!(r#"{{"quota":"1/h burst 60","expires":"{later}"}}"#);
    assert_eq!(send(&server, &format!("PUT {photos}"), &body).await.status, 204);
    let all = get(&server, "/v1/overrides").await["overrides"].clone();
    let [api, photos] = all.as_array().unwrap().as_slice() else { panic!("{all}") };
    assert_ends_in(api, 3600.0);
    let shown =
        |own: &Value| ["limit", "key", "quota", "comment", "source"].map(|name| own[name].clone());
    let expected = [json!("api"), json!(["user:1"]), json!("1/h burst 50"), json!("trial")];
    assert_eq!(shown(api)[..4], expected);
    assert_eq!(shown(photos)[1], json!(["192.0.2.1", "7"]));
    assert_eq!((&photos["expires"], &photos["source"]), (&json!(later), &json!("run-time")));
    let of_api = get(&server, "/v1/limits/api/overrides").await["overrides"].clone();
    assert_eq!(of_api.as_array().unwrap().len(), 1);
    // Set again, it is permanent.
    let body = r#"{"quota":"1/h burst 50"}"#;
    assert_eq!(send(&server, &format!("PUT {OVERRIDE}"), body).await.status, 204);
    let of_api = get(&server, "/v1/limits/api/overrides").await["overrides"].clone();
    assert_eq!((&of_api[0]["expires"], &of_api[0]["comment"]), (&json!(null), &json!(null)));
    assert_eq!(send(&server, &format!("DELETE {OVERRIDE}"), "").await.status, 204);
    let of_api = get(&server, "/v1/limits/api/overrides").await;
    assert_eq!(of_api, json!({ "overrides": [] }));
}

#[tokio::test]
async fn what_is_wrong_with_terms_is_told_and_nothing_changes() {
    let server = Server::start().await;
    let long = format!(r#"{{"comment":"{}"}}"#, "x".repeat(257));
    let cases = [
        ("", r#"{"ttl":"1h","expires":"2027-01-01T00:00:00Z"}"#, 422, "exclude each other"),
        ("?ttl=1h", r#"{"ttl":"1h"}"#, 422, "in the query and in the body"),
        ("?ttl=1h&ttl=2h", "", 400, "duplicate query parameter ttl"),
        ("?until=1h", "", 400, "known: ttl, expires, comment"),
        ("", r#"{"until":"1h"}"#, 400, "unknown field `until`"),
        ("", r#"["1h"]"#, 400, "invalid type: array"),
        ("", r#"{"ttl":-1}"#, 400, "a duration such as"),
        ("", r#"{"ttl":1.5}"#, 400, "a duration such as"),
        ("", r#"{"ttl":true}"#, 400, "a duration such as"),
        ("", r#"{"ttl":0}"#, 422, "ttl is 0; send at least one second"),
        ("", r#"{"ttl":"500ms"}"#, 422, "ttl is \"500ms\"; send at least one second"),
        ("", r#"{"ttl":"11 years"}"#, 422, "write a duration"),
        ("", r#"{"ttl":"4000d"}"#, 422, "ttl is \"4000d\"; send at most ten years"),
        ("", r#"{"ttl":18446744073709551615}"#, 422, "send at most ten years"),
        ("?ttl=", "", 422, "write a duration"),
        ("", r#"{"expires":"soon"}"#, 422, "expires: \"soon\" is no time"),
        ("", r#"{"expires":"2027-01-01T00:00:00"}"#, 422, "has no zone"),
        ("", r#"{"expires":"2020-01-01T00:00:00Z"}"#, 422, "the expiry has passed"),
        ("", r#"{"expires":"2116-01-01T00:00:00Z"}"#, 422, "more than ten years"),
        ("?comment=a%0Ab", "", 422, "a control character"),
        ("", &long, 422, "257 bytes; write at most 256"),
    ];
    for (query, body, status, expected) in cases {
        let reply = send(&server, &format!("PUT {ENTRY}{query}"), body).await;
        assert_eq!(reply.status, status, "{query} {body}: {reply:?}");
        assert!(reply.detail().contains(expected), "{query} {body}: {}", reply.detail());
        if query.is_empty() && body.starts_with('{') {
            let body = body.replacen('{', r#"{"quota":"9/s","#, 1);
            let reply = send(&server, &format!("PUT {OVERRIDE}"), &body).await;
            assert_eq!(reply.status, status, "{body}: {reply:?}");
            assert!(reply.detail().contains(expected), "{body}: {}", reply.detail());
        }
    }
    let text = ask(&server, &format!("PUT {ENTRY}")).token().body("text/plain", "{}").send().await;
    assert_eq!(text.status, 415, "a web page could send that");
    assert_eq!(get(&server, "/v1/lists/block").await, json!({ "entries": [] }));
    assert_eq!(get(&server, "/v1/overrides").await, json!({ "overrides": [] }));
}
