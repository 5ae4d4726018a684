//! gRPC: what a proxy asks, through a client of gRPC and through a real Envoy.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on may stop")]

mod access;
mod answers;
mod client;
mod documentation;
mod drain;
mod files;
mod health;
mod limits;
mod proxy;
mod quota_mode;
#[path = "../operate/cluster/redis.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod redis;
mod reflection;
#[path = "../operate/server.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod server;
mod store;
mod units;
mod wire;
