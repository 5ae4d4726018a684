//! Ports for programs that have to be told theirs.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt,
};

/// A port of this machine that nobody else is given as long as this is kept. A program may listen
/// on it, end, and be started again.
#[derive(Debug)]
pub struct Port {
    address: SocketAddr,
    _socket: OwnedFd,
}

impl Port {
    /// A port of 127.0.0.1.
    #[must_use]
    pub fn reserve() -> Self {
        Self::reserve_on(Ipv4Addr::LOCALHOST)
    }

    /// A port of an address of loopback.
    ///
    /// The system gives out no port to which a socket is bound. One that does not listen is not in
    /// the way of one that does, as both allow for the address to be used again: servers do so to
    /// be restarted while connections of before linger.
    ///
    /// # Panics
    ///
    /// Panics if there is none.
    #[must_use]
    pub fn reserve_on(ip: Ipv4Addr) -> Self {
        let reserve = || {
            let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
            let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
            sockopt::set_socket_reuseaddr(&socket, true)?;
            bind(&socket, &SocketAddr::new(IpAddr::V4(ip), 0))?;
            let address = SocketAddr::try_from(getsockname(&socket)?)?;
            Ok::<_, rustix::io::Errno>(Self { address, _socket: socket })
        };
        reserve().unwrap_or_else(|error| panic!("no port of {ip}: {error}"))
    }

    /// With the address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Without it.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.address.port()
    }
}

impl fmt::Display for Port {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(formatter)
    }
}
