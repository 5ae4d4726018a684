//! Limits that nodes share: simulated, and through real servers.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod connections;
mod faults;
mod fleet;
mod scripts;
mod simulation;
mod store;
mod wire;
