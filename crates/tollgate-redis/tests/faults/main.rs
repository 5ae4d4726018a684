//! A node under load whose server goes away, stops, is slow or becomes another.

#![expect(clippy::unwrap_used, reason = "a test fails by it")]

#[path = "../common/mod.rs"]
mod common;
mod calls;
mod failover;
mod load;
mod node;
mod outages;
mod scene;
