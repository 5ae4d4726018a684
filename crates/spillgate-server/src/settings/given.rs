use std::path::{Path, PathBuf};

use super::proxy::GivenProxy;
use super::store::GivenStore;
use super::value::{Hidden, Listen, LogFormat, LogLevel, Range, Span};
use crate::envoy::Algorithm;
use clap::{Arg, ArgAction, Args};

/// What was said in one place. Whatever was not is left to others.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Given {
    /// Where to listen for HTTP, or "off" [default: 127.0.0.1:8390]
    #[arg(long, env = "SPILLGATE_HTTP", value_name = "ADDRESS")]
    pub(super) http: Option<Listen>,
    /// Where to listen for the Redis protocol, or "off" [default: 127.0.0.1:6390]
    #[arg(long, env = "SPILLGATE_RESP", value_name = "ADDRESS")]
    pub(super) resp: Option<Listen>,
    /// Where to listen for gRPC, or "off" [default: 127.0.0.1:8391 if there are limits for
    /// descriptors, else off]
    #[arg(long, env = "SPILLGATE_GRPC", value_name = "ADDRESS")]
    pub(super) grpc: Option<Listen>,
    /// Where to listen for HTTP with room of its own, for probes and operators [default: off]
    #[arg(long, env = "SPILLGATE_ADMIN", value_name = "ADDRESS")]
    pub(super) admin: Option<Listen>,
    /// A folder with configuration files of envoyproxy/ratelimit, whose limits count beside
    /// those of the policy
    #[arg(long, env = "SPILLGATE_ENVOY_CONFIG", value_name = "FOLDER")]
    pub(super) envoy_config: Option<PathBuf>,
    /// How their quotas are spent: fixed-window or token-bucket [default: fixed-window]
    #[arg(long, env = "SPILLGATE_ENVOY_ALGORITHM", value_name = "ALGORITHM")]
    pub(super) envoy_algorithm: Option<Algorithm>,
    /// The certificate for TLS, in PEM, with those that lead to a known one
    #[arg(long, env = "SPILLGATE_TLS_CERTIFICATE", value_name = "FILE", help_heading = SECURITY)]
    pub(super) tls_certificate: Option<PathBuf>,
    /// The certificate's private key, in PEM
    #[arg(long, env = "SPILLGATE_TLS_KEY", value_name = "FILE", help_heading = SECURITY)]
    pub(super) tls_key: Option<PathBuf>,
    /// The token that admin routes, and everyone elsewhere, must give. Others on this machine
    /// can see flags: rather use the variable, or --token-file
    #[arg(
        long,
        env = "SPILLGATE_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN",
        help_heading = SECURITY
    )]
    pub(super) token: Option<Hidden>,
    /// A file that holds the token
    #[arg(long, env = "SPILLGATE_TOKEN_FILE", value_name = "FILE", help_heading = SECURITY)]
    pub(super) token_file: Option<PathBuf>,
    /// Names under which the server is called, beside localhost and addresses
    #[arg(
        long,
        env = "SPILLGATE_HOSTS",
        value_name = "NAME,…",
        value_delimiter = ',',
        help_heading = SECURITY
    )]
    pub(super) hosts: Option<Vec<String>>,
    /// Proxies that may ask /auth about their clients [default: those on this machine]
    #[arg(
        long,
        env = "SPILLGATE_AUTH_FROM",
        value_name = "RANGE,…",
        value_delimiter = ',',
        help_heading = SECURITY
    )]
    pub(super) auth_from: Option<Vec<Range>>,
    /// Those who may ask over gRPC without the token [default: programs on this machine]
    #[arg(
        long,
        env = "SPILLGATE_GRPC_FROM",
        value_name = "RANGE,…",
        value_delimiter = ',',
        help_heading = SECURITY
    )]
    pub(super) grpc_from: Option<Vec<Range>>,
    /// Shows /metrics without the token
    #[arg(
        long,
        env = "SPILLGATE_METRICS_OPEN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = ArgAction::Set,
        value_name = "BOOL",
        help_heading = SECURITY
    )]
    pub(super) metrics_open: Option<bool>,
    /// Where to keep what was spent, so that a restart forgives nobody [default: nowhere]
    #[arg(long, env = "SPILLGATE_SNAPSHOT", value_name = "FILE", help_heading = STATE)]
    pub(super) snapshot: Option<PathBuf>,
    /// How often it is written [default: 30s]
    #[arg(long, env = "SPILLGATE_SNAPSHOT_EVERY", value_name = "TIME", help_heading = STATE)]
    pub(super) snapshot_every: Option<Span>,
    /// How many keys of CL.THROTTLE there is room for, at 26 bytes each [default: 1000000]
    #[arg(long, env = "SPILLGATE_THROTTLE_CAPACITY", value_name = "KEYS", help_heading = STATE)]
    pub(super) throttle_capacity: Option<u64>,
    /// How many reservations may be open [default: 100000]
    #[arg(long, env = "SPILLGATE_RESERVATIONS", value_name = "COUNT", help_heading = STATE)]
    pub(super) reservations: Option<u64>,
    /// How many clients of each protocol may be connected at once; others wait [default:
    /// 10000]
    #[arg(long, env = "SPILLGATE_CONNECTIONS", value_name = "CLIENTS", help_heading = CLIENTS)]
    pub(super) connections: Option<u64>,
    /// How long a connection for HTTP may be silent [default: 90s]
    #[arg(long, env = "SPILLGATE_HTTP_IDLE", value_name = "TIME", help_heading = CLIENTS)]
    pub(super) http_idle: Option<Span>,
    /// How long a connection for the Redis protocol may be silent [default: 1h]
    #[arg(long, env = "SPILLGATE_RESP_IDLE", value_name = "TIME", help_heading = CLIENTS)]
    pub(super) resp_idle: Option<Span>,
    /// How many bytes clients of the Redis protocol may take together for replies that they do
    /// not read [default: 67108864]
    #[arg(long, env = "SPILLGATE_RESP_BUFFERS", value_name = "BYTES", help_heading = CLIENTS)]
    pub(super) resp_buffers: Option<u64>,
    /// How long a client may take to send a request, or to read a reply [default: 30s]
    #[arg(long, env = "SPILLGATE_STALLED", value_name = "TIME", help_heading = CLIENTS)]
    pub(super) stalled: Option<Span>,
    /// The largest head of a request over HTTP [default: 16384]
    #[arg(long, env = "SPILLGATE_HTTP_HEAD", value_name = "BYTES", help_heading = CLIENTS)]
    pub(super) http_head: Option<u64>,
    /// The largest body of a request over HTTP [default: 1048576]
    #[arg(long, env = "SPILLGATE_HTTP_BODY", value_name = "BYTES", help_heading = CLIENTS)]
    pub(super) http_body: Option<u64>,
    /// How long the server goes on at SIGTERM, while it tells clients to leave [default: 1s]
    #[arg(long, env = "SPILLGATE_LAME_DUCK", value_name = "TIME", help_heading = CLIENTS)]
    pub(super) lame_duck: Option<Span>,
    /// How long clients have to read their replies after that [default: 10s]
    #[arg(long, env = "SPILLGATE_DRAIN", value_name = "TIME", help_heading = CLIENTS)]
    pub(super) drain: Option<Span>,
    /// How the log is written, to standard error: text or json [default: text]
    #[arg(long, env = "SPILLGATE_LOG_FORMAT", value_name = "FORMAT", help_heading = LOG)]
    pub(super) log_format: Option<LogFormat>,
    /// What is worth a line: error, warn, info, debug, trace or off [default: info]
    #[arg(long, env = "SPILLGATE_LOG_LEVEL", value_name = "LEVEL", help_heading = LOG)]
    pub(super) log_level: Option<LogLevel>,
    #[command(flatten)]
    pub(super) store: GivenStore,
    /// Flags of its own are those of another command.
    #[arg(skip)]
    pub(crate) proxy: GivenProxy,
}

const SECURITY: &str = "Security";
const STATE: &str = "State";
const CLIENTS: &str = "Clients";
const LOG: &str = "Log";

impl Given {
    /// What holds for a proxy where nothing is said: it speaks nothing that it was not asked
    /// to.
    pub(crate) fn of_proxy() -> Self {
        Self { resp: Some(Listen::Off), grpc: Some(Listen::Off), ..Self::default() }
    }

    /// The same for the help of a flag.
    pub(crate) fn proxy_help(flag: Arg) -> Arg {
        if !["resp", "grpc"].contains(&flag.get_id().as_str()) {
            return flag;
        }
        let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
        let what = help.split(" [default:").next().unwrap_or_default();
        let told = format!("{what} [default: off]");
        flag.help(told)
    }

    /// What is said here, and where nothing is, what `other` says.
    pub(super) fn or(self, other: Self) -> Self {
        // A token in one place goes before a file with one in another.
        let has_token = self.token.is_some() || self.token_file.is_some();
        let tokens = if has_token { &self } else { &other };
        let (token, token_file) = (tokens.token.clone(), tokens.token_file.clone());
        Self {
            token,
            token_file,
            http: self.http.or(other.http),
            resp: self.resp.or(other.resp),
            grpc: self.grpc.or(other.grpc),
            admin: self.admin.or(other.admin),
            envoy_config: self.envoy_config.or(other.envoy_config),
            envoy_algorithm: self.envoy_algorithm.or(other.envoy_algorithm),
            tls_certificate: self.tls_certificate.or(other.tls_certificate),
            tls_key: self.tls_key.or(other.tls_key),
            hosts: self.hosts.or(other.hosts),
            auth_from: self.auth_from.or(other.auth_from),
            grpc_from: self.grpc_from.or(other.grpc_from),
            metrics_open: self.metrics_open.or(other.metrics_open),
            snapshot: self.snapshot.or(other.snapshot),
            snapshot_every: self.snapshot_every.or(other.snapshot_every),
            throttle_capacity: self.throttle_capacity.or(other.throttle_capacity),
            reservations: self.reservations.or(other.reservations),
            connections: self.connections.or(other.connections),
            http_idle: self.http_idle.or(other.http_idle),
            resp_idle: self.resp_idle.or(other.resp_idle),
            resp_buffers: self.resp_buffers.or(other.resp_buffers),
            stalled: self.stalled.or(other.stalled),
            http_head: self.http_head.or(other.http_head),
            http_body: self.http_body.or(other.http_body),
            lame_duck: self.lame_duck.or(other.lame_duck),
            drain: self.drain.or(other.drain),
            log_format: self.log_format.or(other.log_format),
            log_level: self.log_level.or(other.log_level),
            store: self.store.or(other.store),
            proxy: self.proxy.or(other.proxy),
        }
    }

    /// Paths of the file are looked for beside it.
    pub(super) fn beside(mut self, folder: &Path) -> Self {
        let paths = [
            &mut self.tls_certificate,
            &mut self.tls_key,
            &mut self.token_file,
            &mut self.snapshot,
            &mut self.envoy_config,
        ];
        for path in paths.into_iter().flatten() {
            *path = folder.join(&*path);
        }
        self.store = self.store.beside(folder);
        self.proxy = self.proxy.beside(folder);
        self
    }
}
