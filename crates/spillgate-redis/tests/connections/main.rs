//! Connections to real servers, and what becomes of calls when they fail.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod access;
mod asking;
mod checks;
mod cluster;
#[path = "../common/mod.rs"]
mod common;
mod credentials;
mod deposits;
mod news;
mod outage;
mod sentinel;
mod stalls;
mod start;
mod tls;
mod votes;
