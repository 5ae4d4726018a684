use std::fs::File;
use std::net::SocketAddr;
use std::process::Stdio;

use spillgate_testing::{Port, program};

use super::attempts::try_all;
use super::{PAGE, Proxy, hangs_up};
use crate::http::client::check;
use crate::http::server::Server;

/// The configuration that the documentation recommends.
const CONFIGURATION: &str = include_str!("../../../../../deploy/caddy/Caddyfile");

/// With the lines that let requests pass while Spillgate cannot be reached.
fn fail_open() -> String {
    let (before, open) = CONFIGURATION.split_once("\t# handle_errors {").unwrap();
    for line in open.lines().filter(|line| line.contains("unreachable")) {
        assert!(PAGE.contains(line.trim_start_matches(['\t', '#'])), "{line}");
    }
    format!("{before}\thandle_errors {{{}", open.replace("\t# ", "\t").replace("\t#", "\t"))
}

async fn start(spillgate: SocketAddr) -> Proxy {
    start_with(spillgate, CONFIGURATION).await
}

async fn start_with(spillgate: SocketAddr, configuration: &str) -> Proxy {
    Proxy::start(spillgate, |places, folder| {
        let port = places.clients.port();
        let site = configuration
            .replace("127.0.0.1:8390", &places.spillgate.to_string())
            .replace("127.0.0.1:3000", &places.service.to_string())
            // For every host, without the certificate that Caddy would ask for.
            .replace("example.com {", &format!("http://:{port} {{\n\tbind 127.0.0.1"));
        let whole = format!("{{\n\tadmin off\n\tauto_https off\n}}\n{site}");
        std::fs::write(folder.join("Caddyfile"), whole).unwrap();
        let mut caddy = program("caddy");
        caddy.args(["run", "--config", "Caddyfile"]).current_dir(folder);
        caddy.env("HOME", folder).env_remove("XDG_DATA_HOME").env_remove("XDG_CONFIG_HOME");
        caddy.stderr(Stdio::from(File::create(folder.join("error.log")).unwrap()));
        caddy
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caddy_lets_a_burst_through_and_passes_on_429_with_when_to_retry() {
    let server = Server::start().await;
    let caddy = start(server.address).await;
    for remaining in (0..5).rev() {
        let reply = caddy.ask("GET /api/users", "").await;
        assert_eq!((reply.status, reply.body.as_str()), (200, "served"), "{}", caddy.log());
        let message = reply.header("ratelimit").unwrap_or_default();
        assert!(message.starts_with(&format!("\"api\";r={remaining};")), "{reply:?}");
        assert_eq!(reply.header("retry-after"), None);
    }
    let reply = caddy.ask("GET /api/users", "").await;
    assert_eq!(reply.status, 429, "{}", caddy.log());
    assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() > 3500, "{reply:?}");
    assert!(reply.header("ratelimit-policy").unwrap().starts_with("\"api\";q=5;"), "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("application/problem+json"));
    assert_eq!(caddy.served(), 5);
    // Counted for the client of Caddy, not for Caddy: here they are the same address.
    let left = check(&server, r#"{"limit":"api","key":"127.0.0.1","cost":0}"#).await;
    assert_eq!(left["remaining"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_client_of_caddy_escapes_by_its_headers() {
    let server = Server::start().await;
    let caddy = start(server.address).await;
    for _ in 0..5 {
        assert_eq!(caddy.ask("GET /api/users", "").await.status, 200);
    }
    for headers in [
        "x-real-ip: 8.8.8.8\r\n",
        "x-forwarded-for: 8.8.8.8\r\n",
        "forwarded: for=8.8.8.8\r\n",
        "x-forwarded-uri: /free\r\nx-forwarded-method: GET\r\nx-forwarded-host: h\r\n",
        "x-forwarded-uri: /free\r\nx-forwarded-uri: /free\r\n",
        "authorization: Bearer x\r\n",
        "content-type: application/grpc\r\n",
        "connection: x-forwarded-uri, x-forwarded-for\r\n",
    ] {
        assert_eq!(caddy.ask("GET /api/users", headers).await.status, 429, "{headers}");
    }
    // Spillgate cannot tell whose words these are, so nothing passes.
    let other = "x-original-uri: /free\r\nx-original-method: GET\r\nx-original-host: h\r\n";
    assert_eq!(caddy.ask("GET /api/users", other).await.status, 400);
    for line in ["HEAD /api/users", "POST /api/users", "GET /api/users?/free", "GET //api/./users"]
    {
        assert_eq!(caddy.ask(line, "content-length: 0\r\n").await.status, 429, "{line}");
    }
    assert_eq!(caddy.served(), 5);
    // No limit is for it.
    let reply = caddy.ask("GET /free?a=b", "ratelimit: \"mine\";r=1\r\n").await;
    assert_eq!((reply.status, reply.header("ratelimit")), (200, None), "{reply:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caddy_tells_a_blocked_caller_403_and_without_spillgate_serves_nobody() {
    let server = Server::start().await;
    server
        .app
        .gate()
        .list(spillgate_policy::ListKind::Block, "127.0.0.1", spillgate_policy::Terms::permanent())
        .await
        .unwrap();
    let blocking = start(server.address).await;
    assert_eq!(blocking.ask("GET /api/users", "").await.status, 403, "{}", blocking.log());
    let nobody = Port::reserve();
    let alone = start(nobody.address()).await;
    assert_eq!(alone.ask("GET /api/users", "").await.status, 502, "{}", alone.log());
    assert_eq!(alone.served(), 0);
    let open = start_with(nobody.address(), &fail_open()).await;
    for line in ["GET /api/users", "POST /api/users"] {
        let reply = open.ask(line, "content-length: 0\r\n").await;
        assert_eq!(reply.body, "served", "{}", open.log());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caddy_that_fails_open_lets_no_client_pass_that_provokes_a_refusal() {
    let server = Server::start().await;
    let caddy = start_with(server.address, &fail_open()).await;
    try_all(&caddy, 5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caddy_that_fails_open_does_not_if_spillgate_hangs_up_without_an_answer() {
    let caddy = start_with(hangs_up().await, &fail_open()).await;
    assert_eq!(caddy.ask("GET /api/users", "").await.status, 502, "{}", caddy.log());
    assert_eq!(caddy.served(), 0);
}
