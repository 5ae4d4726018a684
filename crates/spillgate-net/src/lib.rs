#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

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

/// Reads a regular file of at most so many MiB.
/// Fails if it cannot be read, is no regular file, or is larger.
pub fn read_file(path: &Path, mebibytes: u64) -> io::Result<Vec<u8>> {
    // Before it is opened: to open a pipe blocks until its other end is open.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let (mut bytes, most) = (Vec::new(), mebibytes << 20);
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {mebibytes} MiB")));
    }
    Ok(bytes)
}
