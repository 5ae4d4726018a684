//! The layer in front of services, and of real servers over real sockets.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod adaptive;
mod bans;
mod clients;
mod common;
mod concurrency;
mod grpc;
mod headers;
mod lists;
mod metrics;
mod peer;
mod readme;
mod refusal;
mod remote;
mod routes;
mod settling;
mod shaping;
mod sockets;
mod types;
