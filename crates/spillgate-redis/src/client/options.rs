use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::address::Target;
use super::credentials::CredentialStore;
use super::url;
use crate::backend::BackendError;

/// Where Redis is, and how it is talked to.
///
/// | URL | for |
/// |---|---|
/// | `redis://host:6379/0` | one server; `valkey://` is the same |
/// | `rediss://host:6379` | one server, with TLS |
/// | `unix:///run/redis.sock` | one server, over a socket in the file system |
/// | `redis+sentinel://host:26379,other:26379/service` | the master of a service |
/// | `redis+cluster://host:6379,other:6379` | a Cluster; one node that is up is enough |
///
/// `rediss+sentinel://` and `rediss+cluster://` are the same with TLS. A user and a password may
/// stand before the hosts, `redis://user:password@host`, or be [given apart](Self::password).
///
/// # What a user must be allowed
///
/// ```text
/// ACL SETUSER limiter on >password ~spillgate:* +evalsha +script|load +info +time +select
///     +get +set +getdel +del +zadd +zcard +zrange +zrem +zremrangebyscore +pexpire
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

/// Where credentials come from. Files are read for every connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sources {
    pub(super) is_tls: bool,
    pub(super) login: Login,
    pub(super) sentinel_login: Login,
    pub(super) authorities: Option<PathBuf>,
    /// The certificate chain and its key.
    pub(super) client_certificate: Option<(PathBuf, PathBuf)>,
}

/// As whom to connect.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) user: Option<String>,
    pub(super) password: Option<Password>,
    /// Goes before the password.
    pub(super) password_file: Option<PathBuf>,
}

impl Options {
    /// Options for this URL, else as they are by default.
    ///
    /// # Errors
    ///
    /// If it cannot be read. The text tells why, and no password.
    pub fn new(url: &str) -> Result<Self, BackendError> {
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
            check_interval: Duration::from_secs(10),
            connections: 1,
            in_flight: 4096,
            waiting: 8192,
        })
    }

    /// Reads the files that these options name, and connects to nothing.
    ///
    /// # Errors
    ///
    /// If one cannot be read or used. The text tells which, and why.
    pub fn check(&self) -> Result<(), BackendError> {
        CredentialStore::new(self.sources.clone(), self.connect_time_out).map(|_| ())
    }

    /// The user of the server's access control list, rather than the one in the URL.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.sources.login.user = Some(user.into());
        self
    }

    /// The password, rather than the one in the URL.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.sources.login.password = Some(Password::new(password.into()));
        self
    }

    /// A file that holds the password. It is read again for every connection, so that a password
    /// can be rotated; see also [`Client::renew_credentials`](super::Client::renew_credentials).
    pub fn password_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.sources.login.password_file = Some(file.into());
        self
    }

    /// The user of the Sentinels' own access control list. Those of the URL are the server's.
    pub fn sentinel_user(mut self, user: impl Into<String>) -> Self {
        self.sources.sentinel_login.user = Some(user.into());
        self
    }

    /// The password of the Sentinels themselves.
    pub fn sentinel_password(mut self, password: impl Into<String>) -> Self {
        self.sources.sentinel_login.password = Some(Password::new(password.into()));
        self
    }

    /// A file that holds the password of the Sentinels, read again for every connection.
    pub fn sentinel_password_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.sources.sentinel_login.password_file = Some(file.into());
        self
    }

    /// A file of PEM certificates: only what they have signed is believed. By default those
    /// are that the system believes.
    pub fn authorities(mut self, file: impl Into<PathBuf>) -> Self {
        self.sources.authorities = Some(file.into());
        self
    }

    /// A client certificate chain and its private key, as PEM files, for servers that ask for
    /// one (mutual TLS). Both are read again for every connection.
    pub fn client_certificate(
        mut self,
        chain: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.sources.client_certificate = Some((chain.into(), key.into()));
        self
    }

    /// What all keys begin with. Nodes share their limits if they have the same.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How long a connection may take until the server has answered on it: 250 ms by default.
    pub fn connect_time_out(mut self, time_out: Duration) -> Self {
        self.connect_time_out = time_out;
        self
    }

    /// How long a call may take: 250 ms by default.
    pub fn command_time_out(mut self, time_out: Duration) -> Self {
        self.command_time_out = time_out;
        self
    }

    /// How often Redis that is down is tried: every 100 ms by default.
    pub fn probe_interval(mut self, interval: Duration) -> Self {
        self.probe_interval = interval;
        self
    }

    /// How often a server is checked for an eviction policy that may drop keys: every 10 s by
    /// default.
    pub fn check_interval(mut self, interval: Duration) -> Self {
        self.check_interval = interval;
        self
    }

    /// How many connections there are to each server, at least one, which is the default:
    /// calls share them.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// How many calls may be under way to a server at once: 4,096 by default. There are mostly far
    /// fewer, as many as keep it busy; those beyond wait for their turn.
    pub fn in_flight(mut self, calls: usize) -> Self {
        self.in_flight = calls.max(1);
        self
    }

    /// How many calls may wait for their turn: 8,192 by default. Of those beyond, whoever has the
    /// most loses the newest, which fails as [`Overloaded`](crate::backend::Fault::Overloaded).
    pub fn waiting(mut self, calls: usize) -> Self {
        self.waiting = calls;
        self
    }
}

/// A password. `Debug` never shows it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Password(String);

impl Password {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A user is not shown either: `redis://password@host` has one that is none.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |is_given: bool| if is_given { "…" } else { "none" };
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
