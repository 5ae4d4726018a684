//! Limits that nodes share: simulated, and through real servers.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "`real_time` needs the rest")]
mod common;
mod connections;
mod scripts;
mod simulation;
mod store;
mod wire;
