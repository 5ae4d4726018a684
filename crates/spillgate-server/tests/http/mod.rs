//! HTTP over real sockets, and by the programs that people use.

mod adaptive;
mod admin;
mod auth;
mod bans;
mod check;
mod client;
mod conservation;
mod documentation;
mod errors;
mod escapes;
mod expiry;
mod guard;
mod live;
mod metrics;
mod openapi;
mod patience;
mod permits;
mod programs;
mod proxies;
mod reserve;
mod schemathesis;
mod server;
mod wire;
