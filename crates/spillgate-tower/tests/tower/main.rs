//! The layer in front of services, and of real servers over real sockets.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on may stop")]

#[path = "../common/mod.rs"]
mod common;
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
