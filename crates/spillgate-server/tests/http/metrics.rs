use std::io::Write;
use std::process::Stdio;

use spillgate_testing::program;

use super::client::{Reply, ask, check, post, raw};
use super::server::Server;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Lets something happen of every kind that is counted.
async fn traffic(server: &Server) {
    for body in [
        r#"{"limit":"api","key":"user:1"}"#,
        r#"{"limit":"once","key":"user:1","cost":2}"#,
        r#"{"limit":"once","key":"user:1"}"#,
        r#"{"limit":"trial","key":"user:1","cost":2}"#,
        r#"{"request":{"path":"/elsewhere"}}"#,
    ] {
        check(server, body).await;
    }
    let reserved = post(server, "/v1/reserve", r#"{"limit":"api","key":"user:2","cost":5}"#).await;
    let reserved = reserved.json()["reservation"].clone();
    let settle = format!(r#"{{"reservation":{reserved},"cost":18446744073709551615}}"#);
    assert_eq!(post(server, "/v1/settle", &settle).await.status, 200);
    server
        .app
        .gate()
        .list(spillgate_policy::ListKind::Block, "192.0.2.9", spillgate_policy::Terms::permanent())
        .await
        .unwrap();
    check(server, r#"{"request":{"path":"/","ip":"192.0.2.9"}}"#).await;
    server.app.readiness().reload_failed("line 1: \"quoted\" \\ and more");
    ask(server, "GET /nowhere").send().await;
    raw(server, b"garbage\r\n\r\n").await;
}

async fn metrics(server: &Server, accept: &str) -> Reply {
    ask(server, "GET /metrics").header("accept", accept).send().await
}

#[tokio::test]
async fn metrics_are_in_the_format_that_is_accepted() {
    let server = Server::start().await;
    for (accept, content_type) in [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/plain", TEXT),
        ("application/openmetrics-text", OPEN_METRICS),
        ("application/openmetrics-text; q=0.1, text/plain; q=0.2", TEXT),
        ("text/plain; q=0.1, application/openmetrics-text; version=1.0.0; q=0.2", OPEN_METRICS),
    ] {
        let reply = metrics(&server, accept).await;
        assert_eq!(reply.header("content-type"), Some(content_type), "{accept}");
        assert_eq!(reply.header("vary"), Some("accept"));
        assert_eq!(reply.body.ends_with("\n# EOF\n"), content_type == OPEN_METRICS, "{accept}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promtool_finds_nothing_wrong_with_the_text_format() {
    let server = Server::start().await;
    traffic(&server).await;
    let text = metrics(&server, "").await.body;
    for name in ["_requests_total{", "_uncharged_total{", "_build_info{", "_seconds_bucket{"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    let mut promtool = program("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped());
    let mut promtool = promtool.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let checked = promtool.wait_with_output().unwrap();
    let message = format!("{checked:?}");
    assert!(checked.status.success() && checked.stdout.is_empty(), "{message}\n{text}");
    assert!(checked.stderr.is_empty(), "{message}\n{text}");
}

#[tokio::test]
async fn openmetrics_has_families_whose_samples_bear_their_names() {
    let server = Server::start().await;
    traffic(&server).await;
    let text = metrics(&server, "application/openmetrics-text").await.body;
    let mut family = ("", "");
    for line in text.lines() {
        if let Some(message) = line.strip_prefix("# TYPE ") {
            family = message.split_once(' ').unwrap();
            assert!(!family.0.ends_with("_total"), "{line}");
        }
        if line.starts_with('#') {
            continue;
        }
        let name = line.split(['{', ' ']).next().unwrap();
        let suffix = name.strip_prefix(family.0).unwrap_or_else(|| panic!("{line}"));
        let known: &[&str] = match family.1 {
            "counter" => &["_total"],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        assert!(known.contains(&suffix), "{line} of {family:?}");
    }
}
