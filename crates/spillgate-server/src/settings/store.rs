//! The table `[store]`: the Redis through which servers share their limits.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use spillgate_policy::Error;
use spillgate_redis::backend::BackendError;
use spillgate_redis::client::Options;
use spillgate_redis::{Secret, Settings as Sharing};

use super::declare::{Section, SettingChange, Sources, key, settings};
use super::server::{both_or_none, read_secret};
use super::types::Password;
use super::value::{Value, hidden, words};

/// One is enough for a core's worth of decisions; more than 64 would be idle.
const POOL: RangeInclusive<u64> = 1..=64;
const NODES: RangeInclusive<u64> = 1..=100_000;
/// Less than a round trip would always be an outage; nobody waits longer for a decision.
const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10);

settings! {
    /// The Redis through which servers share their limits. Credentials can change in a reload,
    /// and their files are read again for every connection.
    struct StoreSettings in Store;
    "Shared store" {
        /// Redis or Valkey to share limits through, such as redis://127.0.0.1:6379 [default:
        /// none, limits are per server]
        url: Option<Url> = None, live;
        /// Redis username, unless the URL has one
        username: Option<String> = None, live;
        /// Redis password; the variable and --store-password-file do not show up in process lists
        password: Option<Password> = None, live;
        /// File that holds the Redis password
        password_file: Option<PathBuf> = None, live;
        /// Sentinel username
        sentinel_username: Option<String> = None, live;
        /// Sentinel password
        sentinel_password: Option<Password> = None, live;
        /// File that holds the Sentinel password
        sentinel_password_file: Option<PathBuf> = None, live;
        /// Secret that callers are hashed with, the same on every server
        secret: Option<ClusterSecret> = None, restart;
        /// File that holds that secret
        secret_file: Option<PathBuf> = None, restart;
        /// Prefix of all keys in Redis; servers with the same prefix share their limits
        key_prefix: Prefix = Prefix::default(), restart;
        /// CA certificates (PEM) for rediss:// [default: those of the system]
        tls_ca: Option<PathBuf> = None, live;
        /// Client certificate chain (PEM), for mutual TLS
        tls_cert: Option<PathBuf> = None, live;
        /// Client private key (PEM)
        tls_key: Option<PathBuf> = None, live;
        /// Timeout for connecting to Redis
        connect_timeout: Duration = Duration::from_millis(250), restart, TIMEOUT;
        /// Timeout of a decision in Redis
        command_timeout: Duration = Duration::from_millis(250), restart, TIMEOUT;
        /// Connections per Redis server
        pool_size: usize = 1, restart, POOL;
        /// Number of servers that share the limits; each serves one share during an outage
        /// [default: as many as were last seen]
        nodes: Option<usize> = None, restart, NODES;
        /// Start even if Redis cannot be reached
        start_in_outage: bool = false, restart;
        /// Start next to servers that have another secret or policy: warn or refuse
        on_mismatch: OnMismatch = OnMismatch::Warn, restart;
    }
}

impl StoreSettings {
    /// Reads the secret from its file, and reports contradictions. `None` if no store is set.
    pub(super) fn complete(
        mut self,
        sources: &Sources<'_>,
        problems: &mut Vec<String>,
    ) -> Option<Self> {
        let Some(url) = &self.url else {
            // That it does not start in an outage can be said without a store.
            let mut set = sources
                .set_in(Section::Store)
                .filter(|key| *key != key!(start_in_outage) || self.start_in_outage);
            problems.extend(set.next().map(|key| {
                format!(
                    "store {key} is set but url is not; add url = {:?} to [store]",
                    Url::EXAMPLE
                )
            }));
            return None;
        };
        // Read now to report problems, and again for every connection.
        let Self { password, password_file, sentinel_password, sentinel_password_file, .. } = &self;
        let mut passwords = (password.clone(), sentinel_password.clone());
        read_secret("store password", &mut passwords.0, password_file.as_deref(), problems);
        let file = sentinel_password_file.as_deref();
        read_secret("store sentinel-password", &mut passwords.1, file, problems);
        let pair = [("store tls-cert", &self.tls_cert), ("store tls-key", &self.tls_key)];
        both_or_none(pair[0], pair[1], problems);
        let is_tls = ["rediss", "valkeys"].iter().any(|scheme| url.0.starts_with(scheme));
        if self.tls_cert.is_some() && self.tls_key.is_some() && !is_tls {
            problems.push(
                "store tls-cert and tls-key are set but the store url has no TLS; begin it with \
                 rediss://, or leave them out"
                    .to_owned(),
            );
        }
        if self.start_in_outage && self.nodes.is_none() {
            problems.push(NODES_NEEDED.to_owned());
        }
        read_secret("store secret", &mut self.secret, self.secret_file.as_deref(), problems);
        Some(self)
    }

    /// How to connect to it.
    pub(crate) fn options(&self) -> Result<Options, BackendError> {
        let url = self.url.as_ref().map_or("", |url| url.0.as_str());
        let mut options = Options::new(url)?
            .prefix(&self.key_prefix.0)
            .connect_time_out(self.connect_timeout)
            .command_time_out(self.command_timeout)
            .connections(self.pool_size);
        if let Some(user) = &self.username {
            options = options.user(user);
        }
        options = match (&self.password, &self.password_file) {
            (Some(password), _) => options.password(password.reveal()),
            (None, Some(path)) => options.password_file(path),
            (None, None) => options,
        };
        if let Some(user) = &self.sentinel_username {
            options = options.sentinel_user(user);
        }
        options = match (&self.sentinel_password, &self.sentinel_password_file) {
            (Some(password), _) => options.sentinel_password(password.reveal()),
            (None, Some(path)) => options.sentinel_password_file(path),
            (None, None) => options,
        };
        if let Some(ca) = &self.tls_ca {
            options = options.authorities(ca);
        }
        Ok(match (&self.tls_cert, &self.tls_key) {
            (Some(chain), Some(key)) => options.client_certificate(chain, key),
            _ => options,
        })
    }

    /// The changed settings. Only credentials of the same Redis can change in a reload.
    pub(super) fn changes(old: Option<&Self>, new: Option<&Self>) -> Vec<SettingChange> {
        let places = [old, new].map(|side| side.map(Self::place));
        let url = SettingChange::new((Section::Store, key!(url)), (&places[0], &places[1]), true);
        match (old, new) {
            (None, None) => Vec::new(),
            (Some(old), Some(new)) if old.place() == new.place() => old.own_changes(new),
            (Some(old), Some(new)) => {
                let others =
                    old.own_changes(new).into_iter().filter(|change| change.key != url.key);
                std::iter::once(url.clone()).chain(others).collect()
            }
            (None, Some(_)) | (Some(_), None) => vec![url],
        }
    }

    /// The files of credentials, which are watched.
    pub(super) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let Self { password_file, sentinel_password_file, tls_ca, tls_cert, tls_key, .. } = self;
        let files = [password_file, sentinel_password_file, tls_ca, tls_cert, tls_key];
        files.into_iter().flatten()
    }

    /// The URL without username and password.
    pub(crate) fn place(&self) -> String {
        let url = self.url.as_ref().map_or("", |url| url.0.as_str());
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let hosts = rest.rsplit_once('@').map_or(rest, |(_, hosts)| hosts);
        format!("{scheme}://{hosts}")
    }

    /// How to share limits there.
    pub(crate) fn sharing(&self) -> Result<Sharing, Error> {
        let refuses = self.on_mismatch == OnMismatch::Refuse;
        let mut sharing = Sharing::default().refuse_mismatch(refuses);
        if let Some(secret) = &self.secret {
            sharing = sharing.secret(Secret::new(&secret.0)?);
        }
        let nodes = self.nodes.and_then(|nodes| u32::try_from(nodes).ok());
        Ok(match nodes.and_then(NonZeroU32::new) {
            Some(nodes) => sharing.nodes(nodes),
            None => sharing,
        })
    }
}

const NODES_NEEDED: &str = "store start-in-outage needs store nodes: a server that has not reached the \
    store yet does not know how many others there are, and would take the whole quota for its share; \
    add nodes = 3, or however many servers there are";

/// The URL of a Redis. It may hold a password, so no message shows it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Url(String);

impl Value for Url {
    type Bound = ();
    const PLACEHOLDER: &'static str = "URL";
    const EXAMPLE: &'static str = "redis://127.0.0.1:6379";
    const IS_SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        Options::new(text).map(|_| Self(text.to_owned())).map_err(|error| error.to_string())
    }
}

/// What all keys in Redis begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prefix(String);

impl Default for Prefix {
    fn default() -> Self {
        Self("spillgate:".to_owned())
    }
}

impl Value for Prefix {
    type Bound = ();
    const PLACEHOLDER: &'static str = "TEXT";
    const EXAMPLE: &'static str = "spillgate:";

    fn parse(text: &str) -> Result<Self, String> {
        const LONGEST: usize = 64;
        // A Cluster hashes only what is in braces.
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"{}".contains(&byte);
        if text.len() > LONGEST || !text.bytes().all(is_plain) {
            return Err(format!(
                "use at most {LONGEST} letters, digits and punctuation without braces, such as \
                 \"spillgate:\""
            ));
        }
        Ok(Self(text.to_owned()))
    }

    fn shown(&self) -> Option<String> {
        Some(self.0.clone())
    }
}

/// What a server does at its start if others have another secret or policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnMismatch {
    Warn,
    Refuse,
}

words!(OnMismatch, ["warn" => OnMismatch::Warn, "refuse" => OnMismatch::Refuse]);

/// The secret that servers hash callers with.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ClusterSecret(String);

impl Value for ClusterSecret {
    type Bound = ();
    const PLACEHOLDER: &'static str = "SECRET";
    const EXAMPLE: &'static str = "the output of openssl rand -hex 32";
    const IS_SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        const SHORTEST: usize = 16;
        let length = text.len();
        if length < SHORTEST {
            return Err(format!(
                "it has {length} bytes; use at least {SHORTEST}, such as those of \
                 `openssl rand -hex 32`"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

hidden!(Url, ClusterSecret);
