use std::path::{Path, PathBuf};

use clap::{ArgAction, Args};
use spillgate_policy::Settings as Table;

use super::value::{ClusterSecret, OnMismatch, Prefix, Url};
use crate::settings::range;
use crate::settings::value::{Hidden, Span};

/// What was said of the store in one place. Whatever was not is left to others.
///
/// Flags are told apart by their ids, since those of the server have some of the same names.
#[derive(Args, Clone, Debug, Default)]
pub(in crate::settings) struct GivenStore {
    /// A Redis or Valkey through which servers share their limits, such as
    /// redis://127.0.0.1:6379 [default: none, each has its own]
    #[arg(
        id = "store",
        long = "store",
        env = "SPILLGATE_STORE",
        hide_env_values = true,
        value_name = "URL",
        help_heading = STORE
    )]
    pub(super) url: Option<Hidden>,
    /// As whom to log in there, unless the URL says so
    #[arg(
        id = "store-user",
        long = "store-user",
        env = "SPILLGATE_STORE_USER",
        value_name = "NAME",
        help_heading = STORE
    )]
    pub(super) user: Option<String>,
    /// With which password. Others on this machine can see flags: rather use the variable, or
    /// --store-password-file
    #[arg(
        id = "store-password",
        long = "store-password",
        env = "SPILLGATE_STORE_PASSWORD",
        hide_env_values = true,
        value_name = "PASSWORD",
        help_heading = STORE
    )]
    pub(super) password: Option<Hidden>,
    /// A file that holds the password
    #[arg(
        id = "store-password-file",
        long = "store-password-file",
        env = "SPILLGATE_STORE_PASSWORD_FILE",
        value_name = "FILE",
        help_heading = STORE
    )]
    pub(super) password_file: Option<PathBuf>,
    /// As whom to log in at the Sentinels, if they ask
    #[arg(
        id = "store-sentinel-user",
        long = "store-sentinel-user",
        env = "SPILLGATE_STORE_SENTINEL_USER",
        value_name = "NAME",
        help_heading = STORE
    )]
    pub(super) sentinel_user: Option<String>,
    /// With which password at the Sentinels
    #[arg(
        id = "store-sentinel-password",
        long = "store-sentinel-password",
        env = "SPILLGATE_STORE_SENTINEL_PASSWORD",
        hide_env_values = true,
        value_name = "PASSWORD",
        help_heading = STORE
    )]
    pub(super) sentinel_password: Option<Hidden>,
    /// A file that holds the password for the Sentinels
    #[arg(
        id = "store-sentinel-password-file",
        long = "store-sentinel-password-file",
        env = "SPILLGATE_STORE_SENTINEL_PASSWORD_FILE",
        value_name = "FILE",
        help_heading = STORE
    )]
    pub(super) sentinel_password_file: Option<PathBuf>,
    /// What callers are hashed under there, the same on every server
    #[arg(
        id = "store-secret",
        long = "store-secret",
        env = "SPILLGATE_STORE_SECRET",
        hide_env_values = true,
        value_name = "SECRET",
        help_heading = STORE
    )]
    pub(super) secret: Option<Hidden>,
    /// A file that holds that
    #[arg(
        id = "store-secret-file",
        long = "store-secret-file",
        env = "SPILLGATE_STORE_SECRET_FILE",
        value_name = "FILE",
        help_heading = STORE
    )]
    pub(super) secret_file: Option<PathBuf>,
    /// What keys begin with there; servers of one prefix share their limits [default:
    /// spillgate:]
    #[arg(
        id = "store-prefix",
        long = "store-prefix",
        env = "SPILLGATE_STORE_PREFIX",
        value_name = "TEXT",
        help_heading = STORE
    )]
    pub(super) prefix: Option<Prefix>,
    /// Certificates, in PEM, that its own must lead to, if the URL is of TLS [default: those
    /// that this machine trusts]
    #[arg(id = "store-ca", long = "store-ca", env = "SPILLGATE_STORE_CA", value_name = "FILE", help_heading = STORE)]
    pub(super) ca: Option<PathBuf>,
    /// A client certificate chain, in PEM, for a Redis that requires one (mutual TLS)
    #[arg(id = "store-cert", long = "store-cert", env = "SPILLGATE_STORE_CERT", value_name = "FILE", help_heading = STORE)]
    pub(super) cert: Option<PathBuf>,
    /// The private key of the client certificate, in PEM
    #[arg(id = "store-key", long = "store-key", env = "SPILLGATE_STORE_KEY", value_name = "FILE", help_heading = STORE)]
    pub(super) key: Option<PathBuf>,
    /// How long connecting may take [default: 250ms]
    #[arg(
        id = "store-connect-timeout",
        long = "store-connect-timeout",
        env = "SPILLGATE_STORE_CONNECT_TIMEOUT",
        value_name = "TIME",
        help_heading = STORE
    )]
    pub(super) connect_timeout: Option<Span>,
    /// How long a decision there may take [default: 250ms]
    #[arg(
        id = "store-command-timeout",
        long = "store-command-timeout",
        env = "SPILLGATE_STORE_COMMAND_TIMEOUT",
        value_name = "TIME",
        help_heading = STORE
    )]
    pub(super) command_timeout: Option<Span>,
    /// How many connections to have to each of its servers [default: 1]
    #[arg(
        id = "store-connections",
        long = "store-connections",
        env = "SPILLGATE_STORE_CONNECTIONS",
        value_name = "COUNT",
        help_heading = STORE
    )]
    pub(super) connections: Option<u64>,
    /// How many servers share the limits: in an outage each has one part of so many [default:
    /// as many as were last seen]
    #[arg(
        id = "store-nodes",
        long = "store-nodes",
        env = "SPILLGATE_STORE_NODES",
        value_name = "COUNT",
        help_heading = STORE
    )]
    pub(super) nodes: Option<u64>,
    /// Starts also if it cannot be reached, in an outage until it can
    #[arg(
        id = "store-start-in-outage",
        long = "store-start-in-outage",
        env = "SPILLGATE_STORE_START_IN_OUTAGE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = ArgAction::Set,
        value_name = "BOOL",
        help_heading = STORE
    )]
    pub(super) start_in_outage: Option<bool>,
    /// Whether to start beside servers that have another secret or policy: warn or refuse
    /// [default: warn]
    #[arg(
        id = "store-on-mismatch",
        long = "store-on-mismatch",
        env = "SPILLGATE_STORE_ON_MISMATCH",
        value_name = "WHAT",
        help_heading = STORE
    )]
    pub(super) on_mismatch: Option<OnMismatch>,
}

const STORE: &str = "Shared store";

impl GivenStore {
    /// What the file says.
    pub(in crate::settings) fn decode(store: &mut Table<'_, '_>) -> Self {
        let hidden = |store: &mut Table<'_, '_>, key| store.secret::<Hidden>(key, "…");
        let path =
            |store: &mut Table<'_, '_>, key, example| store.text(key, example).map(PathBuf::from);
        Self {
            url: store.secret::<Url>("url", Url::EXAMPLE).map(Into::into),
            user: store.text("user", "spillgate"),
            password: hidden(store, "password"),
            password_file: path(store, "password-file", "password"),
            sentinel_user: store.text("sentinel-user", "spillgate"),
            sentinel_password: hidden(store, "sentinel-password"),
            sentinel_password_file: path(store, "sentinel-password-file", "password"),
            secret: store
                .secret::<ClusterSecret>("secret", "the output of openssl rand -hex 32")
                .map(Into::into),
            secret_file: path(store, "secret-file", "secret"),
            prefix: store.parsed("prefix", Prefix::DEFAULT),
            ca: path(store, "ca", "ca.pem"),
            cert: path(store, "cert", "client.pem"),
            key: path(store, "key", "client.key"),
            connect_timeout: store.parsed("connect-timeout", "250ms"),
            command_timeout: store.parsed("command-timeout", "250ms"),
            connections: store.number("connections", range::STORE_CONNECTIONS, 1),
            nodes: store.number("nodes", range::NODES, 3),
            start_in_outage: store.boolean("start-in-outage"),
            on_mismatch: store.parsed("on-mismatch", "warn"),
        }
    }

    /// What is said here, and where nothing is, what `other` says.
    pub(in crate::settings) fn or(self, other: Self) -> Self {
        // A secret in one place goes before a file with one in another.
        let has_password = self.password.is_some() || self.password_file.is_some();
        let has_sentinel_password =
            self.sentinel_password.is_some() || self.sentinel_password_file.is_some();
        let has_secret = self.secret.is_some() || self.secret_file.is_some();
        let passwords = if has_password { &self } else { &other };
        let sentinel_passwords = if has_sentinel_password { &self } else { &other };
        let secrets = if has_secret { &self } else { &other };
        Self {
            password: passwords.password.clone(),
            password_file: passwords.password_file.clone(),
            sentinel_password: sentinel_passwords.sentinel_password.clone(),
            sentinel_password_file: sentinel_passwords.sentinel_password_file.clone(),
            secret: secrets.secret.clone(),
            secret_file: secrets.secret_file.clone(),
            url: self.url.or(other.url),
            user: self.user.or(other.user),
            sentinel_user: self.sentinel_user.or(other.sentinel_user),
            prefix: self.prefix.or(other.prefix),
            ca: self.ca.or(other.ca),
            cert: self.cert.or(other.cert),
            key: self.key.or(other.key),
            connect_timeout: self.connect_timeout.or(other.connect_timeout),
            command_timeout: self.command_timeout.or(other.command_timeout),
            connections: self.connections.or(other.connections),
            nodes: self.nodes.or(other.nodes),
            start_in_outage: self.start_in_outage.or(other.start_in_outage),
            on_mismatch: self.on_mismatch.or(other.on_mismatch),
        }
    }

    /// Paths of the file are looked for beside it.
    pub(in crate::settings) fn beside(mut self, folder: &Path) -> Self {
        let paths = [
            &mut self.password_file,
            &mut self.sentinel_password_file,
            &mut self.secret_file,
            &mut self.ca,
            &mut self.cert,
            &mut self.key,
        ];
        for path in paths.into_iter().flatten() {
            *path = folder.join(&*path);
        }
        self
    }

    /// What is beyond its range.
    pub(in crate::settings) fn beyond(&self) -> Vec<String> {
        let counts = [
            ("store connections", self.connections, range::STORE_CONNECTIONS),
            ("store nodes", self.nodes, range::NODES),
        ];
        let times = [
            ("store connect-timeout", self.connect_timeout, range::STORE_TIMEOUT),
            ("store command-timeout", self.command_timeout, range::STORE_TIMEOUT),
        ];
        let counts =
            counts.into_iter().filter_map(|(key, count, range)| range::judge(key, count?, &range));
        let times = times
            .into_iter()
            .filter_map(|(key, time, range)| range::judge_time(key, time?.0, &range));
        counts.chain(times).collect()
    }

    /// A key that says something, though there is no store.
    pub(super) fn idle_key(&self) -> Option<&'static str> {
        let keys = [
            ("user", self.user.is_some()),
            ("password", self.password.is_some()),
            ("password-file", self.password_file.is_some()),
            ("sentinel-user", self.sentinel_user.is_some()),
            ("sentinel-password", self.sentinel_password.is_some()),
            ("sentinel-password-file", self.sentinel_password_file.is_some()),
            ("secret", self.secret.is_some()),
            ("secret-file", self.secret_file.is_some()),
            ("prefix", self.prefix.is_some()),
            ("ca", self.ca.is_some()),
            ("cert", self.cert.is_some()),
            ("key", self.key.is_some()),
            ("connect-timeout", self.connect_timeout.is_some()),
            ("command-timeout", self.command_timeout.is_some()),
            ("connections", self.connections.is_some()),
            ("nodes", self.nodes.is_some()),
            ("start-in-outage", self.start_in_outage == Some(true)),
            ("on-mismatch", self.on_mismatch.is_some()),
        ];
        keys.into_iter().find_map(|(key, is_given)| is_given.then_some(key))
    }
}
