//! Real servers for tests, which end with the test that started them.

#![allow(dead_code, unused_imports, reason = "each test uses some of this")]

mod bound;
mod clock;
mod cluster;
mod proxy;
mod sentinel;
mod server;

pub(crate) use self::bound::{Bound, Span};
pub(crate) use self::clock::real_time;
pub(crate) use self::cluster::Cluster;
pub(crate) use self::proxy::Proxy;
pub(crate) use self::sentinel::Sentinels;
pub(crate) use self::server::{Server, free_port};
