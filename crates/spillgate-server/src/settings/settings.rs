use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use spillgate_net::Tls;

use super::load::read_small;
use super::value::{Listen, LogFormat, LogLevel, Span, Token};
use super::{ConfigError, Given, ProxySettings, Source, StoreSettings};
use crate::envoy::{self, Algorithm};
use crate::protocol::http::Bounds;
use crate::protocol::resp::Timeouts;
use crate::protocol::{grpc, http, resp};

/// What a server does, once all has been said.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) http: Listen,
    pub(crate) resp: Listen,
    pub(crate) grpc: Listen,
    /// HTTP as well, for probes and operators.
    pub(crate) admin: Listen,
    /// Files of envoyproxy/ratelimit, and how their quotas are spent.
    pub(crate) envoy: Option<(PathBuf, Algorithm)>,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) token: Option<Token>,
    /// Where the token was read, to be looked at again.
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) hosts: Vec<String>,
    pub(crate) auth_from: Option<Vec<IpNet>>,
    pub(crate) grpc_from: Vec<IpNet>,
    pub(crate) metrics_open: bool,
    pub(crate) snapshot: Option<PathBuf>,
    pub(crate) snapshot_every: Duration,
    pub(crate) throttle_capacity: usize,
    pub(crate) reservations: usize,
    /// `None` if as many as there is room for will do.
    pub(crate) connections: Option<usize>,
    pub(crate) resp_buffers: usize,
    pub(crate) bounds: Bounds,
    pub(crate) timeouts: Timeouts,
    pub(crate) lame_duck: Duration,
    pub(crate) drain: Duration,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: LogLevel,
    pub(crate) store: Option<StoreSettings>,
    pub(crate) proxy: Option<ProxySettings>,
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
    /// Fills in defaults, and tells everything that does not go together. Where nothing is
    /// said of gRPC, it is spoken if the policy has limits for descriptors.
    pub(super) fn new(given: Given, has_descriptors: bool) -> Result<Self, ConfigError> {
        let mut problems = given.beyond();
        let token = token(&given).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        });
        let tls = tls(&given).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        });
        let store = StoreSettings::new(&given.store, &mut problems);
        let proxy = ProxySettings::new(&given.proxy, &mut problems);
        let [http, resp, grpc] = [
            (given.http, http::DEFAULT_PORT),
            (given.resp, resp::DEFAULT_PORT),
            (given.grpc, grpc::DEFAULT_PORT),
        ]
        .map(|(listen, port)| listen.unwrap_or(Listen::At(([127, 0, 0, 1], port).into())));
        let speaks_grpc = has_descriptors || given.envoy_config.is_some() || given.grpc.is_some();
        let grpc = if speaks_grpc { grpc } else { Listen::Off };
        let admin = given.admin.unwrap_or(Listen::Off);
        let listens = [http, resp, grpc, admin];
        problems.extend(proxy.as_ref().and_then(|proxy| proxy.loops(&listens)));
        let proxies = proxy.as_ref().is_some_and(|proxy| proxy.listen != Listen::Off);
        if listens == [Listen::Off; 4] && !proxies {
            problems
                .push("http, resp, grpc and admin are all off; listen on one of them".to_owned());
        }
        if given.envoy_algorithm.is_some() && given.envoy_config.is_none() {
            problems.push("there is an envoy-algorithm but no envoy-config; add it".to_owned());
        }
        let has_token = given.token.is_some() || given.token_file.is_some();
        for (name, listen) in [("http", http), ("resp", resp), ("admin", admin)] {
            if listen.is_public() && !has_token {
                problems.push(format!(
                    "{name} listens on {listen}, which other machines can reach, and there is no \
                     token; set SPILLGATE_TOKEN or token-file, or listen on 127.0.0.1"
                ));
            }
        }
        if grpc.is_public() && !has_token && given.grpc_from.is_none() {
            problems.push(format!(
                "grpc listens on {grpc}, which other machines can reach, and there is neither a \
                 token nor grpc-from; set SPILLGATE_TOKEN, token-file or grpc-from, or listen on \
                 127.0.0.1"
            ));
        }
        if !problems.is_empty() {
            return Err(ConfigError::new(problems));
        }
        let settings = Self::filled(given, token, tls);
        Ok(Self { http, resp, grpc, admin, store, proxy, ..settings })
    }

    /// What is said alone, but for listeners and the store.
    fn filled(given: Given, token: Option<Token>, tls: Option<TlsFiles>) -> Self {
        let mut bounds = Bounds::default();
        let mut timeouts = Timeouts::default();
        set(&mut bounds.idle, given.http_idle.map(|Span(idle)| idle));
        set(&mut bounds.stalled, given.stalled.map(|Span(stalled)| stalled));
        set(&mut bounds.head, given.http_head.map(size));
        set(&mut bounds.body, given.http_body.map(size));
        set(&mut timeouts.idle, given.resp_idle.map(|Span(idle)| idle));
        set(&mut timeouts.stalled, given.stalled.map(|Span(stalled)| stalled));
        let ranges =
            |ranges: Vec<super::value::Range>| ranges.iter().map(|range| range.0).collect();
        let algorithm = given.envoy_algorithm.unwrap_or_default();
        Self {
            http: Listen::Off,
            resp: Listen::Off,
            grpc: Listen::Off,
            admin: Listen::Off,
            envoy: given.envoy_config.map(|folder| (folder, algorithm)),
            tls,
            token,
            token_file: given.token_file,
            hosts: given.hosts.unwrap_or_default(),
            auth_from: given.auth_from.map(ranges),
            grpc_from: given.grpc_from.map_or_else(Vec::new, ranges),
            metrics_open: given.metrics_open.unwrap_or(false),
            snapshot: given.snapshot,
            snapshot_every: time(given.snapshot_every, 30),
            throttle_capacity: given.throttle_capacity.map_or(1_000_000, size),
            reservations: given.reservations.map_or(100_000, size),
            connections: given.connections.map(size),
            resp_buffers: given.resp_buffers.map_or(64 << 20, size),
            bounds,
            timeouts,
            lame_duck: time(given.lame_duck, 1),
            drain: time(given.drain, 10),
            log_format: given.log_format.unwrap_or_default(),
            log_level: given.log_level.unwrap_or_default(),
            store: None,
            proxy: None,
        }
    }

    /// True if other machines can reach HTTP, wherever it listens: then it wants the token
    /// everywhere.
    pub(crate) fn http_is_public(&self) -> bool {
        self.http.is_public() || self.admin.is_public()
    }

    /// Where the proxy listens, if there is one.
    pub(crate) fn proxy_listen(&self) -> Listen {
        self.proxy.as_ref().map_or(Listen::Off, |proxy| proxy.listen)
    }

    /// The files that these come from, but for those that the policy names.
    pub(crate) fn files(&self, source: &Source) -> Vec<PathBuf> {
        let tls = self.tls.iter().flat_map(|tls| [&tls.certificate, &tls.key]);
        let envoy = self.envoy.iter().flat_map(|(folder, _)| {
            // If it cannot be read, there are others than before, and the reload says why.
            envoy::files(folder).unwrap_or_default()
        });
        let ca = self.proxy.iter().flat_map(|proxy| &proxy.runtime.ca);
        let store = self.store.iter().flat_map(StoreSettings::files);
        let files = source.path.iter().chain(&self.token_file).chain(tls).chain(ca).chain(store);
        files.cloned().chain(envoy).collect()
    }

    /// The keys of what cannot become as in `new` before the server is started again.
    pub(crate) fn frozen(&self, new: &Self) -> Vec<&'static str> {
        let differs = [
            ("http", self.http != new.http),
            ("resp", self.resp != new.resp),
            ("grpc", self.grpc != new.grpc),
            ("admin", self.admin != new.admin),
            ("tls-certificate", self.tls.is_some() != new.tls.is_some()),
            ("snapshot", self.snapshot != new.snapshot),
            ("snapshot-every", self.snapshot_every != new.snapshot_every),
            ("throttle-capacity", self.throttle_capacity != new.throttle_capacity),
            ("reservations", self.reservations != new.reservations),
            ("connections", self.connections != new.connections),
            ("resp-buffers", self.resp_buffers != new.resp_buffers),
            ("http-idle", self.bounds.idle != new.bounds.idle),
            ("http-head", self.bounds.head != new.bounds.head),
            ("http-body", self.bounds.body != new.bounds.body),
            ("resp-idle", self.timeouts.idle != new.timeouts.idle),
            ("stalled", self.timeouts.stalled != new.timeouts.stalled),
            ("lame-duck", self.lame_duck != new.lame_duck),
            ("drain", self.drain != new.drain),
            ("log-format", self.log_format != new.log_format),
            ("log-level", self.log_level != new.log_level),
        ];
        differs.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
    }
}

fn token(given: &Given) -> Result<Option<Token>, String> {
    match (&given.token, &given.token_file) {
        (Some(_), Some(_)) => {
            Err("there are a token and a token-file; keep one of them".to_owned())
        }
        (None, None) => Ok(None),
        (Some(token), None) => token
            .reveal()
            .parse()
            .map(Some)
            .map_err(|error| format!("the token cannot be used: {error}")),
        (None, Some(path)) => read_token(path).map(Some),
    }
}

fn read_token(path: &Path) -> Result<Token, String> {
    let name = path.display();
    let bytes = read_small(path)
        .map_err(|error| format!("the token-file {name} cannot be read: {error}"))?;
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| format!("the token-file {name} is not a text"))?;
    text.trim_end().parse().map_err(|error| format!("the token of {name}: {error}"))
}

fn tls(given: &Given) -> Result<Option<TlsFiles>, String> {
    match (given.tls_certificate.clone(), given.tls_key.clone()) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        (Some(_), None) => Err("there is a tls-certificate but no tls-key; add it".to_owned()),
        (None, Some(_)) => Err("there is a tls-key but no tls-certificate; add it".to_owned()),
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

pub(super) fn time(span: Option<Span>, seconds: u64) -> Duration {
    span.map_or(Duration::from_secs(seconds), |Span(time)| time)
}

pub(super) fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
