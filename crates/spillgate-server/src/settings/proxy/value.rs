//! Values of the proxy. An error says what to write.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::Uri;
use http::uri::{Authority, PathAndQuery};

/// What is spoken with an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    /// HTTP/1.1.
    Http,
    /// HTTP/2 without TLS, which both sides have to know beforehand.
    H2c,
    /// TLS, and HTTP/2 or HTTP/1.1 as the two agree.
    Https,
}

impl Scheme {
    /// The scheme as it is written.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::H2c => "h2c",
            Self::Https => "https",
        }
    }

    const fn port(self) -> u16 {
        match self {
            Self::Http | Self::H2c => 80,
            Self::Https => 443,
        }
    }
}

/// A service that requests are passed on to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpstreamUrl {
    pub(crate) scheme: Scheme,
    /// A name or an address, an IPv6 address without its brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Host and port as they were written, for the `Host` of requests.
    pub(crate) authority: Authority,
}

impl FromStr for UpstreamUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const RIGHT: &str = "write where the service listens, such as \"http://127.0.0.1:3000\"; https:// and \
             h2c:// are known, too";
        const BARE: &str = "write the URL without a user, a path or a query: paths of requests \
                            are passed on as they are";
        let parts = text.parse::<Uri>().map_err(|_| RIGHT)?.into_parts();
        let scheme = match parts.scheme.as_ref().map(http::uri::Scheme::as_str) {
            Some("http") => Scheme::Http,
            Some("h2c") => Scheme::H2c,
            Some("https") => Scheme::Https,
            _ => return Err(RIGHT),
        };
        let authority = parts.authority.ok_or(RIGHT)?;
        let path = parts.path_and_query.as_ref().map_or("/", PathAndQuery::as_str);
        if path != "/" || text.contains(['@', '#']) {
            return Err(BARE);
        }
        let host = authority.host();
        if host.is_empty() {
            return Err(RIGHT);
        }
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let has_port = authority.as_str().len() > host.len();
        let port = authority.port_u16().filter(|port| *port != 0);
        let port = if has_port { port.ok_or(RIGHT)? } else { scheme.port() };
        Ok(Self { scheme, host: bare.to_owned(), port, authority })
    }
}

impl UpstreamUrl {
    /// True if whoever listens at this address is the service, as far as can be told from a URL
    /// with an address.
    pub(super) fn is_at(&self, listens: SocketAddr) -> bool {
        let is_here = |address: IpAddr| {
            address == listens.ip() || (listens.ip().is_unspecified() && address.is_loopback())
        };
        self.port == listens.port() && self.host.parse().is_ok_and(is_here)
    }
}

impl fmt::Display for UpstreamUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.name(), self.authority)
    }
}

/// Which `Host` an upstream sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Host {
    /// That of the request.
    #[default]
    Keep,
    /// The upstream's own.
    Upstream,
}

impl FromStr for Host {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "keep" => Ok(Self::Keep),
            "upstream" => Ok(Self::Upstream),
            _ => Err("write \"keep\" or \"upstream\""),
        }
    }
}

/// A path that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(pub(super) PathAndQuery);

impl FromStr for Path {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = text.parse().ok().filter(|_| text.starts_with('/'));
        path.map(Self).ok_or("write a path, such as \"/healthz\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_is_a_scheme_a_host_and_a_port() {
        for (text, scheme, host, port) in [
            ("http://127.0.0.1:3000", Scheme::Http, "127.0.0.1", 3000),
            ("http://app", Scheme::Http, "app", 80),
            ("http://app/", Scheme::Http, "app", 80),
            ("https://app.example", Scheme::Https, "app.example", 443),
            ("https://[::1]:8443", Scheme::Https, "::1", 8443),
            ("h2c://[::1]", Scheme::H2c, "::1", 80),
        ] {
            let upstream: UpstreamUrl = text.parse().unwrap();
            assert_eq!((upstream.scheme, &*upstream.host, upstream.port), (scheme, host, port));
        }
        for wrong in [
            "",
            "app",
            "app:80",
            "ftp://app",
            "http://",
            "http://app:0",
            "http://app:x",
            "http://app:",
            "http://user@app",
            "http://app/path",
            "http://app?query",
            "http://app#fragment",
            "http://:80",
        ] {
            assert!(wrong.parse::<UpstreamUrl>().is_err(), "{wrong}");
        }
    }
}
