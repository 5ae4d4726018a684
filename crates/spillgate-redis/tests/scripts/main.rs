//! The scripts, inside real servers, do what the library does.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod alike;
mod case;
#[path = "../common/mod.rs"]
mod common;
mod conformance;
mod edges;
mod kept;
mod runner;
mod small;
