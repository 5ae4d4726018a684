//! The reverse proxy between real sockets: what it forwards, what it refuses, what it bears.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on may stop")]

mod balance;
mod cut;
mod django;
mod failures;
mod floods;
mod frames;
mod grpc;
mod h2c;
mod headers;
mod hosts;
mod http2;
mod lame_duck;
mod large;
mod leaving;
mod limits;
mod message;
mod nginx;
mod operate;
mod programs;
mod proxy;
mod requests;
mod responses;
#[path = "../operate/server.rs"]
#[allow(dead_code, reason = "another test needs the rest")]
mod server;
mod streaming;
mod tls;
mod trailers;
mod upstream;
mod websocket;
mod wire;
