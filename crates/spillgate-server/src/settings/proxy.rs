//! The table `[proxy]`: the reverse proxy.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use http::uri::PathAndQuery;
use spillgate_proxy::{HostHeader, UpstreamController, UpstreamUrl};

use super::declare::{Section, SettingChange, key, settings};
use super::types::Listen;
use super::value::words;

/// A proxy may keep no connection; more would be more than a service accepts.
const IDLE_CONNECTIONS: RangeInclusive<u64> = 0..=100_000;
/// With none, nothing would be forwarded; more would be no bound.
const CONCURRENT_REQUESTS: RangeInclusive<u64> = 1..=1_000_000;
/// With less, no service would meet it; more would be no target.
const LATENCY: RangeInclusive<Duration> = Duration::from_micros(100)..=Duration::from_secs(60 * 60);
/// With less, healthy upstreams would be given up; nobody waits for weeks.
const TIMEOUT: RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(30 * 24 * 60 * 60);

/// What moves the limit of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControllerName {
    Auto,
    Target,
    Aimd,
    Errors,
}

words!(ControllerName, [
    "auto" => ControllerName::Auto,
    "target" => ControllerName::Target,
    "aimd" => ControllerName::Aimd,
    "errors" => ControllerName::Errors,
]);

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
        /// What moves the limit of each upstream: auto finds what it can take, target keeps its
        /// latency near upstream-latency-target, aimd and errors look at failures; no adaptive limit if not set
        upstream_controller: Option<ControllerName> = None, live;
        /// Latency that the controller target keeps nine of ten requests below
        upstream_latency_target: Option<Duration> = None, live, LATENCY;
        /// Minimum of an upstream's adaptive limit; 1 if not set. The maximum is
        /// max-concurrent-per-upstream, or 1000
        min_concurrent_per_upstream: Option<usize> = None, live, CONCURRENT_REQUESTS;
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
        self.check_limit(problems);
        Some(self)
    }

    /// Reports settings of the adaptive limit that mean nothing together.
    fn check_limit(&self, problems: &mut Vec<String>) {
        let mut report = |problem: &str| problems.push(format!("proxy {problem}"));
        match (self.upstream_controller, self.upstream_latency_target) {
            (Some(ControllerName::Target), None) => report(
                "upstream-controller: \"target\" has no target; add upstream-latency-target = \
                 \"40ms\", or write \"auto\", which needs none",
            ),
            (Some(ControllerName::Target), Some(_)) | (_, None) => {}
            (_, Some(_)) => report(
                "upstream-latency-target: only the controller \"target\" has one; add \
                 upstream-controller = \"target\", or remove it",
            ),
        }
        let Some(min) = self.min_concurrent_per_upstream else { return };
        let max = self.max_concurrent_per_upstream;
        match self.upstream_controller {
            None => report(
                "min-concurrent-per-upstream: only an adaptive limit has a minimum; add \
                 upstream-controller = \"auto\", or remove it",
            ),
            Some(ControllerName::Errors) => report(
                "min-concurrent-per-upstream: the controller \"errors\" limits the share of \
                 requests, not how many are in flight; remove it, or write another controller",
            ),
            Some(_)
                if min > max.unwrap_or(spillgate_proxy::ProxySettings::DEFAULT_MAX_CONCURRENT) =>
            {
                let max = max.map_or("1000 if not set".to_owned(), |max| max.to_string());
                report(&format!(
                    "min-concurrent-per-upstream: {min} is above max-concurrent-per-upstream, \
                     which is {max}; lower the one, or raise the other"
                ));
            }
            Some(_) => {}
        }
    }

    fn controller(&self) -> Option<UpstreamController> {
        Some(match self.upstream_controller? {
            ControllerName::Auto => UpstreamController::Auto,
            ControllerName::Target => UpstreamController::Target(self.upstream_latency_target?),
            ControllerName::Aimd => UpstreamController::Aimd,
            ControllerName::Errors => UpstreamController::Errors,
        })
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
        runtime.upstream_controller = self.controller();
        runtime.min_concurrent_per_upstream = self.min_concurrent_per_upstream;
        runtime.via = self.via;
        runtime
    }

    /// The settings that have another value in `new`.
    pub(super) fn changes(old: Option<&Self>, new: Option<&Self>) -> Vec<SettingChange> {
        match (old, new) {
            (Some(old), Some(new)) => old.own_changes(new),
            (None, None) => Vec::new(),
            _ => {
                let place = (Section::Proxy, key!(listen));
                let listens = [old, new].map(|side| side.map(|proxy| proxy.listen));
                vec![SettingChange::new(place, (&listens[0], &listens[1]), true)]
            }
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
