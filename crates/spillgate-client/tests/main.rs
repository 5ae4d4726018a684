//! The client in front of services whose time is simulated, and of real servers over real sockets.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;
mod simulation;
