//! The client in front of services whose time is simulated, and of real servers over real sockets.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cancel;
mod common;
mod dialects;
mod failures;
mod hostile;
mod limits;
mod refusals;
mod reports;
mod reserve;
mod retries;
mod simulation;
mod sockets;
mod tcp;
