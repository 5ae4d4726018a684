//! Several servers, one Redis.

mod outage;
pub(crate) mod redis;
mod share;
mod start;
mod stop;

use self::redis::Redis;
use crate::server::{Home, Server};

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

/// The value of a metric, by its name with its labels.
fn metric(server: &Server, name: &str) -> f64 {
    let metrics = server.get("/metrics");
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} in {metrics}")).parse().unwrap()
}
