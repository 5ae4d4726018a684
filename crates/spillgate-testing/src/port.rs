//! Ports for programs that have to be told one.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::Mutex;

/// Below the ports that systems give to connections and to whoever asks for any.
const FIRST: u16 = 10_000;
const COUNT: u64 = 12_000;

/// A port of this machine that nobody listens on, and that no other test is given while this
/// process runs.
///
/// To ask the system for a port and to close it again would leave it to whoever comes next.
/// Instead, a socket of UDP keeps the number, and leaves the port of TCP to the program.
///
/// # Panics
///
/// Panics if all ports are in use.
#[must_use]
pub fn port() -> u16 {
    static KEPT: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());
    let begin = RandomState::new().hash_one(());
    for place in 0..COUNT {
        let port = FIRST + (begin.wrapping_add(place) % COUNT) as u16;
        let address = (Ipv4Addr::LOCALHOST, port);
        if let Ok(socket) = UdpSocket::bind(address)
            && TcpListener::bind(address).is_ok()
        {
            KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(socket);
            return port;
        }
    }
    panic!("all ports from {FIRST} on are in use");
}
