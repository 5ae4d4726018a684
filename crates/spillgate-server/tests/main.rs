//! The server over real sockets, and by the programs that people use.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;
mod envoy;
mod http;
mod operate;
mod page;
mod proxy;
mod resp;
