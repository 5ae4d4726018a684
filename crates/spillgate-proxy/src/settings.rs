//! What a proxy is configured with.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::Uri;
use http::uri::{Authority, PathAndQuery};

/// The protocol of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// HTTP/1.1.
    Http,
    /// HTTP/2 without TLS, by prior knowledge.
    H2c,
    /// HTTP/2 or HTTP/1.1 over TLS, negotiated by ALPN.
    Https,
}

impl Scheme {
    /// The scheme of a URL.
    pub const fn name(self) -> &'static str {
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

/// Where an upstream listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamUrl {
    pub(crate) scheme: Scheme,
    /// A name or an address, an IPv6 address without its brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Host and port as configured, for the `Host` of requests.
    pub(crate) authority: Authority,
}

impl FromStr for UpstreamUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const RIGHT: &str =
            "write the URL of the service, such as \"http://127.0.0.1:3000\", https:// or h2c://";
        const BARE: &str = "write the URL without a user, path or query: the path of a request \
                            is forwarded as it is";
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
    /// True if the URL names the listener at this address, as far as its host is an address.
    pub fn is_at(&self, listens: SocketAddr) -> bool {
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

/// Which `Host` an upstream receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostHeader {
    /// That of the request.
    #[default]
    Keep,
    /// The upstream's own.
    Upstream,
}

/// What moves the limit of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamController {
    /// Finds how many requests the upstream can take at once, by its latency.
    Auto,
    /// Keeps the latency that nine of ten requests do not exceed near this.
    Target(Duration),
    /// Adds one request while at least half are used, and takes a tenth away when requests fail.
    Aimd,
    /// Forwards a smaller share of requests to an upstream that fails.
    Errors,
}

/// An adaptive limit for each upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LimitSettings {
    pub(crate) controller: UpstreamController,
    /// Requests in flight; nothing to [`Errors`](UpstreamController::Errors).
    pub(crate) range: RangeInclusive<u32>,
}

/// Upstreams, and how requests are forwarded to them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxySettings {
    /// At least one.
    pub upstreams: Vec<UpstreamUrl>,
    /// Time to connect to an upstream, TLS handshake included.
    pub connect_timeout: Duration,
    /// Time until the head of a response, from the end of the request.
    pub response_timeout: Duration,
    /// Time between two parts of a body, either way.
    pub idle_timeout: Duration,
    /// Time without a byte either way on an upgraded connection, such as a WebSocket.
    pub upgrade_idle_timeout: Duration,
    /// The path of health checks; `None` for no checks.
    pub health_path: Option<PathAndQuery>,
    /// Time between two health checks.
    pub health_interval: Duration,
    /// Which `Host` upstreams receive.
    pub host: HostHeader,
    /// A PEM file of certificates that upstreams over TLS are trusted by, besides the system's.
    pub ca: Option<PathBuf>,
    /// Idle connections kept per upstream.
    pub max_idle_per_upstream: usize,
    /// Requests in flight per upstream, upgraded connections included; `None` for no bound.
    pub max_concurrent_per_upstream: Option<usize>,
    /// What moves the limit of each upstream between a minimum and a maximum; `None` for a fixed
    /// bound, or none.
    pub upstream_controller: Option<UpstreamController>,
    /// The minimum of an adaptive limit. `None` is 1.
    pub min_concurrent_per_upstream: Option<usize>,
    /// Whether messages get a `Via`.
    pub via: bool,
}

impl ProxySettings {
    /// The maximum of an adaptive limit if `max_concurrent_per_upstream` says nothing.
    pub const DEFAULT_MAX_CONCURRENT: usize = 1000;

    /// Defaults for these upstreams, of which there is at least one.
    #[must_use]
    pub fn new(upstreams: Vec<UpstreamUrl>) -> Self {
        Self {
            upstreams,
            connect_timeout: Duration::from_secs(5),
            response_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            upgrade_idle_timeout: Duration::from_secs(3600),
            health_path: None,
            health_interval: Duration::from_secs(5),
            host: HostHeader::default(),
            ca: None,
            max_idle_per_upstream: 64,
            max_concurrent_per_upstream: None,
            upstream_controller: None,
            min_concurrent_per_upstream: None,
            via: false,
        }
    }

    /// All upstreams, for display.
    pub fn upstream_list(&self) -> String {
        self.upstreams.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    /// The adaptive limit of each upstream; `None` if there is none. The error says what is wrong.
    pub(crate) fn limit(&self) -> Result<Option<LimitSettings>, String> {
        let Some(controller) = self.upstream_controller else { return Ok(None) };
        let min = self.min_concurrent_per_upstream.unwrap_or(1);
        let max = self.max_concurrent_per_upstream.unwrap_or(Self::DEFAULT_MAX_CONCURRENT);
        if min == 0 || min > max {
            return Err(format!(
                "proxy min-concurrent-per-upstream: {min} is not between 1 and \
                 max-concurrent-per-upstream, which is {max}"
            ));
        }
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Ok(Some(LimitSettings { controller, range: count(min)..=count(max) }))
    }

    /// True if connections to an upstream would be made and kept in the same way.
    pub(crate) fn connects_like(&self, other: &Self) -> bool {
        let times = |of: &Self| (of.connect_timeout, of.response_timeout, of.idle_timeout);
        times(self) == times(other) && self.max_idle_per_upstream == other.max_idle_per_upstream
    }
}

/// What a client may send, and how long it may take.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ClientLimits {
    /// Bytes of a request's head. At least 8,192.
    pub max_header_bytes: usize,
    /// Header fields of a request.
    pub max_headers: usize,
    /// Time for the rest of a request head, and for a response to be read.
    pub io_timeout: Duration,
    /// Time until the next request.
    pub idle_timeout: Duration,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            max_header_bytes: 16 * 1024,
            max_headers: 100,
            io_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(90),
        }
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
