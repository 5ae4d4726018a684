use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tollgate_policy::Error;
use tollgate_redis::engine::{EngineError, Options};
use tollgate_redis::{Secret, Settings as Sharing};

use super::GivenStore;
use super::value::{ClusterSecret, Prefix, Url};
use crate::config::load::read_small;
use crate::config::value::{Hidden, Span};

/// The store that servers share, once all has been said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreSettings {
    pub(crate) url: Hidden,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Hidden>,
    pub(crate) sentinel_user: Option<String>,
    pub(crate) sentinel_password: Option<Hidden>,
    pub(crate) secret: Option<ClusterSecret>,
    pub(crate) prefix: String,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) connect_timeout: Duration,
    pub(crate) command_timeout: Duration,
    pub(crate) connections: usize,
    /// `None` if those count that were last seen.
    pub(crate) nodes: Option<NonZeroU32>,
    pub(crate) start_in_outage: bool,
}

impl StoreSettings {
    /// Fills in defaults, and tells everything that does not go together; `None` if there is
    /// no store.
    pub(in crate::config) fn new(given: &GivenStore, problems: &mut Vec<String>) -> Option<Self> {
        let Some(url) = given.url.clone() else {
            problems.extend(given.idle_key().map(|key| {
                let example = Url::EXAMPLE;
                format!("store {key} is given, but no URL; add url = \"{example}\" to [store]")
            }));
            return None;
        };
        if let Err(error) = url.reveal().parse::<Url>() {
            problems.push(format!("store url: {error}"));
        }
        let mut told = |result: Result<Option<Hidden>, String>| {
            result.unwrap_or_else(|problem| {
                problems.push(problem);
                None
            })
        };
        let password = told(one_of("password", &given.password, &given.password_file));
        let secret = told(one_of("secret", &given.secret, &given.secret_file));
        let secret = secret.map(|secret| secret.reveal().parse()).transpose();
        let secret = secret.unwrap_or_else(|error| {
            problems.push(format!("the store secret cannot be used: {error}"));
            None
        });
        let time = |span: Option<Span>, millis| {
            span.map_or(Duration::from_millis(millis), |Span(time)| time)
        };
        let nodes = given.nodes.and_then(|nodes| u32::try_from(nodes).ok());
        let connections = given.connections.and_then(|count| usize::try_from(count).ok());
        Some(Self {
            url,
            user: given.user.clone(),
            password,
            sentinel_user: given.sentinel_user.clone(),
            sentinel_password: given.sentinel_password.clone(),
            secret,
            prefix: given.prefix.clone().map_or(Prefix::DEFAULT.to_owned(), |prefix| prefix.0),
            ca: given.ca.clone(),
            connect_timeout: time(given.connect_timeout, 250),
            command_timeout: time(given.command_timeout, 50),
            connections: connections.unwrap_or(1),
            nodes: nodes.and_then(NonZeroU32::new),
            start_in_outage: given.start_in_outage.unwrap_or(false),
        })
    }

    /// How to connect to it.
    pub(crate) fn options(&self) -> Result<Options, EngineError> {
        let mut options = Options::new(self.url.reveal())?
            .prefix(&self.prefix)
            .connect_time_out(self.connect_timeout)
            .command_time_out(self.command_timeout)
            .connections(self.connections);
        if let Some(user) = &self.user {
            options = options.user(user);
        }
        if let Some(password) = &self.password {
            options = options.password(password.reveal());
        }
        if let Some(user) = &self.sentinel_user {
            options = options.sentinel_user(user);
        }
        if let Some(password) = &self.sentinel_password {
            options = options.sentinel_password(password.reveal());
        }
        if let Some(ca) = &self.ca {
            options = options.authorities(ca);
        }
        Ok(options)
    }

    /// Where it is, without user and password.
    pub(crate) fn place(&self) -> String {
        let url = self.url.reveal();
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let hosts = rest.rsplit_once('@').map_or(rest, |(_, hosts)| hosts);
        format!("{scheme}://{hosts}")
    }

    /// How to share limits there.
    pub(crate) fn sharing(&self) -> Result<Sharing, Error> {
        let mut sharing = Sharing::default();
        if let Some(secret) = &self.secret {
            sharing = sharing.secret(Secret::new(secret.reveal())?);
        }
        if let Some(nodes) = self.nodes {
            sharing = sharing.nodes(nodes);
        }
        Ok(sharing)
    }
}

/// A secret that is given, or stands in a file.
fn one_of(
    key: &str,
    given: &Option<Hidden>,
    file: &Option<PathBuf>,
) -> Result<Option<Hidden>, String> {
    match (given, file) {
        (Some(_), Some(_)) => {
            Err(format!("there are a store {key} and a store {key}-file; keep one of them"))
        }
        (Some(given), None) => Ok(Some(given.clone())),
        (None, Some(path)) => read(key, path).map(Some),
        (None, None) => Ok(None),
    }
}

fn read(key: &str, path: &Path) -> Result<Hidden, String> {
    let name = path.display();
    let bytes = read_small(path)
        .map_err(|error| format!("the store {key}-file {name} cannot be read: {error}"))?;
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| format!("the store {key}-file {name} is not a text"))?;
    Ok(Hidden::new(text.trim_end()))
}
