use spillgate_server::Access;
use spillgate_testing::needs;

use super::client::ask;
use super::server::{POLICY, Server, TOKEN, app, token};
use crate::common::program::run;

/// A request of curl: method, path, body and its type, the status, and what it must say.
type Case = (&'static str, &'static str, &'static str, u16, &'static str);

const CASES: &[Case] = &[
    ("POST", "/v1/check", r#"{"limit":"api","key":"203.0.113.7"}"#, 200, r#""remaining":4"#),
    ("POST", "/v1/reserve", r#"{"limit":"api","key":"203.0.113.7"}"#, 200, r#""reservation":""#),
    ("POST", "/v1/settle", r#"{"reservation":"0","cost":1}"#, 404, "unknown reservation"),
    ("GET", "/v1/limits", "", 200, r#""name":"api""#),
    ("GET", "/v1/limits/api/keys/203.0.113.7", "", 200, r#""remaining":3"#),
    ("PUT", "/v1/limits/api/keys/203.0.113.7/override", r#"{"quota":"1/h burst 9"}"#, 204, ""),
    ("GET", "/v1/overrides", "", 200, r#""quota":"1/h burst 9""#),
    ("GET", "/v1/limits/api/overrides", "", 200, r#""key":["203.0.113.7"]"#),
    ("DELETE", "/v1/limits/api/keys/203.0.113.7/override", "", 204, ""),
    ("DELETE", "/v1/limits/api/keys/203.0.113.7", "", 204, ""),
    ("PUT", "/v1/lists/block/192.0.2.0%2F24", "", 200, r#"{"changed":true}"#),
    ("GET", "/v1/lists/block", "", 200, r#"[{"entry":"192.0.2.0/24","#),
    ("GET", "/v1/lists/block/192.0.2.0%2F24", "", 200, r#""source":"run-time""#),
    ("DELETE", "/v1/lists/block/192.0.2.0%2F24", "", 200, r#"{"changed":true}"#),
    ("POST", "/v1/explain", r#"{"request":{"path":"/"}}"#, 200, r#""answer":"allowed""#),
    ("GET", "/v1/policy", "", 200, "[[limit]]"),
    ("PUT", "/v1/policy", "nonsense", 422, "line 1, column"),
    ("GET", "/auth", "", 400, "x-forwarded-uri"),
    ("GET", "/v1/openapi.json", "", 200, r#""openapi":"3.1.0""#),
    ("GET", "/metrics", "", 200, "# TYPE spillgate_ready gauge"),
    ("GET", "/healthz", "", 200, "ok"),
    ("GET", "/readyz", "", 200, r#""status":"ready""#),
    ("GET", "/", "", 200, "Spillgate"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_asks_every_route() {
    let server = Server::start().await;
    let token = format!("authorization: Bearer {TOKEN}");
    for (method, path, body, status, says) in CASES.iter().copied() {
        let is_policy = path == "/v1/policy";
        let content_type = if is_policy {
            "content-type: application/toml"
        } else {
            "content-type: application/json"
        };
        let url = server.url(path);
        let mut arguments = vec!["-sS", "-X", method, "-H", &token, "-w", "\n%{http_code}", &url];
        if !body.is_empty() {
            arguments.extend(["-H", content_type, "--data-binary", body]);
        }
        let printed = run("curl", &arguments).await;
        let (said, code) = printed.rsplit_once('\n').unwrap();
        assert_eq!(code, status.to_string(), "{method} {path}: {said}");
        assert!(said.contains(says), "{method} {path}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_home_page_says_to_try_works() {
    needs(&["curl"]);
    let loopback = Server::start().await;
    let network = Server::with(app().with_access(Access::network(token().unwrap()))).await;
    for policy in [
        POLICY,
        "[[limit]]\nname = 'u'\nby-name = true\nper = 'user'\nquota = '1/h burst 9'\n",
        "[[limit]]\nname = 'k'\nby-name = true\nper = 'api-key'\nquota = '1/h burst 9'\n",
        "[[limit]]\nname = 'all'\nper = 'global'\nquota = '1/h burst 9'\n",
        "[[limit]]\nname = 'two'\nby-name = true\nper = ['ip', 'user']\nquota = '1/h burst 9'\n",
        "limit = []",
    ] {
        for server in [&loopback, &network] {
            server.app.replace(policy).unwrap();
            let page = ask(server, "GET /").token().send().await.body;
            assert!(page.contains(&format!("http://{}/v1/check", server.address)), "{page}");
            let (_, command) = page.split_once("Try:").unwrap();
            let command = format!("SPILLGATE_TOKEN={TOKEN}; {}", command.trim());
            let said = run("bash", &["-c", &command.replace("curl ", "curl -sS ")]).await;
            assert!(said.starts_with("{\"allowed\":true,"), "{page}: {said}");
        }
    }
    let named = ask(&loopback, "GET /").header("host", "LocalHost").send().await.body;
    assert!(named.contains("http://LocalHost/v1/check"), "{named}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_a_burst_passes_under_the_load_of_wrk() {
    // A busy machine needs more time to answer more requests than may pass.
    for seconds in [1, 4, 16, 64] {
        let all = burst_under_wrk(seconds).await;
        if all > 2000 {
            return;
        }
    }
    panic!("too few requests came");
}

/// Asks for so long. Tells how often it asked, of which a burst has passed.
async fn burst_under_wrk(seconds: u32) -> u64 {
    let server = Server::start().await;
    let url = server.url("/auth");
    let duration = format!("{seconds}s");
    let headers = [
        "x-original-uri: /many",
        "x-original-method: GET",
        "x-original-host: h",
        "x-real-ip: 192.0.2.1",
    ];
    let mut arguments = vec!["-d", &duration, "-c", "16", "-t", "2"];
    headers.iter().for_each(|header| arguments.extend(["-H", header]));
    arguments.push(&url);
    let report = run("wrk", &arguments).await;
    let number = |end: &str| {
        let line =
            report.lines().find(|line| line.contains(end)).unwrap_or_else(|| panic!("{report}"));
        let word = line
            .split(' ')
            .filter(|word| !word.is_empty())
            .find_map(|word| word.parse::<u64>().ok());
        word.unwrap_or_else(|| panic!("{line}"))
    };
    let all = number("requests in");
    if all <= 2000 {
        return all;
    }
    assert_eq!(all - number("Non-2xx or 3xx responses"), 1000, "{report}");
    let metrics = ask(&server, "GET /metrics").send().await.body;
    assert!(
        metrics.contains(r#"spillgate_requests_total{limit="many",outcome="allowed"} 1000"#),
        "{metrics}"
    );
    all
}
