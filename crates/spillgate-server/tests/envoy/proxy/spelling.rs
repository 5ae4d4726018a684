//! Paths that are spelled otherwise, with the configuration that is recommended.

use super::instance::Envoy;
use super::requests::PATIENT;
use crate::envoy::client::start;

/// By the year, so that no window ends while a test runs.
const RULES: &str = "\
domain: edge
descriptors:
- {key: remote_address, rate_limit: {unit: year, requests_per_unit: 100}}
- key: route
  value: login
  descriptors:
  - {key: remote_address, rate_limit: {unit: year, requests_per_unit: 1}}
- {key: route, value: health, rate_limit: {unlimited: true}}
- key: route
  value: search
  descriptors:
  - {key: remote_address, rate_limit: {unit: year, requests_per_unit: 1}}
";

/// How `/login` may be spelled, and what each is answered once it is refused.
const SPELLINGS: [(u16, &[&str]); 3] = [
    (
        429,
        &[
            "/login",
            "/login/",
            "/login//",
            "/login/x",
            "/LOGIN",
            "/Login",
            "/logiN/",
            "/login%20",
            "/login%09/",
            "/LOGIN%0D",
            "/login?x",
            "/login?",
            "/login/?x=1",
            "/login?/../x",
            "/login;x",
            "/login;",
            "/login;x=1/",
            "/login;x/y",
            "/LOGIN;x?y",
            "/login%3bx",
            "/LOGIN%3Bx",
            "//login",
            "///LOGIN//",
            "/./login",
            "/login/.",
            "/login/../login",
            "/x/../login",
            "/x/%2e%2E/login",
            "/%2e/login",
            "/%6cogin",
            "/l%6Fgi%6e",
            "/%4cOGIN",
            "/;/login",
            "/;x=1/login",
            "/;x/;y/login;z",
            "/%3b/login",
            "/login\\",
            "/\\login",
            "http://other.example/LOGIN",
        ],
    ),
    // To a path with a slash, which is refused in turn.
    (307, &["/login%2f", "/login%2F", "/login%5c", "/%2flogin", "/%2FLOGIN%2f", "/x%2f..%2flogin"]),
    (400, &["/x/%2e%2e;/login", "/x/%2e%2e%3b/login", "/login#x", "login"]),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_is_not_escaped_by_spelling_its_path_otherwise() {
    let (_home, server) = start("", &[("edge.yaml", RULES)], &[]);
    let envoy = Envoy::start_with(server.grpc, &[PATIENT]).await;
    for route in ["login", "search"] {
        let served = envoy.served();
        assert_eq!(envoy.get(&format!("/{route}")).await.status, 200);
        for (status, paths) in SPELLINGS {
            for path in paths.iter().map(|path| spelled(path, route)) {
                let reply = envoy.get(&path).await;
                assert_eq!(reply.status, status, "{path}");
                if let Some(location) = reply.header("location") {
                    assert_eq!(envoy.get(location).await.status, 429, "{path} {location}");
                }
            }
        }
        // Dot segments with parameters mean this or that: they are refused either way.
        for path in ["/x/..;/login", "/x/..;y/login", "/.;/login"] {
            let status = envoy.get(&spelled(path, route)).await.status;
            assert!([400, 429].contains(&status), "{path} {status}");
        }
        assert_eq!(envoy.served(), served + 1);
    }
}

/// The spelling of another route, as long as that of a login.
fn spelled(path: &str, route: &str) -> String {
    match route {
        "login" => path.to_owned(),
        _ => {
            let path = path.replace("%6cogin", "%73earch").replace("l%6Fgi%6e", "s%65arc%68");
            let path = path.replace("%4cOGIN", "%53EARCH").replace("logiN", "searcH");
            let path = path.replace("login", "search").replace("LOGIN", "SEARCH");
            path.replace("Login", "Search")
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_is_not_escaped_by_another_method() {
    let (_home, server) = start("", &[("edge.yaml", RULES)], &[]);
    let envoy = Envoy::start_with(server.grpc, &[PATIENT]).await;
    assert_eq!(envoy.ask("POST /login").await.status, 200);
    for (method, status) in
        [("GET", 429), ("HEAD", 429), ("PUT", 429), ("OPTIONS", 429), ("get", 400), ("Post", 400)]
    {
        assert_eq!(envoy.ask(&format!("{method} /login")).await.status, status, "{method}");
    }
    assert_eq!(envoy.served(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_path_that_has_no_limit_passes_for_it() {
    let rules = RULES.replace("requests_per_unit: 100}", "requests_per_unit: 1}");
    let (_home, server) = start("", &[("edge.yaml", &rules)], &[]);
    let envoy = Envoy::start_with(server.grpc, &[PATIENT]).await;
    assert_eq!(envoy.get("/").await.status, 200);
    for path in ["/", "/HEALTH", "/health/", "/health/x", "/health;x", "/health%3bx", "/x/health"] {
        assert_eq!(envoy.get(path).await.status, 429, "{path}");
    }
    for path in ["/health", "/health?x", "//health", "/x/../health", "/%68ealth"] {
        assert_eq!(envoy.get(path).await.status, 200, "{path}");
    }
}
