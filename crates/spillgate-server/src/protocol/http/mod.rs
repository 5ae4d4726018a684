//! HTTP: checks for programs, `/auth` for proxies, metrics, health and admin routes. See
//! `docs/http.md`.
//!
//! An [`HttpServer`] holds what connections share, and [`serve`] serves one client.

mod access;
mod auth;
mod bans;
mod body;
mod bounds;
mod check;
mod connection;
mod events;
mod explain;
mod fast;
mod home;
mod json;
mod limits;
mod lists;
mod live;
mod openapi;
mod overrides;
mod page;
mod pages;
mod parameters;
mod permits;
mod policy;
mod problem;
mod protocol;
mod reply;
mod reports;
mod request_reader;
mod reservations;
mod reserve;
mod routes;
mod server;
mod service;
mod stats;
mod terms;

pub use self::bounds::Bounds;
pub use self::connection::serve;
pub(crate) use self::explain::explain;
pub(crate) use self::protocol::{DEFAULT_PORT, HttpProtocol};
pub use self::server::HttpServer;
pub use self::stats::HttpStats;
