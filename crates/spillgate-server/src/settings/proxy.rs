//! The table `[proxy]`: the reverse proxy.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use http::uri::PathAndQuery;
use spillgate_proxy::{HostHeader, UpstreamUrl};

use super::declare::{Section, SettingChange, key, settings};
use super::types::Listen;

/// A proxy may keep no connection; more would be more than a service accepts.
const IDLE_CONNECTIONS: RangeInclusive<u64> = 0..=100_000;
/// With none, nothing would be forwarded; more would be no bound.
const CONCURRENT_REQUESTS: RangeInclusive<u64> = 1..=1_000_000;
/// With less, healthy upstreams would be given up; nobody waits for weeks.
const TIMEOUT: RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(30 * 24 * 60 * 60);

settings! {
    /// A reverse proxy.
    struct ProxySettings in Proxy;
    "Proxy" {
        /// Upstream to forward requests to, such as http://127.0.0.1:3000; several share the load
        to: Vec<UpstreamUrl> = Vec::new(), live;
        /// Proxy listener
        listen: Listen = Listen::loopback(8080), restart;
        /// Timeout for connecting to an upstream
        connect_timeout: Duration = Duration::from_secs(5), live, TIMEOUT;
        /// Time for an upstream to begin its response
        response_timeout: Duration = Duration::from_secs(30), live, TIMEOUT;
        /// Time without progress after which a request or response body is given up
        idle_timeout: Duration = Duration::from_secs(60), live, TIMEOUT;
        /// Close an idle WebSocket or other upgraded connection after this time
        upgrade_idle_timeout: Duration = Duration::from_secs(60 * 60), live, TIMEOUT;
        /// Health-check path [default: none, no health checks]
        health_check_path: Option<PathAndQuery> = None, live;
        /// Time between health checks
        health_check_interval: Duration = Duration::from_secs(5), live, TIMEOUT;
        /// Host header that upstreams see: keep that of the client, or the upstream's own
        host_header: HostHeader = HostHeader::Keep, live;
        /// CA certificates (PEM) for https:// upstreams, in addition to those of the system
        upstream_ca: Option<PathBuf> = None, live;
        /// Idle connections to keep per upstream
        max_idle_per_upstream: usize = 64, live, IDLE_CONNECTIONS;
        /// Maximum number of requests in flight per upstream, WebSockets included; unbounded if not set
        max_concurrent_per_upstream: Option<usize> = None, live, CONCURRENT_REQUESTS;
        /// Add a Via header to requests and responses; some services do not compress responses
        /// to requests that have one
        via: bool = false, live;
    }
}

impl ProxySettings {
    /// Reports what is missing or there twice. `None` if nothing is forwarded.
    pub(super) fn complete(self, is_wanted: bool, problems: &mut Vec<String>) -> Option<Self> {
        if self.to.is_empty() {
            if is_wanted {
                problems.push(
                    "the proxy has no upstream; add --to http://127.0.0.1:3000, or to = \
                     \"http://127.0.0.1:3000\" in [proxy]"
                        .to_owned(),
                );
            }
            return None;
        }
        let mut twice = self.to.iter().enumerate().filter(|(at, one)| self.to[..*at].contains(one));
        if let Some((_, twice)) = twice.next() {
            problems.push(format!("proxy to: {twice} is there twice; write it once"));
        }
        Some(self)
    }

    /// Reports an upstream that is one of the server's own listeners.
    pub(super) fn loops(&self, listens: &[Listen]) -> Option<String> {
        let addresses = listens.iter().chain([&self.listen]).filter_map(|listen| listen.address());
        let mut loops =
            addresses.flat_map(|address| self.to.iter().filter(move |to| to.is_at(address)));
        let to = loops.next()?;
        Some(format!("proxy to: {to} is this server itself; write the URL of the service"))
    }

    /// What the proxy itself needs to know.
    pub(crate) fn runtime(&self) -> spillgate_proxy::ProxySettings {
        let mut runtime = spillgate_proxy::ProxySettings::new(self.to.clone());
        runtime.connect_timeout = self.connect_timeout;
        runtime.response_timeout = self.response_timeout;
        runtime.idle_timeout = self.idle_timeout;
        runtime.upgrade_idle_timeout = self.upgrade_idle_timeout;
        runtime.health_path.clone_from(&self.health_check_path);
        runtime.health_interval = self.health_check_interval;
        runtime.host = self.host_header;
        runtime.ca.clone_from(&self.upstream_ca);
        runtime.max_idle_per_upstream = self.max_idle_per_upstream;
        runtime.max_concurrent_per_upstream = self.max_concurrent_per_upstream;
        runtime.via = self.via;
        runtime
    }

    /// The settings that have another value in `new`.
    pub(super) fn changes(old: Option<&Self>, new: Option<&Self>) -> Vec<SettingChange> {
        match (old, new) {
            (Some(old), Some(new)) => old.own_changes(new),
            (None, None) => Vec::new(),
            _ => vec![SettingChange {
                section: Section::Proxy,
                key: key!(listen),
                needs_restart: true,
            }],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::ArgMatches;

    use super::super::declare::Sources;
    use super::super::value::Value;
    use super::*;

    #[test]
    fn requests_are_not_forwarded_to_the_server_itself() {
        for (to, listen, loops) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080", true),
            ("http://[::1]:8080", "0.0.0.0:8080", true),
            ("http://127.0.0.1:8390", "127.0.0.1:8080", true),
            ("http://127.0.0.1:8081", "127.0.0.1:8080", false),
            ("http://127.0.0.2:8080", "127.0.0.1:8080", false),
            ("http://app:8080", "0.0.0.0:8080", false),
        ] {
            let args = ArgMatches::default();
            let mut settings =
                ProxySettings::resolve(&mut Sources::new(&args, Path::new(""), &[]), None);
            settings.listen = Listen::parse(listen).unwrap();
            settings.to = vec![UpstreamUrl::parse(to).unwrap()];
            let http = Listen::parse("127.0.0.1:8390").unwrap();
            assert_eq!(settings.loops(&[http]).is_some(), loops, "{to} {listen}");
        }
    }
}
