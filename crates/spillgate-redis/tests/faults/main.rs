//! A node under load whose server goes away, stops, is slow or becomes another.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by it")]

mod calls;
#[path = "../common/mod.rs"]
mod common;
mod failover;
mod fleet;
mod load;
mod node;
mod outages;
mod scene;
mod stalls;
