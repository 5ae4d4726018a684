//! HTTP over real sockets, and by the programs that people use.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on may stop")]

mod admin;
mod auth;
mod check;
mod client;
mod conservation;
mod documentation;
mod errors;
mod escapes;
mod guard;
mod metrics;
mod openapi;
mod patience;
#[path = "../common/program.rs"]
mod program;
mod programs;
mod proxies;
mod reserve;
mod schemathesis;
mod server;
mod wire;
