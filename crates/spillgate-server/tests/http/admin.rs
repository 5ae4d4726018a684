use std::sync::Arc;

use serde_json::{Value, json};

use spillgate::WhenFull;
use spillgate_policy::store::CallQuota;
use spillgate_policy::{Gate, Policy, Throttle};
use spillgate_server::{Access, AnyStore, App};

use super::client::{Reply, ask, check};
use super::server::{POLICY, Server, app, token};

async fn admin(server: &Server, line: &str) -> Reply {
    ask(server, line).token().send().await
}

#[tokio::test]
async fn a_caller_is_looked_at_and_forgotten() {
    let server = Server::start().await;
    check(&server, r#"{"limit":"api","key":"user:a b/ü","cost":3}"#).await;
    let path = "/v1/limits/api/keys/user:a%20b%2F%C3%BC";
    let seen = admin(&server, &format!("GET {path}?cost=3")).await.json();
    assert_eq!((&seen["allowed"], &seen["remaining"]), (&json!(false), &json!(2)));
    let seen = admin(&server, &format!("GET {path}")).await.json();
    assert_eq!((&seen["allowed"], &seen["remaining"]), (&json!(true), &json!(2)), "only looked");
    assert_eq!(admin(&server, &format!("DELETE {path}")).await.status, 204);
    assert_eq!(admin(&server, &format!("GET {path}")).await.json()["remaining"], 5);
}

#[tokio::test]
async fn keys_of_several_parts_and_of_none_have_a_path() {
    let server = Server::start().await;
    check(&server, r#"{"limit":"photos","key":["192.0.2.1","a&b"],"cost":2}"#).await;
    check(&server, r#"{"limit":"total","cost":3}"#).await;
    let photos = "GET /v1/limits/photos/keys/192.0.2.1";
    assert_eq!(admin(&server, &format!("{photos}?part=a%26b")).await.json()["remaining"], 1);
    assert_eq!(admin(&server, &format!("{photos}?part=other")).await.json()["remaining"], 3);
    assert_eq!(admin(&server, photos).await.status, 400);
    let total = admin(&server, "GET /v1/limits/total/keys/global").await;
    assert_eq!(total.json()["remaining"], 5);
    assert_eq!(admin(&server, "GET /v1/limits/total/keys/other").await.status, 400);
}

#[tokio::test]
async fn an_override_is_set_and_taken_away() {
    let server = Server::start().await;
    let key = r#"{"limit":"api","key":"user:1","cost":0}"#;
    check(&server, r#"{"limit":"api","key":"user:1","cost":2}"#).await;
    let path = "/v1/limits/api/keys/user:1/override";
    let set = ask(&server, &format!("PUT {path}")).token().json(r#"{"quota":"1/h burst 50"}"#);
    assert_eq!(set.send().await.status, 204);
    assert_eq!(check(&server, key).await["remaining"], 48, "what is spent stays spent");
    assert_eq!(admin(&server, &format!("DELETE {path}")).await.status, 204);
    assert_eq!(check(&server, key).await["max"], 5);
    for (body, status, expected) in [
        (r#"{"quota":"fast"}"#, 422, "quota \"fast\""),
        (r#"{"quota":"0/s"}"#, 422, "quota \"0/s\""),
        ("{}", 400, "missing field `quota`"),
    ] {
        let reply = ask(&server, &format!("PUT {path}")).token().json(body).send().await;
        assert_eq!((reply.status, reply.detail().contains(expected)), (status, true), "{reply:?}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_told_with_what_may_be_meant() {
    let server = Server::start().await;
    for (line, status, expected) in [
        ("GET /v1/limits/apj/keys/user:1", 404, "did you mean \"api\"?"),
        ("GET /v1/limits/api/keys/nobody", 400, "not a caller"),
        ("GET /v1/limits/api/keys/user:1?prt=x", 400, "known: part, cost"),
        ("GET /v1/limits/api/keys/user:1?cost=x", 400, "invalid cost \"x\""),
        ("GET /v1/limits/api/keys/%ff", 400, "not UTF-8"),
        ("DELETE /v1/limits/api/keys/user:1?cost=1", 400, "known: part"),
        ("GET /v1/lists/blok", 404, "the lists are allow and block"),
        ("PUT /v1/lists/block/nobody", 422, "write an address"),
        ("GET /v1/lists/block/nobody", 422, "write an address"),
        ("GET /v1/lists/block/192.0.2.99", 404, "no such entry"),
        ("GET /v1/lists/blok/192.0.2.99", 404, "the lists are allow and block"),
        ("GET /v1/limits/apj/overrides", 404, "did you mean \"api\"?"),
    ] {
        let reply = admin(&server, line).await;
        assert_eq!(reply.status, status, "{line}: {reply:?}");
        assert!(reply.detail().contains(expected), "{line}: {}", reply.detail());
    }
}

#[tokio::test]
async fn limits_are_listed_with_how_they_are_doing() {
    let server = Server::start().await;
    check(&server, r#"{"limit":"photos","key":["192.0.2.1","7"]}"#).await;
    let limits = admin(&server, "GET /v1/limits").await.json()["limits"].clone();
    let expected = json!({
        "name": "photos", "quota": "1/h burst 3", "algorithm": "token-bucket",
        "per": "ip, path:id", "mode": "enforce", "by_name": false, "tiers": 0, "callers": 1,
        "capacity": 100_000, "evictions": 0,
    });
    assert_eq!(limits[2], expected);
    let names: Vec<_> = limits.as_array().unwrap().iter().map(|limit| &limit["name"]).collect();
    assert_eq!(names.len(), POLICY.matches("[[limit]]").count());
}

#[tokio::test]
async fn the_limit_of_cl_throttle_is_listed_and_its_keys_can_be_reset() {
    let policy = Policy::from_toml(POLICY).unwrap().with_throttle(1_000, WhenFull::Evict);
    let gate = Arc::new(Gate::with_store(policy, AnyStore::default()).unwrap());
    let server = Server::with(App::new(gate, POLICY).with_access(Access::loopback(token()))).await;
    let key = "user:1-in-a-key-of-more-than-thirty-two-bytes";
    let quota = CallQuota::new("1/h burst 2".parse().unwrap()).unwrap();
    let spend = async || {
        let question = Throttle { key: key.as_bytes(), quota, cost: 2 };
        server.app.enforcer().decide(&question).await.unwrap().is_allowed()
    };
    assert!(spend().await && !spend().await);
    let limits = admin(&server, "GET /v1/limits").await.json()["limits"].clone();
    let expected = json!({
        "name": "cl.throttle", "quota": "set by each call", "algorithm": "token-bucket",
        "per": "key", "mode": "enforce", "by_name": true, "tiers": 0, "callers": 1,
        "capacity": 1_000, "evictions": 0,
    });
    assert_eq!(limits.as_array().unwrap().last(), Some(&expected));
    let path = format!("/v1/limits/cl.throttle/keys/{key}");
    let set = ask(&server, &format!("PUT {path}/override")).token().json(r#"{"quota":"1/s"}"#);
    let check = format!(r#"{{"limit":"cl.throttle","key":"{key}"}}"#);
    let refused = [
        admin(&server, &format!("GET {path}")).await,
        set.send().await,
        ask(&server, "POST /v1/check").json(&check).send().await,
    ];
    for reply in refused {
        let is_clear = reply.detail().contains("its quota comes with each call");
        assert_eq!((reply.status, is_clear), (400, true), "{reply:?}");
    }
    let explain = ask(&server, "POST /v1/explain").token();
    let explained = explain.json(r#"{"request":{"path":"/","ip":"192.0.2.1"}}"#).send().await;
    assert!(!explained.body.contains("cl.throttle"), "no request meets it: {explained:?}");
    let metrics = ask(&server, "GET /metrics").send().await.body;
    assert!(
        metrics.contains("spillgate_requests_total{limit=\"cl.throttle\",outcome=\"denied\"} 1")
    );
    assert!(metrics.contains("spillgate_evictions_total{limit=\"cl.throttle\"} 0"), "{metrics}");
    assert_eq!(admin(&server, &format!("DELETE {path}")).await.status, 204);
    assert!(spend().await, "the key is full again");
}

#[tokio::test]
async fn lists_are_changed_while_requests_are_decided() {
    let server = Server::start().await;
    let request = r#"{"request":{"path":"/","ip":"203.0.113.7"}}"#;
    let changed = |reply: Reply| reply.json()["changed"].clone();
    let entry = "/v1/lists/block/203.0.113.0%2F24";
    assert_eq!(changed(admin(&server, &format!("PUT {entry}")).await), true);
    assert_eq!(changed(admin(&server, &format!("PUT {entry}")).await), false);
    assert_eq!(changed(admin(&server, "PUT /v1/lists/block/key:k%201").await), true);
    assert_eq!(check(&server, request).await["blocked"], true);
    let entries = admin(&server, "GET /v1/lists/block").await.json()["entries"].clone();
    assert_eq!(
        (&entries[0]["entry"], &entries[1]["entry"]),
        (&json!("203.0.113.0/24"), &json!("key:k 1"))
    );
    assert_eq!(changed(admin(&server, &format!("DELETE {entry}")).await), true);
    assert_eq!(changed(admin(&server, &format!("DELETE {entry}")).await), false);
    assert_eq!(check(&server, request).await["allowed"], true);
    assert_eq!(admin(&server, "GET /v1/lists/allow").await.json(), json!({ "entries": [] }));
}

#[tokio::test]
async fn a_policy_is_read_and_replaced_and_a_bad_one_is_refused_whole() {
    let server = Server::start().await;
    assert_eq!(admin(&server, "GET /v1/policy").await.body, POLICY);
    check(&server, r#"{"limit":"api","key":"user:1","cost":3}"#).await;
    let put = |text: &str| {
        let ask = ask(&server, "PUT /v1/policy").token().body("application/toml", text);
        async { ask.send().await }
    };
    for empty in ["", "\n \n"] {
        let reply = put(empty).await;
        assert_eq!((reply.status, reply.detail().contains("is empty")), (400, true), "{reply:?}");
        assert!(reply.detail().contains("\"limit = []\" for one without limits"), "{reply:?}");
    }
    let bad = put("[[limit]]\nname = 'api'\nqouta = '1/h'\n").await;
    assert_eq!(bad.status, 422);
    let problems = bad.json()["problems"].clone();
    assert_eq!(problems.as_array().unwrap().len(), 2, "{problems}");
    assert_eq!((&problems[1]["line"], &problems[1]["column"]), (&json!(3), &json!(1)));
    assert!(problems[1]["message"].as_str().unwrap().contains("did you mean \"quota\"?"));
    assert_eq!(admin(&server, "GET /v1/policy").await.body, POLICY, "the old one stays");

    let better = "[[limit]]\nname = 'api'\nquota = '1/h burst 10'\n[[limit]]\nname = 'new'\nper = 'ip'\nquota = '1/s burst 90'\n";
    let changes = put(better).await.json();
    assert_eq!((&changes["added"], &changes["restarted"]), (&json!(["new"]), &json!([])));
    assert_eq!(changes["removed"].as_array().unwrap().len(), 7);
    let changed = changes["changed"].as_array().unwrap();
    let quota = changed.iter().find(|change| change["key"] == "quota").unwrap();
    assert_eq!((&quota["limit"], &quota["to"]), (&json!("api"), &json!("1/h burst 10")));
    assert_eq!(put(better).await.json()["changed"], json!([]), "nothing changed");
    assert_eq!(admin(&server, "GET /v1/policy").await.body, better);
    let left = check(&server, r#"{"limit":"api","key":"user:1","cost":0}"#).await;
    assert_eq!((&left["max"], &left["remaining"]), (&json!(10), &json!(7)));
}

#[tokio::test]
async fn a_policy_with_settings_and_files_beside_its_own_goes_round() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("keys.txt"), "k1\n").unwrap();
    let server = Server::with(app().with_folder(folder.path())).await;
    let text = "[server]\nhttp = '127.0.0.1:1'\n[identity]\n\
        api-key = { header = 'x-api-key', accept = 'keys.txt' }\n\
        [[limit]]\nname = 'api'\nquota = '1/h burst 5'\n";
    let put = async |text: &str| {
        let ask = ask(&server, "PUT /v1/policy").token().body("application/toml", text);
        ask.send().await.status
    };
    assert_eq!(put(text).await, 200);
    assert_eq!(admin(&server, "GET /v1/policy").await.body, text);
    assert_eq!(put(&text.replace("keys.txt", "none.txt")).await, 422);
    assert_eq!(put(text).await, 200, "it is still there");
}

#[tokio::test]
async fn changes_leave_a_trace_without_secrets() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let file = Arc::new(log.reopen().unwrap());
    let lines = tracing_subscriber::fmt().json().with_writer(file).finish();
    let _logged = tracing::subscriber::set_default(lines);
    // As long as there is only one, other tests' threads, which have none, would decide for all
    // whether a line is worth writing.
    let _another = tracing::Dispatch::new(tracing_subscriber::registry());
    let server = Server::start().await;
    let key = "/v1/limits/api/keys/api-key:hush";
    let quota = ask(&server, &format!("PUT {key}/override")).token().json(r#"{"quota":"9/s"}"#);
    assert_eq!(quota.send().await.status, 204);
    admin(&server, &format!("DELETE {key}")).await;
    admin(&server, "PUT /v1/lists/block/key:hush").await;
    admin(&server, "PUT /v1/lists/block/key:hush").await;
    admin(&server, "PUT /v1/lists/block/key:hush?tll=60").await;
    admin(&server, "PUT /v1/lists/block/hush").await;
    admin(&server, "DELETE /v1/limits/hush/keys/user:1").await;
    admin(&server, "GET /v1/limits").await;
    ask(&server, "PUT /v1/policy").token().body("application/toml", "hush").send().await;
    ask(&server, "DELETE /v1/lists/block/key:hush").send().await;
    let log = std::fs::read_to_string(log.path()).unwrap();
    assert!(!log.contains("hush"), "{log}");
    let output: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let output: Vec<_> = output
        .iter()
        .map(|line| &line["fields"])
        .map(|output| {
            let text = |name: &str| output[name].as_str().unwrap_or_default();
            (text("operation"), text("of"), output["status"].as_u64().unwrap(), text("outcome"))
        })
        .collect();
    let expected = [
        ("set-override", "api", 204, "changed"),
        ("reset", "api", 204, "changed"),
        ("add-to-list", "block", 200, "changed"),
        ("add-to-list", "block", 200, "unchanged"),
        ("add-to-list", "", 400, "refused"),
        ("add-to-list", "", 422, "refused"),
        ("reset", "", 404, "refused"),
        ("replace-policy", "", 422, "refused"),
    ];
    assert_eq!(output, expected);
    for line in log.lines() {
        assert!(line.contains("\"changed\"") || !line.contains("changed by"), "{line}");
    }
    assert!(log.contains(r#""peer":"127.0.0.1""#), "{log}");
}

#[tokio::test]
async fn a_policy_that_is_put_counts_as_a_reload() {
    let server = Server::start().await;
    server.app.readiness().reload_failed("policy.toml:3:1: unknown key");
    let put = async |text: &str| {
        ask(&server, "PUT /v1/policy").token().body("application/toml", text).send().await.status
    };
    assert_eq!(put("nonsense").await, 422);
    assert_eq!(server.app.readiness().reloads(), (0, 2));
    assert!(server.app.readiness().reload_failure().is_some(), "the file is still wrong");
    assert_eq!(put(POLICY).await, 200);
    assert_eq!(server.app.readiness().reloads(), (1, 2));
    assert_eq!(server.app.readiness().reload_failure(), None);
}

#[tokio::test]
async fn a_request_is_explained_for_programs_and_for_people() {
    let server = Server::start().await;
    let body = r#"{"request":{"path":"/api/x","ip":"203.0.113.7"}}"#;
    let explain = || ask(&server, "POST /v1/explain").token().json(body);
    let explained = explain().send().await.json();
    assert_eq!(
        (&explained["answer"], &explained["caller"]),
        (&json!("allowed"), &json!("ip:203.0.113.7"))
    );
    assert_eq!(explained["limits"][0]["state"]["retry-after"], json!(0.0));
    assert_eq!(explained["limits"][1]["not-met"], "another path");
    let text = explain().header("accept", "text/plain").send().await.body;
    assert!(text.starts_with("answer   allowed\n"), "{text}");
    let looked = check(&server, r#"{"limit":"api","key":"203.0.113.7","cost":0}"#).await;
    assert_eq!(looked["remaining"], 5, "explaining spends nothing");
}

#[tokio::test]
async fn the_descriptors_of_a_call_are_explained_or_refused_as_those_of_envoy() {
    let server = Server::start().await;
    let explain =
        async |body: &str| ask(&server, "POST /v1/explain").token().json(body).send().await;
    let entries = r#""entries":[{"key":"path","value":"/hush"}]"#;
    let reply = explain(&format!(r#"{{"domain":"edge","descriptors":[{{{entries}}}]}}"#)).await;
    let explained = reply.json();
    assert_eq!((reply.status, &explained["answer"]), (200, &json!("allowed")), "{reply:?}");
    assert_eq!(explained["descriptors"][0]["keys"], json!(["path"]));
    assert_eq!(explained["descriptors"][0]["kind"], "unknown");
    assert!(!reply.body.contains("hush"), "{reply:?}");
    let limit = r#""limit":{"requests_per_unit":5,"unit":"MINUTE"}"#;
    for (body, status, expected) in [
        (r#"{"domain":"e","descriptors":[]}"#.to_owned(), 400, "must not be empty"),
        (r#"{"domain":"","descriptors":[{"entries":[]}]}"#.to_owned(), 400, "must not be empty"),
        (r#"{"domain":"e"}"#.to_owned(), 400, "is neither or both"),
        (r#"{}"#.to_owned(), 400, "is neither or both"),
        (r#"{"request":{"path":"/"},"domain":"e"}"#.to_owned(), 400, "is neither or both"),
        (r#"{"request":{"path":"/"},"hits_addend":1}"#.to_owned(), 400, "is neither or both"),
        (format!(r#"{{"domain":"e","descriptors":[{{{entries},"hits":1}}]}}"#), 400, "hits"),
        (
            format!(r#"{{"domain":"e","descriptors":[{{{entries}}}],"hits_addend":4294967296}}"#),
            400,
            "at most 4294967295",
        ),
        (
            format!(
                r#"{{"domain":"e","descriptors":[{{{entries},"limit":{{"requests_per_unit":1,"unit":"minute"}}}}]}}"#
            ),
            400,
            "one of SECOND, MINUTE",
        ),
        (
            format!(
                r#"{{"domain":"e","descriptors":[{}]}}"#,
                vec![format!("{{{entries}}}"); 257].join(",")
            ),
            400,
            "at most 256 per call",
        ),
        (format!(r#"{{"domain":"e","descriptors":[{{{entries},{limit}}}]}}"#), 422, "no room"),
    ] {
        let reply = explain(&body).await;
        assert_eq!(reply.status, status, "{body}: {reply:?}");
        assert!(reply.detail().contains(expected), "{body}: {reply:?}");
    }
}

#[tokio::test]
async fn readiness_tells_of_the_life_of_a_server() {
    let server = Server::start().await;
    let ready = || async { ask(&server, "GET /readyz").send().await };
    let expected = json!({
        "status": "ready",
        "reload_failure": null,
        "outage": null,
        "store_warning": null,
        "mismatch": null,
    });
    assert_eq!(ready().await.json(), expected);
    server.app.readiness().reload_failed("policy.toml:3:1: unknown key");
    let reply = ready().await;
    assert_eq!(
        (reply.status, &reply.json()["reload_failure"]),
        (200, &json!("policy.toml:3:1: unknown key"))
    );
    let metrics = ask(&server, "GET /metrics").send().await.body;
    assert!(metrics.contains("\nspillgate_reload_failed 1\n"), "{metrics}");
    server.app.readiness().reloaded();
    assert_eq!(ready().await.json()["reload_failure"], Value::Null);
    server.app.readiness().drain();
    let reply = ready().await;
    assert_eq!((reply.status, &reply.json()["status"]), (503, &json!("draining")));
    assert_eq!(ask(&server, "GET /healthz").send().await.status, 200);
    let metrics = ask(&server, "GET /metrics").send().await.body;
    assert!(metrics.contains(r#"spillgate_reloads_total{outcome="refused"} 1"#), "{metrics}");
    assert!(metrics.contains("\nspillgate_ready 0\n"), "{metrics}");
}

#[tokio::test]
async fn strangers_are_told_that_a_reload_was_refused_and_not_what_stands_in_the_file() {
    let access = Access::network(token().unwrap());
    let server = Server::with(app().with_access(access)).await;
    server.app.readiness().reload_failed("keys.toml:3:1: unknown key\nkeys.toml:4:1: no quota");
    let stranger = ask(&server, "GET /readyz").send().await;
    let output = json!("2 problems; send the token for details");
    assert_eq!((stranger.status, &stranger.json()["reload_failure"]), (200, &output));
    let known = ask(&server, "GET /readyz").token().send().await;
    assert!(known.body.contains("keys.toml:3:1"), "{}", known.body);
}
