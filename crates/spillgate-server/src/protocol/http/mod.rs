//! HTTP: checks for programs in any language, `/auth` for proxies, metrics and health for
//! operators, and routes to look and change while the server runs.
//!
//! An [`App`](crate::App) holds what connections share, and [`serve`] speaks HTTP/1.1 with
//! one client. `docs/http.md` shows every route.

mod auth;
mod body;
mod bounds;
mod check;
mod connection;
mod explain;
mod fast;
mod guard;
mod home;
mod json;
mod keys;
mod limits;
mod lists;
mod one_request;
mod openapi;
mod pages;
mod parameters;
mod policy;
mod problem;
mod protocol;
mod reply;
mod reserve;
mod routes;
mod service;
mod stats;
mod whole;

pub use self::bounds::Bounds;
pub use self::connection::serve;
pub(crate) use self::explain::explain;
pub(crate) use self::protocol::{DEFAULT_PORT, HttpProtocol};
pub use self::stats::Stats;
