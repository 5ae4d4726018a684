use std::sync::Arc;

use serde_json::{Value, json};
use spillgate_server::protocol::http::HttpServer;

use super::client::{Reply, ask, check, post};
use super::server::{POLICY, Server, TOKEN, app};

async fn reserve(server: &Server, cost: u64) -> Value {
    let body = format!(r#"{{"limit":"api","key":"user:1","cost":{cost}}}"#);
    let reply = post(server, "/v1/reserve", &body).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

async fn settle(server: &Server, reserved: &Value, cost: u64) -> Reply {
    let id = reserved["reservation"].as_str().unwrap();
    post(server, "/v1/settle", &format!(r#"{{"reservation":"{id}","cost":{cost}}}"#)).await
}

async fn remaining(server: &Server) -> Value {
    check(server, r#"{"limit":"api","key":"user:1","cost":0}"#).await["remaining"].clone()
}

#[tokio::test]
async fn what_was_reserved_is_corrected_once() {
    let server = Server::start().await;
    let reserved = reserve(&server, 4).await;
    assert_eq!((&reserved["allowed"], &reserved["remaining"]), (&json!(true), &json!(1)));
    let settled = settle(&server, &reserved, 1).await.json();
    assert_eq!((&settled["reserved"], &settled["cost"]), (&json!(4), &json!(1)));
    assert_eq!((&settled["limit"], &settled["remaining"]), (&json!("api"), &json!(4)));
    let again = settle(&server, &reserved, 0).await;
    assert_eq!((again.status, again.detail().contains("it was settled")), (404, true));
    assert_eq!(remaining(&server).await, 4);
}

#[tokio::test]
async fn more_than_was_reserved_goes_into_debt() {
    let server = Server::start().await;
    let reserved = reserve(&server, 5).await;
    let settled = settle(&server, &reserved, 8).await.json();
    assert_eq!(settled["remaining"], 0);
    let answer = check(&server, r#"{"limit":"api","key":"user:1"}"#).await;
    let retry_after = answer["retry_after"].as_f64().unwrap();
    assert!((4.0 * 3600.0 - 10.0..=4.0 * 3600.0).contains(&retry_after), "{answer}");
}

#[tokio::test]
async fn a_denied_reservation_has_no_name() {
    let server = Server::start().await;
    reserve(&server, 3).await;
    let denied = reserve(&server, 3).await;
    assert_eq!((&denied["allowed"], &denied["reservation"]), (&json!(false), &Value::Null));
    assert_eq!(remaining(&server).await, 2);
}

#[tokio::test]
async fn nothing_is_reserved_or_spent_under_limits_that_give_no_receipt() {
    let adaptive = "adaptive = { controller = 'load', target = 0.8, signal = 'cpu', ";
    let server = Server::with_policy(&format!(
        "[[limit]]\nname = 'rate'\nby-name = true\nper = 'global'\n\
         {adaptive}min = '1/h burst 5', max = '1/h burst 5' }}\n\
         [[limit]]\nname = 'jobs'\nby-name = true\nper = 'user'\nconcurrent = 5\n"
    ))
    .await;
    for (body, expected) in [
        (r#"{"limit":"rate","cost":4}"#, "\"rate\" follows load: it can be checked"),
        (r#"{"limit":"jobs","key":"1","cost":4}"#, "on concurrency; acquire a permit"),
    ] {
        let refused = post(&server, "/v1/reserve", body).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.detail().contains(expected), "{}", refused.detail());
    }
    let left = check(&server, r#"{"limit":"rate","cost":0}"#).await;
    assert_eq!(left["remaining"], 5);
}

#[tokio::test]
async fn many_who_settle_one_reservation_settle_it_once() {
    let server: &Server = Box::leak(Box::new(Server::start().await));
    let reserved: &Value = Box::leak(Box::new(reserve(server, 5).await));
    let mut settling = tokio::task::JoinSet::new();
    for _ in 0..16 {
        settling.spawn(settle(server, reserved, 4));
    }
    let settled = settling.join_all().await;
    assert_eq!(settled.iter().filter(|reply| reply.status == 200).count(), 1);
    assert_eq!(remaining(server).await, 1);
}

#[tokio::test]
async fn the_oldest_is_forgotten_when_there_is_no_room() {
    let server = Server::of(HttpServer::new(Arc::new(app())).reservations(2)).await;
    let first = reserve(&server, 1).await;
    let second = reserve(&server, 1).await;
    let third = reserve(&server, 1).await;
    assert_eq!(settle(&server, &first, 0).await.status, 404, "what it reserved stays spent");
    assert_eq!(settle(&server, &second, 0).await.status, 200);
    assert_eq!(settle(&server, &third, 0).await.status, 200);
    assert_eq!(remaining(&server).await, 4);
    let metrics = ask(&server, "GET /metrics").send().await.body;
    assert!(metrics.contains("\nspillgate_reservations 0\n"), "{metrics}");
}

#[tokio::test]
async fn a_reservation_gives_nothing_back_to_a_limit_that_went_and_came_back() {
    let server = Server::start().await;
    let reserved = reserve(&server, 4).await;
    server.app.replace("[[limit]]\nname = 'other'\nquota = '5/day'").unwrap();
    server.app.replace(POLICY).unwrap();
    assert_eq!(remaining(&server).await, 1, "what was reserved stays spent");
    assert_eq!(settle(&server, &reserved, 0).await.status, 409);
    assert_eq!(remaining(&server).await, 1);
}

#[tokio::test]
async fn a_reservation_under_a_limit_that_has_changed_stays_spent() {
    let server = Server::start().await;
    let reserved = reserve(&server, 4).await;
    // Everyone starts afresh, so there is nothing to give back.
    let other = "[[limit]]\nname = 'api'\nalgorithm = 'fixed-window'\nquota = '5/day'";
    server.app.replace(other).unwrap();
    check(&server, r#"{"limit":"api","key":"user:1","cost":3}"#).await;
    let settled = settle(&server, &reserved, 0).await;
    assert_eq!(
        (settled.status, settled.detail().contains("was removed or changed since")),
        (409, true)
    );
    assert_eq!(remaining(&server).await, 2);
}

#[tokio::test]
async fn what_cannot_be_reserved_or_settled_is_told() {
    let server = Server::start().await;
    for (path, body, status, expected) in [
        ("reserve", r#"{"limit":"api","key":"user:1","expires_in":0}"#, 400, "from 1 to 86400"),
        (
            "reserve",
            r#"{"limit":"api","key":"user:1","expires_in":86401}"#,
            400,
            "expires_in is 86401",
        ),
        ("reserve", r#"{"limit":"apo","key":"user:1"}"#, 404, "did you mean \"api\"?"),
        ("reserve", r#"{"limit":"api","request":{"path":"/"}}"#, 400, "unknown field `request`"),
        ("settle", r#"{"reservation":"abc","cost":1}"#, 404, "unknown reservation"),
        ("settle", r#"{"reservation":"","cost":1}"#, 404, "unknown reservation"),
        ("settle", r#"{"reservation":"+1","cost":1}"#, 404, "unknown reservation"),
        ("settle", r#"{"reservation":"abc"}"#, 400, "missing field `cost`"),
    ] {
        let reply = post(&server, &format!("/v1/{path}"), body).await;
        assert_eq!(reply.status, status, "{body}: {reply:?}");
        assert!(reply.detail().contains(expected), "{body}: {}", reply.detail());
    }
    assert!(!format!("{:?}", server.app).contains(TOKEN));
}
