//! Processes that spend what a few callers have, through one server.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by it")]

mod bounds;
#[path = "../common/mod.rs"]
mod common;
mod hammered;
mod order;
mod processes;
mod worker;
