//! Real servers for tests, which end with the test that started them.

#![allow(dead_code, reason = "each test uses some of this")]

mod server;

pub(crate) use self::server::Server;
