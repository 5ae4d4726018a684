use std::net::SocketAddr;
use std::process::Stdio;

use spillgate_testing::{Port, program};

use super::attempts::try_all;
use super::{PAGE, Proxy, hangs_up};
use crate::http::client::check;
use crate::http::server::Server;

/// The configuration that the documentation recommends.
const CONFIGURATION: &str = include_str!("../../../../../deploy/nginx/spillgate.conf");

/// With the line that lets requests pass while Spillgate cannot be reached.
fn fail_open() -> String {
    let line = "error_page 502 = @spillgate_unreachable;";
    assert!(CONFIGURATION.contains(&format!("# {line}")));
    for line in [line, r#"if ($upstream_connect_time ~ "-$") {"#, "proxy_connect_timeout 1s;"] {
        assert!(PAGE.contains(line) && CONFIGURATION.contains(line), "{line}");
    }
    CONFIGURATION.replace(&format!("# {line}"), line)
}

async fn start(spillgate: SocketAddr, configuration: &str) -> Proxy {
    Proxy::start(spillgate, |places, folder| {
        let configuration = configuration
            .replace("127.0.0.1:8390", &places.spillgate.to_string())
            .replace("127.0.0.1:3000", &places.service.to_string())
            .replace("127.0.0.1:8080", &places.clients.to_string());
        let whole = format!(
            "daemon off;\nmaster_process off;\npid nginx.pid;\nevents {{}}\nhttp {{\naccess_log off;\n\
             client_body_temp_path body;\nproxy_temp_path proxy;\nfastcgi_temp_path fastcgi;\n\
             uwsgi_temp_path uwsgi;\nscgi_temp_path scgi;\n{configuration}}}\n"
        );
        std::fs::write(folder.join("nginx.conf"), whole).unwrap();
        let mut nginx = program("nginx");
        nginx.args(["-e", "error.log", "-c", "nginx.conf", "-p"]).arg(folder).stderr(Stdio::null());
        nginx
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nginx_lets_a_burst_through_and_answers_429_with_when_to_retry() {
    let server = Server::start().await;
    let nginx = start(server.address, CONFIGURATION).await;
    for remaining in (0..5).rev() {
        let reply = nginx.ask("GET /api/users", "").await;
        assert_eq!((reply.status, reply.body.as_str()), (200, "served"), "{}", nginx.log());
        assert!(reply.header("ratelimit").unwrap().starts_with(&format!("\"api\";r={remaining};")));
        assert_eq!(reply.header("retry-after"), None);
    }
    let reply = nginx.ask("GET /api/users", "").await;
    assert_eq!(reply.status, 429, "{}", nginx.log());
    assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() > 3500, "{reply:?}");
    assert!(reply.header("ratelimit-policy").unwrap().starts_with("\"api\";q=5;"), "{reply:?}");
    assert_eq!(nginx.served(), 5);
    // Counted for the client of nginx, not for nginx: here they are the same address.
    let left = check(&server, r#"{"limit":"api","key":"127.0.0.1","cost":0}"#).await;
    assert_eq!(left["remaining"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_client_of_nginx_escapes_by_its_headers() {
    let server = Server::start().await;
    let nginx = start(server.address, CONFIGURATION).await;
    for _ in 0..5 {
        assert_eq!(nginx.ask("GET /api/users", "").await.status, 200);
    }
    for headers in [
        "x-real-ip: 8.8.8.8\r\n",
        "x-forwarded-for: 8.8.8.8\r\n",
        "forwarded: for=8.8.8.8\r\n",
        "x-original-uri: /free\r\n",
        "x-original-method: PUT\r\nx-original-host: other\r\n",
        "x-forwarded-uri: /free\r\nx-forwarded-method: GET\r\nx-forwarded-host: h\r\n",
        "x-original-uri: /free\r\nx-original-uri: /free\r\n",
        "authorization: Bearer x\r\n",
        "content-type: application/grpc\r\n",
        "origin: https://evil.example\r\n",
    ] {
        assert_eq!(nginx.ask("GET /api/users", headers).await.status, 429, "{headers}");
    }
    for line in ["HEAD /api/users", "POST /api/users", "GET /api/users?/free", "GET //api/./users"]
    {
        assert_eq!(nginx.ask(line, "content-length: 0\r\n").await.status, 429, "{line}");
    }
    let grpc = "content-length: 0\r\ncontent-type: application/grpc\r\n";
    assert_eq!(nginx.ask("POST /api/users", grpc).await.status, 429);
    assert_eq!(nginx.ask("GET /free", "").await.status, 200, "no limit is for it");
    assert_eq!(nginx.served(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_trusts_nginx_believes_nothing_of_its_clients() {
    let server = Server::start().await;
    let nginx = start(server.address, CONFIGURATION).await;
    for header in ["x-forwarded-for", "forwarded", "x-real-ip"] {
        let identity = format!(
            "[identity]\ntrusted-proxies = ['127.0.0.1']\nclient-ip = ['{header}']\n\
             [[limit]]\nname = '{header}'\nquota = '1/h burst 2'\n"
        );
        server.app.replace(&identity).unwrap();
        let statuses = |name: &'static str| {
            let lie = if name == "forwarded" { "for=8.8.8" } else { "8.8.8" };
            let lies = (1..=3).map(move |n| format!("{name}: {lie}.{n}\r\n"));
            let nginx = &nginx;
            async move {
                let mut statuses = Vec::new();
                for lie in lies {
                    statuses.push(nginx.ask("GET /", &lie).await.status);
                }
                statuses
            }
        };
        assert_eq!(statuses(header).await, [200, 200, 429], "{header}: {}", nginx.log());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nginx_tells_a_blocked_caller_403_and_without_spillgate_does_as_configured() {
    let server = Server::start().await;
    server
        .app
        .gate()
        .list(spillgate_policy::ListKind::Block, "127.0.0.1", spillgate_policy::Terms::permanent())
        .await
        .unwrap();
    let nginx = start(server.address, CONFIGURATION).await;
    assert_eq!(nginx.ask("GET /api/users", "").await.status, 403, "{}", nginx.log());
    drop(nginx);
    let nobody = Port::reserve();
    let nginx = start(nobody.address(), CONFIGURATION).await;
    assert_eq!(nginx.ask("GET /api/users", "").await.status, 500);
    assert_eq!(nginx.served(), 0);
    drop(nginx);
    let nginx = start(nobody.address(), &fail_open()).await;
    for line in ["GET /api/users", "POST /api/users"] {
        let reply = nginx.ask(line, "content-length: 0\r\n").await;
        assert_eq!(reply.body, "served", "{}", nginx.log());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nginx_that_fails_open_lets_no_client_pass_that_provokes_a_refusal() {
    let server = Server::start().await;
    let nginx = start(server.address, &fail_open()).await;
    try_all(&nginx, 5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_client_provokes_an_answer_that_nginx_takes_for_a_failure() {
    let server = Server::start().await;
    // As it must not be configured, and is by some.
    let careless = CONFIGURATION
        .replace("error_page 403 =", "error_page 500 = @open;\n        error_page 403 =")
        .replace(
            "location @spillgate_refused",
            "location @open { proxy_pass http://service; }\n    location @spillgate_refused",
        );
    let nginx = start(server.address, &careless).await;
    try_all(&nginx, 5).await;
    let nobody = Port::reserve();
    let alone = start(nobody.address(), &careless).await;
    assert_eq!(alone.ask("GET /api/users", "").await.body, "served", "it does open");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nginx_that_fails_open_does_not_if_spillgate_hangs_up_without_an_answer() {
    let nginx = start(hangs_up().await, &fail_open()).await;
    assert_eq!(nginx.ask("GET /api/users", "").await.status, 500, "{}", nginx.log());
    assert_eq!(nginx.served(), 0);
}
