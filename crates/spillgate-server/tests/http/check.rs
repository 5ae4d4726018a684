use std::future::pending;

use serde_json::{Value, json};
use spillgate_server::protocol::resp::{Endpoint, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::client::{ask, check, post};
use super::server::{POLICY, Server, app};

#[tokio::test]
async fn a_limit_is_asked_by_name_until_it_denies() {
    let server = Server::start().await;
    let body = r#"{"limit":"api","key":"203.0.113.7"}"#;
    for remaining in (0..5).rev() {
        let answer = check(&server, body).await;
        assert_eq!(answer["allowed"], true);
        assert_eq!(answer["remaining"], remaining);
        assert_eq!((&answer["limit"], &answer["max"]), (&json!("api"), &json!(5)));
        assert_eq!((&answer["retry_after"], &answer["wait"]), (&json!(0), &json!(0)));
    }
    let answer = check(&server, body).await;
    assert_eq!((&answer["allowed"], &answer["remaining"]), (&json!(false), &json!(0)));
    let retry_after = answer["retry_after"].as_f64().unwrap();
    assert!((3590.0..=3600.0).contains(&retry_after), "{answer}");
    // Another caller is not concerned.
    assert_eq!(check(&server, r#"{"limit":"api","key":"203.0.113.8"}"#).await["remaining"], 4);
}

/// Of a bucket, whose intervals are whole nanoseconds, and of a window, whose steps are longer.
#[tokio::test]
async fn a_reset_is_as_long_as_the_quota_says() {
    let limit = |name: &str, rest: &str| format!("[[limit]]\nname = '{name}'\n{rest}\n");
    let policy = limit("seven", "quota = '7/min'")
        + &limit("three", "quota = '3/s'")
        + &limit("many", "quota = '100000/min'\nalgorithm = 'first-hit-window'");
    let app = app();
    app.replace(&policy).unwrap();
    let server = Server::with(app).await;
    for (name, cost, reset) in [("seven", 7, 60), ("three", 3, 1), ("many", 1, 60)] {
        let body = format!(r#"{{"limit":"{name}","key":"203.0.113.7","cost":{cost}}}"#);
        assert_eq!(check(&server, &body).await["reset_after"], reset, "{name}");
    }
}

#[tokio::test]
async fn a_cost_is_spent_whole_or_not_at_all_and_zero_only_looks() {
    let server = Server::start().await;
    let with = |cost: u64| format!(r#"{{"limit":"api","key":"user:42","cost":{cost}}}"#);
    assert_eq!(check(&server, &with(3)).await["remaining"], 2);
    assert_eq!(check(&server, &with(3)).await["allowed"], false);
    assert_eq!(check(&server, &with(0)).await["remaining"], 2);
    assert_eq!(check(&server, &with(2)).await["remaining"], 0);
    let never = check(&server, &with(6)).await;
    assert_eq!((&never["allowed"], &never["retry_after"]), (&json!(false), &Value::Null));
    assert_eq!(check(&server, &with(u64::MAX)).await["allowed"], false);
}

#[tokio::test]
async fn keys_have_as_many_parts_as_the_limit_says() {
    let server = Server::start().await;
    let two = r#"{"limit":"photos","key":["192.0.2.1","42"],"cost":2}"#;
    assert_eq!(check(&server, two).await["remaining"], 1);
    assert_eq!(check(&server, r#"{"limit":"total"}"#).await["remaining"], 7);
    assert_eq!(check(&server, r#"{"limit":"total","key":[]}"#).await["remaining"], 6);
    for (body, expected) in [
        (r#"{"limit":"photos","key":"192.0.2.1"}"#, "ip, path:id, 2 in all, and 1 were given"),
        (r#"{"limit":"total","key":"x"}"#, "counted per global, 0 in all, and 1 were given"),
        (r#"{"limit":"photos","key":["here","42"]}"#, "limit \"photos\", ip"),
    ] {
        let reply = post(&server, "/v1/check", body).await;
        assert_eq!(reply.status, 400, "{body}");
        assert!(reply.detail().contains(expected), "{body}: {}", reply.detail());
    }
}

#[tokio::test]
async fn a_request_meets_the_limits_of_the_policy() {
    let server = Server::start().await;
    let body = r#"{"request":{"method":"GET","path":"/api/users?page=2","host":"example.com",
        "headers":{"accept":"*/*","x-tag":["a","b"]},"ip":"203.0.113.7"}}"#;
    let answer = check(&server, body).await;
    assert_eq!((&answer["limit"], &answer["remaining"]), (&json!("api"), &json!(4)));
    let state = &answer["limits"][0];
    assert_eq!((&state["limit"], &state["mode"]), (&json!("api"), &json!("enforce")));
    // The same allowance as by name.
    assert_eq!(check(&server, r#"{"limit":"api","key":"203.0.113.7"}"#).await["remaining"], 3);
    // None is met, and nobody is known.
    let answer = check(&server, r#"{"request":{"path":"/elsewhere"}}"#).await;
    assert_eq!((&answer["allowed"], &answer["limit"]), (&json!(true), &Value::Null));
    assert_eq!(answer["limits"], json!([]));
}

#[tokio::test]
async fn a_blocked_caller_is_told_so() {
    let server = Server::start().await;
    server
        .app
        .gate()
        .list(
            spillgate_policy::ListKind::Block,
            "203.0.113.0/24",
            spillgate_policy::Terms::permanent(),
        )
        .await
        .unwrap();
    let answer = check(&server, r#"{"request":{"path":"/","ip":"203.0.113.7"}}"#).await;
    assert_eq!((&answer["allowed"], &answer["blocked"]), (&json!(false), &json!(true)));
    assert_eq!(answer["retry_after"], Value::Null);
}

#[tokio::test]
async fn several_limits_are_spent_together_or_not_at_all() {
    let server = Server::start().await;
    let both = |cost: u64| {
        format!(
            r#"{{"checks":[{{"limit":"total","cost":2}},
            {{"limit":"api","key":"user:1","cost":{cost}}}]}}"#
        )
    };
    let answer = check(&server, &both(1)).await;
    let remaining = |answer: &Value| {
        let state = |place: usize| answer["limits"][place]["remaining"].clone();
        (answer["limits"][0]["limit"].clone(), state(0), state(1))
    };
    assert_eq!(answer["allowed"], true);
    assert_eq!(remaining(&answer), (json!("total"), json!(6), json!(4)));
    // The second denies, so the first keeps what it has.
    let answer = check(&server, &both(5)).await;
    assert_eq!((&answer["allowed"], &answer["limit"]), (&json!(false), &json!("api")));
    assert_eq!(remaining(&answer), (json!("total"), json!(6), json!(4)));
    // One that is named twice pays twice.
    let twice = r#"{"checks":[{"limit":"total","cost":4},{"limit":"total","cost":4}]}"#;
    assert_eq!(check(&server, twice).await["allowed"], false);
    assert_eq!(check(&server, r#"{"limit":"total","cost":0}"#).await["remaining"], 6);
    let reply =
        post(&server, "/v1/check", r#"{"checks":[{"limit":"total"},{"limit":"totl"}]}"#).await;
    assert_eq!((reply.status, reply.detail().contains("\"total\"?")), (404, true));
    assert_eq!(check(&server, r#"{"limit":"total","cost":0}"#).await["remaining"], 6);
}

#[tokio::test]
async fn a_batch_is_answered_in_order_each_on_its_own() {
    let server = Server::start().await;
    let batch = r#"{"batch":[
        {"limit":"api","key":"user:1","cost":5},
        {"limit":"api","key":"user:1"},
        {"limit":"apii","key":"user:1"},
        {"request":{"path":"/once","ip":"192.0.2.1"}},
        {"checks":[{"limit":"total"}]}]}"#;
    let answers = check(&server, batch).await["answers"].clone();
    let allowed: Vec<_> =
        answers.as_array().unwrap().iter().map(|a| a["allowed"].clone()).collect();
    assert_eq!(allowed, [json!(true), json!(false), Value::Null, json!(true), json!(true)]);
    assert_eq!(answers[2]["error"]["status"], 404);
    assert_eq!(answers[3]["reset_after"], Value::Null, "what is spent once stays spent");
    // What has not the form of a question is no part of a batch, and nothing is spent.
    for (wrong, why) in [
        (r#"{"batch":[]}"#, "a batch cannot contain another batch"),
        (r#"{"limit":"total","request":{"path":"/"}}"#, "more than one of them"),
        (r#"{"checks":[]}"#, "it must have from 1 to 64"),
        (r#"{"request":{"path":"x"}}"#, "it must begin with a slash"),
        (r#"{"request":{"path":"/","headers":{"a":"\n"}}}"#, "control characters"),
        ("{}", "none or more"),
    ] {
        let batch = format!(r#"{{"batch":[{{"limit":"total"}},{wrong}]}}"#);
        let reply = post(&server, "/v1/check", &batch).await;
        assert_eq!((reply.status, reply.detail().contains(why)), (400, true), "{reply:?}");
    }
    let long = format!(r#"{{"batch":[{}]}}"#, vec![r#"{"limit":"total"}"#; 1001].join(","));
    assert_eq!(post(&server, "/v1/check", &long).await.status, 400);
    assert_eq!(check(&server, r#"{"limit":"total","cost":0}"#).await["remaining"], 7);
}

#[tokio::test]
async fn what_is_unknown_or_too_long_is_answered_shortly() {
    let limit = |number| {
        format!(
            "[[limit]]\nname = 'limit-{number:050}'\nquota = '1/s'\ncapacity = 1\nmatch = {{ path = '/{number}' }}\n"
        )
    };
    let server = Server::start().await;
    server.app.replace(&(0..2_000).map(limit).collect::<String>()).unwrap();
    let asked = format!(r#"{{"limit":"{}"}}"#, "other".repeat(100));
    let batch = format!(r#"{{"batch":[{}]}}"#, vec![asked; 1000].join(","));
    let reply = post(&server, "/v1/check", &batch).await;
    assert_eq!(reply.json()["answers"].as_array().unwrap().len(), 1000);
    assert!(reply.body.len() < 1_000_000, "{} bytes", reply.body.len());
    let error = &reply.json()["answers"][999]["error"];
    assert!(error["detail"].as_str().unwrap().ends_with(" and others"), "{error}");
    server.app.replace(POLICY).unwrap();
    let long = format!(r#"{{"limit":"photos","key":["192.0.2.1","{}"]}}"#, "x".repeat(1016));
    for path in ["/v1/check", "/v1/reserve"] {
        let reply = post(&server, path, &long).await;
        assert_eq!(reply.status, 400, "{reply:?}");
        assert!(reply.detail().contains("the key has 1025 bytes; write at most 1024"));
        assert_eq!(post(&server, path, &long.replacen('x', "", 1)).await.status, 200);
    }
}

#[tokio::test]
async fn a_limit_in_shadow_never_refuses_but_says_what_it_would() {
    let server = Server::start().await;
    let body = r#"{"limit":"trial","key":"user:1"}"#;
    assert_eq!(check(&server, body).await["limits"][0]["allowed"], true);
    let answer = check(&server, body).await;
    assert_eq!((&answer["allowed"], &answer["retry_after"]), (&json!(true), &json!(0)));
    assert_eq!(answer["limits"][0]["allowed"], false);
    assert_eq!(answer["limits"][0]["mode"], "shadow");
    let metrics = ask(&server, "GET /metrics").send().await.body;
    assert!(metrics.contains(r#"{limit="trial",outcome="shadow-denied"} 1"#), "{metrics}");
}

#[tokio::test]
async fn checks_over_the_redis_protocol_are_counted_with_the_others() {
    let server = Server::start().await;
    let (mut client, stream) = duplex(4096);
    let long = format!("SG.CHECK api user:{}\r\n", "x".repeat(1020));
    for line in ["api user:1 5", "api user:1", "trial user:1", "trial user:1"] {
        client.write_all(format!("SG.CHECK {line}\r\n").as_bytes()).await.unwrap();
    }
    client.write_all(long.as_bytes()).await.unwrap();
    client.shutdown().await.unwrap();
    serve(stream, None, &Endpoint::new(std::sync::Arc::clone(server.app.enforcer())), pending())
        .await
        .unwrap();
    let mut replies = String::new();
    client.read_to_string(&mut replies).await.unwrap();
    let limited: Vec<_> = replies.split("*5\r\n:").skip(1).map(|reply| &reply[..1]).collect();
    assert_eq!(limited, ["0", "1", "0", "0"], "{replies}");
    assert!(replies.contains("the key has 1025 bytes; write at most 1024"), "{replies}");
    let metrics = ask(&server, "GET /metrics").send().await.body;
    for counted in [
        r#"{limit="api",outcome="allowed"} 1"#,
        r#"{limit="api",outcome="denied"} 1"#,
        r#"{limit="trial",outcome="shadow-denied"} 1"#,
    ] {
        assert!(metrics.contains(counted), "{counted}: {metrics}");
    }
}

#[tokio::test]
async fn a_shaper_says_how_long_to_wait() {
    let server = Server::start().await;
    let body = r#"{"limit":"queue","key":"user:1"}"#;
    check(&server, body).await;
    let wait = check(&server, body).await["wait"].as_f64().unwrap();
    assert!((0.0..=0.05).contains(&wait), "{wait}");
}

#[tokio::test]
async fn what_is_wrong_in_a_body_is_told_by_its_name() {
    let server = Server::start().await;
    for (body, expected) in [
        ("", "the body is empty"),
        (" \n", "the body is empty"),
        ("{", "EOF"),
        ("nonsense", "expected ident"),
        ("[]", "invalid type: array, expected an object"),
        ("{}", "one of {\"limit\", \"key\", \"cost\"}"),
        (r#"{"limit":"api","request":{"path":"/"}}"#, "more than one of them"),
        (r#"{"request":{"path":"/"},"cost":3}"#, "more than one of them"),
        (r#"{"limt":"api"}"#, "unknown field `limt`, expected one of `limit`, `key`"),
        (r#"{"limit":"api","limit":"api"}"#, "duplicate field `limit`"),
        (r#"{"limit":"api","key":7}"#, "a text, or a list of texts"),
        (
            r#"{"limit":"api","key":"x","cost":-1}"#,
            "expected a whole number from 0 to 18446744073709551615",
        ),
        (r#"{"limit":"api","key":"x","cost":1.5}"#, "expected a whole number"),
        (r#"{"limit":"api","key":"x","cost":18446744073709551616}"#, "expected a whole number"),
        (r#"{"request":{"path":"/","ip":"here"}}"#, "invalid IP address"),
        (r#"{"request":{"path":"users"}}"#, "it must begin with a slash"),
        (r#"{"request":{"path":""}}"#, "it must begin with a slash"),
        (r#"{"checks":[]}"#, "it must have from 1 to 64"),
        (r#"{"request":{"path":"/","method":"G T"}}"#, "invalid method"),
        (r#"{"request":{"path":"/","headers":{"a b":"c"}}}"#, "invalid header name"),
        (r#"{"request":{"path":"/","headers":{"a":"\n"}}}"#, "control characters"),
        (r#"{"request":{"pth":"/"}}"#, "unknown field `pth`"),
        (r#"{"checks":[{"limit":"api","kee":"x"}]}"#, "unknown field `kee`"),
        ("{\"limit\":\"\u{0}\"}", "control character"),
    ] {
        let reply = ask(&server, "POST /v1/check").json(body).send().await;
        assert_eq!(reply.status, 400, "{body}: {reply:?}");
        assert!(reply.detail().contains(expected), "{body}: {}", reply.detail());
    }
}

#[tokio::test]
async fn a_whole_number_may_have_a_point() {
    let server = Server::start().await;
    let with = |cost: &str| format!(r#"{{"limit":"api","key":"user:1","cost":{cost}}}"#);
    for (cost, remaining) in [("1", 4), ("1.0", 3), ("1e0", 2), ("0.0", 2), ("20e-1", 0)] {
        assert_eq!(check(&server, &with(cost)).await["remaining"], remaining, "{cost}");
    }
    for cost in ["-1.0", "0.5", "1.8446744073709552e19", "1e400", "\"1\"", "true", "[1]"] {
        assert_eq!(post(&server, "/v1/check", &with(cost)).await.status, 400, "{cost}");
    }
}

/// Bodies in which every object can be written as an array, in the order of its members.
const NESTED: &[(&str, &str)] = &[
    ("/v1/check", r#"{"limit":"api","key":"user:1","cost":1}"#),
    (
        "/v1/check",
        r#"{"request":{"method":"GET","path":"/","host":"h","headers":{},"ip":"192.0.2.1"}}"#,
    ),
    ("/v1/check", r#"{"checks":[{"limit":"api","key":"user:1","cost":1}]}"#),
    ("/v1/check", r#"{"batch":[{"limit":"api","key":"user:1","cost":1}]}"#),
    ("/v1/check", r#"{"batch":[{"checks":[{"limit":"api","key":"user:1","cost":1}]}]}"#),
    ("/v1/check", r#"{"batch":[{"request":{"method":"GET","path":"/","ip":"192.0.2.1"}}]}"#),
    ("/v1/reserve", r#"{"limit":"api","key":"user:1","cost":1,"expires_in":60}"#),
    ("/v1/settle", r#"{"reservation":"00000000000000000000000000000000","cost":1}"#),
    ("/v1/explain", r#"{"request":{"method":"GET","path":"/","host":"h"}}"#),
    ("/v1/limits/api/keys/user:1/override", r#"{"quota":"9/s"}"#),
];

/// The value with each of its objects in turn as an array of its members: as they are, and with
/// null for those that a form of the question does not have.
fn positional(value: &Value) -> Vec<Value> {
    let mut variants = Vec::new();
    match value {
        Value::Object(members) => {
            let values: Vec<_> = members.values().cloned().collect();
            for before in 0..=5 {
                let nulls = std::iter::repeat_n(Value::Null, before);
                variants.push(Value::Array(nulls.chain(values.clone()).collect()));
            }
            for (name, member) in members {
                for variant in positional(member) {
                    let mut changed = members.clone();
                    changed.insert(name.clone(), variant);
                    variants.push(Value::Object(changed));
                }
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                for variant in positional(element) {
                    let mut changed = elements.clone();
                    changed[index] = variant;
                    variants.push(Value::Array(changed));
                }
            }
        }
        _ => {}
    }
    variants
}

#[tokio::test]
async fn an_array_is_no_object_however_deep_it_is() {
    let server = Server::start().await;
    for (path, body) in NESTED {
        let body: Value = serde_json::from_str(body).unwrap();
        let method = if path.ends_with("override") { "PUT" } else { "POST" };
        let variants = positional(&body);
        assert!(variants.len() > 5, "{body}");
        for variant in variants {
            let asked =
                ask(&server, &format!("{method} {path}")).token().json(&variant.to_string());
            let reply = asked.send().await;
            assert_eq!(reply.status, 400, "{variant}: {reply:?}");
            let detail = reply.detail();
            assert!(detail.contains("expected an object"), "{variant}: {detail}");
        }
    }
    let metrics = ask(&server, "GET /metrics").send().await.body;
    assert!(!metrics.contains(r#"outcome="allowed"} 1"#), "{metrics}");
}
