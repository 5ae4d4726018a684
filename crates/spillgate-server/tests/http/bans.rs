//! `/v1/bans` and `/v1/strikes`.

use serde_json::{Value, json};

use super::client::{Reply, ask, check, post};
use super::server::Server;

const POLICY: &str = r#"
allow = ["198.51.100.1"]

[[limit]]
name = "api"
quota = "1/h burst 2"
ban = { strikes = 3, window = "10m", duration = "10m", factor = 2, max = "1d", decay = "1d" }
"#;

const BAN: &str = "/v1/bans/203.0.113.50";

async fn send(server: &Server, line: &str, body: &str) -> Reply {
    let ask = ask(server, line).token();
    if body.is_empty() { ask.send().await } else { ask.json(body).send().await }
}

async fn bans(server: &Server) -> Vec<Value> {
    let reply = send(server, "GET /v1/bans", "").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()["bans"].as_array().unwrap().clone()
}

fn from(address: &str) -> String {
    json!({ "request": { "path": "/", "ip": address } }).to_string()
}

#[tokio::test]
async fn denials_lead_to_a_ban_that_is_listed_and_lifted() {
    let server = Server::with_policy(POLICY).await;
    let answers = |count: usize| {
        let server = &server;
        async move {
            let mut answers = Vec::new();
            for _ in 0..count {
                answers.push(check(server, &from("203.0.113.50")).await);
            }
            answers
        }
    };
    let first = answers(5).await;
    assert!(first[..2].iter().all(|answer| answer["allowed"] == true), "{first:?}");
    assert!(first[2..].iter().all(|answer| answer["allowed"] == false), "{first:?}");
    assert!(first.iter().all(|answer| answer["banned"].is_null()), "{first:?}");
    let banned = &answers(1).await[0];
    assert_eq!((&banned["allowed"], &banned["banned"]), (&json!(false), &json!(true)));
    let wait = banned["retry_after"].as_f64().unwrap();
    assert!(wait > 570.0 && wait <= 600.0, "{banned}");

    let listed = bans(&server).await;
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!((&listed[0]["count"], &listed[0]["limit"]), (&json!(1), &json!("api")));
    assert_eq!(listed[0]["mode"], "enforce");
    assert!(listed[0]["caller"].as_str().unwrap().contains("203.0.113.50"), "{listed:?}");
    let one = send(&server, &format!("GET {BAN}"), "").await;
    assert_eq!((one.status, &one.json()["caller"]), (200, &listed[0]["caller"]));

    assert_eq!(send(&server, &format!("DELETE {BAN}"), "").await.status, 204);
    assert_eq!(send(&server, &format!("DELETE {BAN}"), "").await.status, 404);
    assert_eq!(send(&server, &format!("GET {BAN}"), "").await.status, 404);
    assert_eq!(answers(1).await[0]["banned"], json!(null), "only the limit denies");
}

#[tokio::test]
async fn an_operator_bans_extends_and_is_outvoted_by_the_allow_list() {
    let server = Server::with_policy(POLICY).await;
    for (body, seconds) in
        [(r#"{"ttl":"1h","reason":"scan"}"#, 3600.0), (r#"{"ttl":7200}"#, 7200.0)]
    {
        let reply = send(&server, &format!("PUT {BAN}"), body).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let left = reply.json()["expires_in"].as_f64().unwrap();
        assert!(left <= seconds && left > seconds - 30.0, "{reply:?}");
        assert_eq!(bans(&server).await.len(), 1);
    }
    assert_eq!(check(&server, &from("203.0.113.50")).await["banned"], true);
    let allowed = send(&server, "PUT /v1/bans/198.51.100.1", r#"{"ttl":"1h"}"#).await;
    assert_eq!(allowed.status, 200, "{allowed:?}");
    assert_eq!(check(&server, &from("198.51.100.1")).await["allowed"], true);
    // A /64 is one caller.
    send(&server, "PUT /v1/bans/2001:db8::1", r#"{"ttl":"1h"}"#).await;
    assert_eq!(check(&server, &from("2001:db8::2")).await["banned"], true);
    assert_eq!(check(&server, &from("2001:db8:0:1::1")).await["allowed"], true);
}

#[tokio::test]
async fn reported_offences_ban_too() {
    let server = Server::with_policy(POLICY).await;
    let strike = r#"{"limit":"api","key":"203.0.113.9"}"#;
    for _ in 0..2 {
        let reply = post(&server, "/v1/strikes", strike).await;
        assert_eq!((reply.status, reply.json()), (200, json!({ "ban": null })));
    }
    let ban = post(&server, "/v1/strikes", strike).await.json();
    assert_eq!(ban["ban"]["count"], 1, "{ban}");
    assert_eq!(check(&server, &from("203.0.113.9")).await["banned"], true);
}

#[tokio::test]
async fn bans_need_the_token_and_right_input() {
    let server = Server::with_policy(POLICY).await;
    for line in ["GET /v1/bans", "DELETE /v1/bans/192.0.2.1"] {
        assert_eq!(ask(&server, line).send().await.status, 401, "{line}");
    }
    for (line, body, status) in [
        ("PUT /v1/bans/nobody", r#"{"ttl":"1h"}"#, 422),
        ("PUT /v1/bans/192.0.2.1", r#"{"ttl":"2y"}"#, 422),
        ("PUT /v1/bans/192.0.2.1", r#"{"ttl":"400d"}"#, 422),
        ("PUT /v1/bans/192.0.2.1", r#"{"ttl":0}"#, 422),
        ("PUT /v1/bans/192.0.2.1", "{}", 400),
        ("PUT /v1/bans/192.0.2.1", r#"{"ttl":"1h","why":"x"}"#, 400),
        ("PUT /v1/bans/192.0.2.1?ttl=1h", r#"{"ttl":"1h"}"#, 400),
        ("POST /v1/strikes", r#"{"limit":"apo","key":"192.0.2.1"}"#, 404),
        ("POST /v1/strikes", r#"{"limit":"api"}"#, 400),
    ] {
        let reply = send(&server, line, body).await;
        assert_eq!(reply.status, status, "{line} {body}: {reply:?}");
    }
    assert!(bans(&server).await.is_empty());
}
