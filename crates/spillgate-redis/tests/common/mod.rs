//! Real servers for tests, which end with the test that started them.

mod bound;
mod certificates;
mod clock;
mod cluster;
mod fake_node;
mod fake_sentinel;
mod log;
mod proxy;
mod sentinel;
mod server;
mod shifted;

pub(crate) use self::bound::{Bound, Span};
pub(crate) use self::certificates::Certificates;
pub(crate) use self::clock::real_time;
pub(crate) use self::cluster::{Cluster, MovingSlot, eventually};
pub(crate) use self::fake_node::{FakeNode, slots};
pub(crate) use self::fake_sentinel::FakeSentinel;
pub(crate) use self::log::log;
pub(crate) use self::proxy::Proxy;
pub(crate) use self::sentinel::{Sentinels, TlsSentinel};
pub(crate) use self::server::Server;
pub(crate) use self::shifted::Shifted;
