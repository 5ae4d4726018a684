//! Eight processes that spend what a few callers have, through one server.

#![expect(clippy::unwrap_used, reason = "a test fails by it")]

#[path = "../common/mod.rs"]
mod common;
mod bounds;
mod hammered;
mod order;
mod processes;
mod worker;
