use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::address::Target;
use super::credentials::CredentialStore;
use super::url;
use crate::backend::Result;

/// The address of Redis, credentials and timeouts.
///
/// | URL | for |
/// |---|---|
/// | `redis://host:6379/0` | one server; `valkey://` is the same |
/// | `rediss://host:6379` | one server, with TLS |
/// | `unix:///run/redis.sock` | one server, over a socket in the file system |
/// | `redis+sentinel://host:26379,other:26379/service` | the master of a service |
/// | `redis+cluster://host:6379,other:6379` | a Cluster; one node that is up is enough |
///
/// `rediss+sentinel://` and `rediss+cluster://` are the same with TLS. User and password may
/// precede the hosts, `redis://user:password@host`, or be [set separately](Self::password).
///
/// # Required ACL
///
/// ```text
/// ACL SETUSER limiter on >password ~spillgate:* +evalsha +script|load +info +time +select
///     +get +set +getdel +del +zadd +zcard +zcount +zmscore +zrange +zrem
///     +zremrangebyscore +pexpire +persist
/// ```
///
/// where `spillgate:` is the [prefix](Self::prefix); in a Cluster also `+cluster|slots +asking`. At a
/// Sentinel it is `+sentinel|get-master-addr-by-name +subscribe +ping`, and `&*` for the channels.
#[derive(Clone, Debug)]
#[must_use = "options connect nothing by themselves"]
pub struct Options {
    pub(super) target: Target,
    pub(super) sources: Sources,
    pub(super) database: u32,
    pub(super) prefix: String,
    pub(super) connect_time_out: Duration,
    pub(super) command_time_out: Duration,
    pub(super) probe_interval: Duration,
    pub(super) check_interval: Duration,
    pub(super) connections: usize,
    pub(super) in_flight: usize,
    pub(super) waiting: usize,
}

/// The sources of credentials. Files are read for every connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sources {
    pub(super) is_tls: bool,
    pub(super) login: Login,
    pub(super) sentinel_login: Login,
    pub(super) authorities: Option<PathBuf>,
    /// Certificate chain and private key.
    pub(super) client_certificate: Option<(PathBuf, PathBuf)>,
}

/// User and password.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) user: Option<String>,
    pub(super) password: Option<Password>,
    /// Takes precedence over the password.
    pub(super) password_file: Option<PathBuf>,
}

impl Options {
    /// Options for this URL, with defaults.
    ///
    /// # Errors
    ///
    /// If the URL is invalid. The message does not contain a password.
    pub fn new(url: &str) -> Result<Self> {
        let parsed = url::parse(url)?;
        let login = Login { user: parsed.user, password: parsed.password, password_file: None };
        let sources = Sources {
            is_tls: parsed.is_tls,
            login,
            sentinel_login: Login::default(),
            authorities: None,
            client_certificate: None,
        };
        Ok(Self {
            target: parsed.target,
            sources,
            database: parsed.database,
            prefix: "spillgate:".to_owned(),
            connect_time_out: Duration::from_millis(250),
            command_time_out: Duration::from_millis(250),
            probe_interval: Duration::from_millis(100),
            check_interval: Duration::from_secs(60),
            connections: 1,
            in_flight: 4096,
            waiting: 8192,
        })
    }

    /// Reads the files that these options name, without connecting.
    ///
    /// # Errors
    ///
    /// If one cannot be read or used. The message names it.
    pub fn check(&self) -> Result<()> {
        CredentialStore::new(self.sources.clone(), self.connect_time_out).map(|_| ())
    }

    /// Client certificate chain and private key (PEM files) for mutual TLS. Both are read for every
    /// connection.
    pub fn client_certificate(
        mut self,
        chain: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.sources.client_certificate = Some((chain.into(), key.into()));
        self
    }
}

setters! { Options {
    /// The ACL user, in place of the one in the URL.
    user(user: impl Into<String>): sources.login.user = Some(user.into());

    /// The password, in place of the one in the URL.
    password(text: impl Into<String>): sources.login.password = Some(Password(text.into()));

    /// A file with the password. It is read for every connection, so that the password can be
    /// rotated; see also [`Client::renew_credentials`](super::Client::renew_credentials).
    password_file(file: impl Into<PathBuf>): sources.login.password_file = Some(file.into());

    /// The ACL user of the Sentinels. The one in the URL is for the servers.
    sentinel_user(user: impl Into<String>): sources.sentinel_login.user = Some(user.into());

    /// The password of the Sentinels.
    sentinel_password(text: impl Into<String>):
        sources.sentinel_login.password = Some(Password(text.into()));

    /// A file with the password of the Sentinels, read for every connection.
    sentinel_password_file(file: impl Into<PathBuf>):
        sources.sentinel_login.password_file = Some(file.into());

    /// Trusted CA certificates (PEM file). Default: those of the system.
    authorities(file: impl Into<PathBuf>): sources.authorities = Some(file.into());

    /// The prefix of all keys. Nodes with the same prefix share their limits.
    prefix(prefix: impl Into<String>): prefix = prefix.into();

    /// Timeout of opening a connection, including the handshake. Default: 250 ms.
    connect_time_out(time_out: Duration): connect_time_out = time_out;

    /// Timeout of a call. Default: 250 ms.
    command_time_out(time_out: Duration): command_time_out = time_out;

    /// How often a Redis that is down is probed. Default: every 100 ms.
    probe_interval(interval: Duration): probe_interval = interval;

    /// How often the eviction policy of a server is checked. Default: every minute.
    check_interval(interval: Duration): check_interval = interval;

    /// Connections per server, at least one, shared by all calls. Default: 1.
    connections(connections: usize): connections = connections.max(1);

    /// The most calls in flight per server. Default: 4,096. Usually far fewer keep it busy; others
    /// are queued.
    in_flight(calls: usize): in_flight = calls.max(1);

    /// The most queued calls. Default: 8,192. Beyond, the client with the most loses its newest
    /// one, which fails as [`Overloaded`](crate::backend::Fault::Overloaded).
    waiting(calls: usize): waiting = calls;
} }

/// A password. `Debug` never shows it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Password(pub(super) String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Nor is the user: in `redis://password@host` it is the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |is_set: bool| if is_set { "…" } else { "none" };
        f.debug_struct("Login")
            .field("user", &shown(self.user.is_some()))
            .field("password", &shown(self.password.is_some()))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_shown_without_passwords() {
        let options = Options::new("redis+sentinel://me:hunter2@a/main").unwrap();
        let options = options.sentinel_password("hunter2");
        assert!(!format!("{options:?}").contains("hunter2"));
        let options = options.password("hunter2");
        assert!(!format!("{options:?}").contains("hunter2"));
    }
}
