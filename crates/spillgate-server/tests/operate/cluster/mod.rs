//! Several servers, one Redis.

mod corrupt;
mod credentials;
mod edits;
mod idle;
mod mismatch;
mod outage;
mod overload;
mod reserve;
mod share;
mod start;
mod stop;

use spillgate_testing::program;

use crate::common::redis::Redis;
use crate::common::server::{Home, Server, run};

/// A file for servers that share a store.
fn config(redis: &Redis, limits: &str) -> String {
    let url = redis.url();
    format!(
        "[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\n\
         [store]\nurl = '{url}'\nsecret = '0123456789abcdef'\n{limits}"
    )
}

/// A home, and two servers of it on one Redis.
fn pair(redis: &Redis, limits: &str) -> (Home, [Server; 2]) {
    let home = Home::new(&config(redis, limits));
    let servers = [home.start(&[]), home.start(&[])];
    (home, servers)
}

/// Asks a route as an operator, and tells the status and the body.
fn admin(server: &Server, method: &str, path: &str, body: &str) -> String {
    let token = format!("authorization: Bearer {}", server.token());
    let mut curl = program("curl");
    curl.args(["-sS", "--max-time", "60", "-X", method, "-H", &token, "-w", " %{http_code}"]);
    if !body.is_empty() {
        curl.args(["-H", "content-type: application/json", "-d", body]);
    }
    run(curl.arg(server.url(path)))
}

/// The value of a metric, by its name with its labels.
fn metric(server: &Server, name: &str) -> f64 {
    let metrics = server.get("/metrics");
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} in {metrics}")).parse().unwrap()
}
