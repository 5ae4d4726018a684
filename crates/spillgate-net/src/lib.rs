#![doc = include_str!("../README.md")]

mod activity;
mod connection;
mod connection_count;
mod drain;
mod idle_timeout;
mod listener;
mod log_limit;
mod maybe_tls;
pub mod metrics;
mod protocol;
mod rlimit;
mod slots;
mod stream;
pub mod tls;
pub mod workers;

pub use self::activity::{Activity, InProgress};
pub use self::connection::Connection;
pub use self::connection_count::{ConnectionCount, Connections, OpenConnection};
pub use self::drain::{DrainSignal, OpenConnections, drain};
pub use self::idle_timeout::IdleTimeout;
pub use self::listener::{Listener, bind};
pub use self::log_limit::LogLimit;
pub use self::maybe_tls::MaybeTls;
pub use self::protocol::{Protocol, Shutdown, Threads};
pub use self::rlimit::raise_nofile_limit;
pub use self::slots::{ConnectionSlots, Slot};
pub use self::stream::Stream;
pub use self::tls::Tls;
pub use self::workers::Workers;
