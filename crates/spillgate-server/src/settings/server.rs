//! The table `[server]`, and what all settings come to.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use spillgate::{AlgorithmKind, WhenFull};
use spillgate_net::{Tls, read_file};
use tracing::level_filters::LevelFilter;

use super::declare::{SettingChange, key, settings};
use super::types::{Listen, LogFormat, Token};
use super::value::Value;
use super::{ProxySettings, Source, StoreSettings};
use crate::envoy;
use crate::protocol::http::Bounds;
use crate::protocol::resp::Timeouts;
use crate::protocol::{grpc, http, resp};

/// As many as a table can have.
const COUNT: RangeInclusive<u64> = 1..=1 << 32;
/// hyper reads at least 8 KiB; more than 1 MiB would only help attackers.
const HEADER_BYTES: RangeInclusive<u64> = 8192..=1 << 20;
const BODY_BYTES: RangeInclusive<u64> = 1..=1 << 30;
/// With less, a few slow readers would hold up the other clients.
const BUFFER_BYTES: RangeInclusive<u64> = 1 << 20..=1 << 40;
/// With less, snapshots would be written all the time, and clients cut off while they send.
const INTERVAL: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::MAX;

const GRPC: Listen = Listen::loopback(grpc::DEFAULT_PORT);

settings! {
    /// All settings of a server.
    struct Settings in Server;
    "Listeners" {
        /// HTTP listener, or "off"
        http: Listen = Listen::loopback(http::DEFAULT_PORT), restart;
        /// Redis protocol (RESP) listener, or "off"
        resp: Listen = Listen::loopback(resp::DEFAULT_PORT), restart;
        /// gRPC listener, or "off" [default: 127.0.0.1:8391 if there are limits for
        /// descriptors, else off]
        grpc: Option<Listen> = None, restart;
        /// Second HTTP listener with connections of its own, for health checks and operators
        admin: Listen = Listen::Off, restart;
    }
    "Envoy" {
        /// Directory of envoyproxy/ratelimit configuration files, or one of them, added to the policy
        envoy_config: Option<PathBuf> = None, live;
        /// Algorithm of their limits [default: fixed-window]
        envoy_algorithm: Option<AlgorithmKind> = None, live;
    }
    "Security" {
        /// TLS certificate chain (PEM), for all listeners
        tls_cert: Option<PathBuf> = None, toggle;
        /// TLS private key (PEM)
        tls_key: Option<PathBuf> = None, toggle;
        /// Bearer token for admin routes and remote clients; the variable and --token-file do not
        /// show up in process lists
        token: Option<Token> = None, live;
        /// File that holds the token
        token_file: Option<PathBuf> = None, live;
        /// Accepted host names, in addition to localhost and IP addresses
        allowed_hosts: Vec<String> = Vec::new(), live;
        /// Proxies that may call /auth [default: those on this machine]
        auth_allow: Option<Vec<IpNet>> = None, live;
        /// gRPC clients that need no token [default: those on this machine]
        grpc_allow: Option<Vec<IpNet>> = None, live;
        /// Serve /metrics without the token
        public_metrics: bool = false, live;
    }
    "State" {
        /// Snapshot file, which keeps counters across restarts [default: none]
        snapshot: Option<PathBuf> = None, restart;
        /// Time between snapshots
        snapshot_interval: Duration = Duration::from_secs(30), restart, INTERVAL;
        /// CL.THROTTLE keys to keep in memory, at 26 bytes per key
        throttle_capacity: usize = 1_000_000, restart, COUNT;
        /// What happens to a new CL.THROTTLE key when all of them are in use
        throttle_when_full: WhenFull = WhenFull::Evict, restart;
        /// Maximum number of open reservations
        max_reservations: usize = 100_000, restart, COUNT;
    }
    "Connections" {
        /// Maximum number of connections per listener; others wait [default: 10000]
        max_connections: Option<usize> = None, restart, COUNT;
        /// Close an idle HTTP connection after this time
        http_idle_timeout: Duration = Duration::from_secs(90), restart, INTERVAL;
        /// Close an idle Redis protocol connection after this time
        resp_idle_timeout: Duration = Duration::from_secs(60 * 60), restart, INTERVAL;
        /// Maximum memory for unread replies of all Redis protocol clients together
        max_resp_buffer_bytes: usize = 64 << 20, restart, BUFFER_BYTES;
        /// Time for a client to send a whole request, or to read a reply
        io_timeout: Duration = Duration::from_secs(30), restart, INTERVAL;
        /// Maximum size of an HTTP request's headers
        max_header_bytes: usize = 16_384, restart, HEADER_BYTES;
        /// Maximum size of an HTTP request's body
        max_body_bytes: usize = 1 << 20, restart, BODY_BYTES;
        /// Keep serving this long after SIGTERM while clients are asked to leave (lame duck)
        shutdown_delay: Duration = Duration::from_secs(1), restart;
        /// Time for clients to read their replies during graceful shutdown
        shutdown_timeout: Duration = Duration::from_secs(10), restart;
    }
    "Log" {
        /// Log format, on standard error
        log_format: LogFormat = LogFormat::Text, restart;
        /// Log level
        log_level: LevelFilter = LevelFilter::INFO, restart;
    }
    with {
        /// The Redis that servers share, if they do.
        store: Option<StoreSettings>;
        /// The reverse proxy, if there is one.
        proxy: Option<ProxySettings>;
    }
}

/// The files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl TlsFiles {
    pub(crate) fn load(&self) -> Result<Tls, String> {
        Tls::load(&self.certificate, &self.key)
    }
}

impl Settings {
    /// Reads secrets from their files, and reports settings that contradict each other.
    pub(super) fn complete(&mut self, has_descriptors: bool, problems: &mut Vec<String>) {
        let has_token = self.token.is_some() || self.token_file.is_some();
        read_secret("token", &mut self.token, self.token_file.as_deref(), problems);
        both_or_none(("tls-cert", &self.tls_cert), ("tls-key", &self.tls_key), problems);
        let has_descriptors = has_descriptors || self.envoy_config.is_some();
        let grpc = self.grpc.unwrap_or(if has_descriptors { GRPC } else { Listen::Off });
        self.grpc = Some(grpc);
        let listeners = self.listeners();
        let listens = listeners.map(|(_, listen)| listen);
        problems.extend(self.proxy.as_ref().and_then(|proxy| proxy.loops(&listens)));
        if listens == [Listen::Off; 4] && self.proxy_listen() == Listen::Off {
            problems.push("http, resp, grpc and admin are all off; enable one of them".to_owned());
        }
        if self.envoy_algorithm.is_some() && self.envoy_config.is_none() {
            problems.push("envoy-algorithm is set but envoy-config is not; set both".to_owned());
        }
        // gRPC has addresses of its own that need no token.
        for (name, listen) in listeners.into_iter().filter(|(name, _)| *name != "grpc") {
            if listen.is_public() && !has_token {
                problems.push(format!(
                    "{name} listens on {listen}, which other machines can reach, and there is no \
                     token; set SPILLGATE_TOKEN or token-file, or listen on 127.0.0.1"
                ));
            }
        }
        if grpc.is_public() && !has_token && self.grpc_allow.is_none() {
            problems.push(format!(
                "grpc listens on {grpc}, which other machines can reach, and there is neither a \
                 token nor grpc-allow; set SPILLGATE_TOKEN, token-file or grpc-allow, or listen \
                 on 127.0.0.1"
            ));
        }
    }

    /// Every listener but the proxy's, by the name of its setting.
    pub(crate) fn listeners(&self) -> [(&'static str, Listen); 4] {
        let Self { http, resp, admin, .. } = *self;
        [("http", http), ("resp", resp), ("grpc", self.grpc()), ("admin", admin)]
    }

    pub(crate) fn grpc(&self) -> Listen {
        self.grpc.unwrap_or(Listen::Off)
    }

    /// Where the proxy listens, if there is one.
    pub(crate) fn proxy_listen(&self) -> Listen {
        self.proxy.as_ref().map_or(Listen::Off, |proxy| proxy.listen)
    }

    pub(crate) fn tls(&self) -> Option<TlsFiles> {
        let (certificate, key) = (self.tls_cert.clone()?, self.tls_key.clone()?);
        Some(TlsFiles { certificate, key })
    }

    /// The directory of envoyproxy/ratelimit files, and the algorithm of their limits.
    pub(crate) fn envoy(&self) -> Option<(&Path, AlgorithmKind)> {
        Some((self.envoy_config.as_deref()?, self.envoy_algorithm()))
    }

    pub(super) fn envoy_algorithm(&self) -> AlgorithmKind {
        self.envoy_algorithm.unwrap_or(AlgorithmKind::FixedWindow)
    }

    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            head: self.max_header_bytes,
            body: self.max_body_bytes,
            stalled: self.io_timeout,
            idle: self.http_idle_timeout,
            ..Bounds::default()
        }
    }

    pub(crate) fn timeouts(&self) -> Timeouts {
        Timeouts { idle: self.resp_idle_timeout, stalled: self.io_timeout }
    }

    /// True if other machines can reach HTTP on any listener: then all of them want the token.
    pub(crate) fn http_is_public(&self) -> bool {
        self.http.is_public() || self.admin.is_public()
    }

    /// The files to watch, except those of the policy: first the configuration file, if any.
    pub(crate) fn files(&self, source: &Source) -> Vec<PathBuf> {
        let own = [&source.path, &self.token_file, &self.tls_cert, &self.tls_key];
        let upstream_ca = self.proxy.iter().flat_map(|proxy| &proxy.upstream_ca);
        let store = self.store.iter().flat_map(StoreSettings::files);
        let envoy = self.envoy_config.iter().flat_map(|folder| {
            // If it cannot be read, there are others than before, and the reload says why.
            envoy::files(folder).unwrap_or_default()
        });
        own.into_iter().flatten().chain(upstream_ca).chain(store).cloned().chain(envoy).collect()
    }

    /// The settings that have another value in `new`.
    pub(crate) fn changes(&self, new: &Self) -> Vec<SettingChange> {
        let mut changes = self.own_changes(new);
        changes.extend(StoreSettings::changes(self.store.as_ref(), new.store.as_ref()));
        changes.extend(ProxySettings::changes(self.proxy.as_ref(), new.proxy.as_ref()));
        changes
    }

    /// The settings that have another value in `new`, whose file takes the place of this one's:
    /// paths that are named alike in both folders are the same.
    pub(crate) fn changes_in_place(
        &self,
        new: &Self,
        (folder, new_folder): (&Path, &Path),
    ) -> Vec<SettingChange> {
        let mut moved = new.moved(new_folder, folder);
        moved.store = moved.store.map(|store| store.moved(new_folder, folder));
        moved.proxy = moved.proxy.map(|proxy| proxy.moved(new_folder, folder));
        let differ = self.changes(&moved);
        let mut changes = self.changes(new);
        changes.retain(|change| differ.iter().any(|other| other.is_of_same_key(change)));
        changes
    }
}

/// Reports two settings of which only one is set.
pub(super) fn both_or_none<T>(
    (one, first): (&str, &Option<T>),
    (other, second): (&str, &Option<T>),
    problems: &mut Vec<String>,
) {
    let (set, missing) = match (first, second) {
        (Some(_), None) => (one, other),
        (None, Some(_)) => (other, one),
        _ => return,
    };
    problems.push(format!("{set} is set but {missing} is not; set both"));
}

/// Reads a secret from its file, if there is one.
pub(super) fn read_secret<T: Value>(
    label: &str,
    secret: &mut Option<T>,
    file: Option<&Path>,
    problems: &mut Vec<String>,
) {
    let Some(path) = file else { return };
    if secret.is_some() {
        problems.push(format!("{label} and {label}-file are both set; keep one of them"));
        return;
    }
    let name = path.display();
    let text = read_file(path, 1).map_err(|error| format!("cannot be read: {error}"));
    let text = text.and_then(|bytes| {
        String::from_utf8(bytes).map_err(|_| "is not UTF-8; write it as text".to_owned())
    });
    let parsed = text.and_then(|text| {
        T::parse(text.trim_end()).map_err(|why| format!("holds no {label}: {why}"))
    });
    match parsed {
        Ok(value) => *secret = Some(value),
        Err(why) => problems.push(format!("the {label}-file {name} {why}")),
    }
}
