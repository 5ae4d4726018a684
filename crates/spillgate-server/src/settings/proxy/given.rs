use std::path::{Path, PathBuf};

use clap::{ArgAction, Args};
use spillgate_policy::Settings as Table;
use spillgate_proxy::{HealthPath, HostHeader, UpstreamUrl};

use crate::settings::range;
use crate::settings::value::{Listen, Span};

/// What was said of the proxy in one place. Whatever was not is left to others.
///
/// Flags are told apart by their ids, since those of the server have some of the same names.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct GivenProxy {
    /// A service to pass requests on to, such as http://127.0.0.1:3000; several share them
    #[arg(
        id = "proxy-to",
        long = "to",
        env = "SPILLGATE_PROXY_TO",
        value_name = "URL",
        value_delimiter = ',',
        help_heading = PROXY
    )]
    pub(super) to: Option<Vec<UpstreamUrl>>,
    /// Where clients connect [default: 127.0.0.1:8080]
    #[arg(
        id = "proxy-listen",
        long = "listen",
        env = "SPILLGATE_PROXY_LISTEN",
        value_name = "ADDRESS",
        help_heading = PROXY
    )]
    pub(super) listen: Option<Listen>,
    /// How long connecting to an upstream may take [default: 5s]
    #[arg(
        id = "proxy-connect-timeout",
        long = "connect-timeout",
        env = "SPILLGATE_PROXY_CONNECT_TIMEOUT",
        value_name = "TIME",
        help_heading = PROXY
    )]
    pub(super) connect_timeout: Option<Span>,
    /// How long an upstream may take to begin its response [default: 30s]
    #[arg(
        id = "proxy-response-timeout",
        long = "response-timeout",
        env = "SPILLGATE_PROXY_RESPONSE_TIMEOUT",
        value_name = "TIME",
        help_heading = PROXY
    )]
    pub(super) response_timeout: Option<Span>,
    /// How long a body may make no progress, either way [default: 60s]
    #[arg(
        id = "proxy-idle-timeout",
        long = "idle-timeout",
        env = "SPILLGATE_PROXY_IDLE_TIMEOUT",
        value_name = "TIME",
        help_heading = PROXY
    )]
    pub(super) idle_timeout: Option<Span>,
    /// How long a WebSocket may be silent [default: 1h]
    #[arg(
        id = "proxy-upgrade-idle",
        long = "upgrade-idle",
        env = "SPILLGATE_PROXY_UPGRADE_IDLE",
        value_name = "TIME",
        help_heading = PROXY
    )]
    pub(super) upgrade_idle: Option<Span>,
    /// What to ask upstreams for, to see whether they are well [default: nothing]
    #[arg(
        id = "proxy-health-path",
        long = "health-path",
        env = "SPILLGATE_PROXY_HEALTH_PATH",
        value_name = "PATH",
        help_heading = PROXY
    )]
    pub(super) health_path: Option<HealthPath>,
    /// How often they are asked [default: 5s]
    #[arg(
        id = "proxy-health-every",
        long = "health-every",
        env = "SPILLGATE_PROXY_HEALTH_EVERY",
        value_name = "TIME",
        help_heading = PROXY
    )]
    pub(super) health_every: Option<Span>,
    /// Which Host upstreams see: keep, or upstream for their own [default: keep]
    #[arg(
        id = "proxy-host",
        long = "host",
        env = "SPILLGATE_PROXY_HOST",
        value_name = "WHICH",
        help_heading = PROXY
    )]
    pub(super) host: Option<HostHeader>,
    /// Certificates, in PEM, that those of upstreams may lead to, beside those that this
    /// machine trusts
    #[arg(
        id = "proxy-ca",
        long = "ca",
        env = "SPILLGATE_PROXY_CA",
        value_name = "FILE",
        help_heading = PROXY
    )]
    pub(super) ca: Option<PathBuf>,
    /// How many idle connections to keep to each upstream [default: 64]
    #[arg(
        id = "proxy-keep",
        long = "keep",
        env = "SPILLGATE_PROXY_KEEP",
        value_name = "COUNT",
        help_heading = PROXY
    )]
    pub(super) keep: Option<u64>,
    /// Adds a Via header to what is passed on, either way; some services compress nothing for
    /// requests that have one [default: false]
    #[arg(
        id = "proxy-via",
        long = "via",
        env = "SPILLGATE_PROXY_VIA",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = ArgAction::Set,
        value_name = "BOOL",
        help_heading = PROXY
    )]
    pub(super) via: Option<bool>,
    /// A proxy was asked for, so there must be somewhere to pass requests on to.
    #[arg(skip)]
    pub(super) is_wanted: bool,
}

const PROXY: &str = "Proxy";

impl GivenProxy {
    /// What the file says.
    pub(in crate::settings) fn decode(proxy: &mut Table<'_, '_>) -> Self {
        Self {
            to: proxy.several("to", "http://127.0.0.1:3000"),
            listen: proxy.parsed("listen", "127.0.0.1:8080"),
            connect_timeout: proxy.parsed("connect-timeout", "5s"),
            response_timeout: proxy.parsed("response-timeout", "30s"),
            idle_timeout: proxy.parsed("idle-timeout", "60s"),
            upgrade_idle: proxy.parsed("upgrade-idle", "1h"),
            health_path: proxy.parsed("health-path", "/healthz"),
            health_every: proxy.parsed("health-every", "5s"),
            host: proxy.parsed("host", "keep"),
            ca: proxy.text("ca", "ca.pem").map(PathBuf::from),
            keep: proxy.number("keep", range::KEPT, 64),
            via: proxy.boolean("via"),
            // A table without it is told what is missing.
            is_wanted: true,
        }
    }

    /// The same, of someone who wants a proxy and nothing less.
    pub(crate) fn wanted(self) -> Self {
        Self { is_wanted: true, ..self }
    }

    /// What is said here, and where nothing is, what `other` says.
    pub(in crate::settings) fn or(self, other: Self) -> Self {
        Self {
            to: self.to.or(other.to),
            listen: self.listen.or(other.listen),
            connect_timeout: self.connect_timeout.or(other.connect_timeout),
            response_timeout: self.response_timeout.or(other.response_timeout),
            idle_timeout: self.idle_timeout.or(other.idle_timeout),
            upgrade_idle: self.upgrade_idle.or(other.upgrade_idle),
            health_path: self.health_path.or(other.health_path),
            health_every: self.health_every.or(other.health_every),
            host: self.host.or(other.host),
            ca: self.ca.or(other.ca),
            keep: self.keep.or(other.keep),
            via: self.via.or(other.via),
            is_wanted: self.is_wanted || other.is_wanted,
        }
    }

    /// Paths of the file are looked for beside it.
    pub(in crate::settings) fn beside(mut self, folder: &Path) -> Self {
        self.ca = self.ca.map(|ca| folder.join(ca));
        self
    }

    /// What is beyond its range.
    pub(in crate::settings) fn beyond(&self) -> Vec<String> {
        let times = [
            ("proxy connect-timeout", self.connect_timeout),
            ("proxy response-timeout", self.response_timeout),
            ("proxy idle-timeout", self.idle_timeout),
            ("proxy upgrade-idle", self.upgrade_idle),
            ("proxy health-every", self.health_every),
        ];
        let times = times
            .into_iter()
            .filter_map(|(key, time)| range::judge_time(key, time?.0, &range::PROXY_TIME));
        let kept = self.keep.and_then(|keep| range::judge("proxy keep", keep, &range::KEPT));
        times.chain(kept).collect()
    }
}
