//! Ways around a limit, by another spelling of the request or of its caller.

use std::sync::Arc;

use spillgate_policy::{Gate, Policy};
use spillgate_server::{Access, AnyStore, App};

use super::client::{Reply, ask, check, post};
use super::server::{Server, token};

async fn server(policy: &str) -> Server {
    let gate = Gate::with_store(Policy::from_toml(policy).unwrap(), AnyStore::default());
    let gate = Arc::new(gate.unwrap());
    Server::with(App::new(gate, policy).with_access(Access::loopback(token()))).await
}

/// Asks about a request as nginx does.
async fn auth(server: &Server, method: &str, path: &str, host: &str) -> Reply {
    let asks = ask(server, "GET /auth?deny=403").header("x-original-uri", path);
    let asks = asks.header("x-original-method", method).header("x-real-ip", "203.0.113.7");
    asks.header("x-original-host", host).send().await
}

#[tokio::test]
async fn no_spelling_of_a_request_escapes_its_limit_at_auth() {
    let policy = "[[limit]]\nname = 'login'\nmatch = { method = 'POST', path = '/login' }\n\
                  quota = '1/h burst 1'\n";
    let server = server(policy).await;
    assert_eq!(auth(&server, "post", "/LOGIN;x=1", "h").await.status, 200);
    for method in ["POST", "post", "Post"] {
        for path in ["/login", "/Login/", "/login%2F?a", "/x/..;/login", "/login%20", "//login"] {
            let reply = auth(&server, method, path, "h").await;
            assert_eq!(reply.status, 403, "{method} {path}: {reply:?}");
            assert_eq!(reply.header("x-spillgate-status"), Some("429"), "{method} {path}");
        }
    }
    assert_eq!(auth(&server, "get", "/login", "h").await.status, 200);
}

#[tokio::test]
async fn a_request_without_a_host_is_refused_where_limits_are_for_hosts() {
    let policy = "[[limit]]\nname = 'api'\nmatch = { host = 'api.example.com' }\n\
                  quota = '1/h burst 1'\n";
    let server = server(policy).await;
    for host in ["", "a b", "[::1"] {
        let reply = auth(&server, "GET", "/", host).await;
        assert_eq!(reply.status, 403, "{host:?}: {reply:?}");
        assert_eq!(reply.header("x-spillgate-status"), Some("400"), "{host:?}");
        let body = format!(r#"{{"request":{{"path":"/","ip":"203.0.113.7","host":"{host}"}}}}"#);
        let reply = post(&server, "/v1/check", &body).await;
        assert_eq!(reply.status, 400, "{host:?}: {reply:?}");
    }
    let reply = post(&server, "/v1/check", r#"{"request":{"path":"/"}}"#).await;
    assert!(reply.status == 400 && reply.detail().contains("limits for hosts"), "{reply:?}");
    assert_eq!(auth(&server, "GET", "/", "api.example.com").await.status, 200);
    assert_eq!(auth(&server, "GET", "/", "API.example.com:80").await.status, 403);
}

#[tokio::test]
async fn limits_by_name_are_met_by_no_request_and_callers_have_one_spelling() {
    let policy = "[[limit]]\nname = 'login'\nby-name = true\nper = 'user'\nquota = '1/h burst 2'\n\
                  [[limit]]\nname = 'api'\nby-name = true\nper = 'user'\nquota = '100/s'\n";
    let server = server(policy).await;
    for _ in 0..9 {
        assert_eq!(auth(&server, "POST", "/login", "h").await.status, 200);
        let answer = check(&server, r#"{"request":{"path":"/login"}}"#).await;
        assert_eq!((&answer["allowed"], &answer["limit"]), (&true.into(), &().into()));
    }
    for (limit, allowed) in [("login", true), ("login", true), ("login", false), ("api", true)] {
        let body = format!(r#"{{"limit":"{limit}","key":"42"}}"#);
        assert_eq!(check(&server, &body).await["allowed"], allowed, "{limit}");
    }
    let reply = post(&server, "/v1/check", r#"{"limit":"login","key":"user:42"}"#).await;
    assert!(reply.status == 400 && reply.detail().contains(r#""42" for "user:42""#), "{reply:?}");
}

#[tokio::test]
async fn a_fragment_and_the_host_of_a_whole_url_are_looked_at() {
    let policy = "[[limit]]\nname = 'login'\nmatch = { path = '/login' }\nquota = '1/h burst 1'\n";
    let server = server(policy).await;
    for path in ["/login#x", "/#/../login"] {
        let reply = auth(&server, "GET", path, "h").await;
        assert_eq!(reply.status, 403, "{path}: {reply:?}");
        let body = format!(r#"{{"request":{{"path":"{path}"}}}}"#);
        assert_eq!(post(&server, "/v1/check", &body).await.status, 400, "{path}");
    }
    let body = r#"{"limit":"login","key":"203.0.113.7"}"#;
    for (host, status) in [("evil.test", 421), ("localhost", 200)] {
        let asks = ask(&server, &format!("POST http://{host}/v1/check")).json(body);
        assert_eq!(asks.send().await.status, status, "{host}");
    }
}
