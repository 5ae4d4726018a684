use std::fmt;
use std::path::PathBuf;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Address {
    /// A host and a port.
    Tcp(String, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

impl Address {
    /// Parses `host`, `host:port` or `[address]:port`. `None` without a host, or if the port is
    /// invalid.
    pub(super) fn parse(text: &str, default_port: u16) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => text.split_at(text.rfind(':').unwrap_or(text.len())),
        };
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().ok().filter(|port| *port > 0)?,
            None if port.is_empty() => default_port,
            None => return None,
        };
        (!host.is_empty()).then(|| Self::Tcp(host.to_owned(), port))
    }

    /// The address that a node of a Cluster names. One that does not know its own host names none,
    /// and is where it was asked.
    pub(super) fn named(host: &str, port: u16, asked: &Self) -> Option<Self> {
        let host = if matches!(host, "" | "?") { asked.host()? } else { host };
        Some(Self::Tcp(host.to_owned(), port))
    }

    /// The same from `host:port` of a redirect, where an IPv6 address stands without brackets.
    pub(super) fn of_redirect(text: &str, asked: &Self) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port > 0)?;
        Self::named(host, port, asked)
    }

    /// The host, if there is one.
    pub(super) fn host(&self) -> Option<&str> {
        match self {
            Self::Tcp(host, _) => Some(host),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// What to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// One server.
    One(Address),
    /// The master of a service, discovered through Sentinels.
    Sentinel {
        /// Their addresses.
        sentinels: Vec<Address>,
        /// The name of the service.
        service: String,
    },
    /// A Cluster, by some of its nodes.
    Cluster(Vec<Address>),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(address) => write!(f, "{address}"),
            Self::Sentinel { sentinels, service } => {
                write!(f, "{service} of Sentinel {}", Listed(sentinels))
            }
            Self::Cluster(seeds) => write!(f, "Cluster {}", Listed(seeds)),
        }
    }
}

struct Listed<'a>(&'a [Address]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, address) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(",")?;
            }
            write!(f, "{address}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_perhaps_a_port() {
        let tcp = |host: &str, port| Some(Address::Tcp(host.into(), port));
        assert_eq!(Address::parse("a.example", 6379), tcp("a.example", 6379));
        assert_eq!(Address::parse("10.0.0.1:7000", 6379), tcp("10.0.0.1", 7000));
        assert_eq!(Address::parse("[::1]:7000", 6379), tcp("::1", 7000));
        assert_eq!(Address::parse("[::1]", 6379), tcp("::1", 6379));
        for bad in ["", ":7000", "a:", "a:x", "a:0", "a:70000", "[::1", "[::1]7000"] {
            assert_eq!(Address::parse(bad, 6379), None, "{bad}");
        }
    }
    #[test]
    fn a_redirect_names_a_node_or_only_its_port() {
        let asked = Address::Tcp("10.0.0.5".into(), 6379);
        let redirect = |text| Address::of_redirect(text, &asked).map(|to| to.to_string());
        for (text, to) in [
            ("10.0.0.1:6381", "10.0.0.1:6381"),
            ("node.example:6381", "node.example:6381"),
            ("::1:6381", "[::1]:6381"),
            ("::ffff:10.0.0.1:6381", "[::ffff:10.0.0.1]:6381"),
            ("2001:db8::1:6381", "[2001:db8::1]:6381"),
            (":6381", "10.0.0.5:6381"),
            ("?:6381", "10.0.0.5:6381"),
        ] {
            assert_eq!(redirect(text).as_deref(), Some(to), "{text}");
        }
        for bad in ["", "6381", "a:", "a:0", "a:x"] {
            assert_eq!(redirect(bad), None, "{bad}");
        }
    }
}
