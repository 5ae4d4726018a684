use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use spillgate_policy::Error;
use spillgate_redis::backend::BackendError;
use spillgate_redis::client::Options;
use spillgate_redis::{Secret, Settings as Sharing};

use super::GivenStore;
use super::value::{ClusterSecret, OnMismatch, Prefix, Url};
use crate::settings::load::read_small;
use crate::settings::value::{Hidden, Span};

/// The store that servers share, once all has been said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreSettings {
    pub(crate) url: Hidden,
    pub(crate) credentials: StoreCredentials,
    pub(crate) secret: Option<ClusterSecret>,
    pub(crate) prefix: String,
    pub(crate) connect_timeout: Duration,
    pub(crate) command_timeout: Duration,
    pub(crate) connections: usize,
    /// `None` if those count that were last seen.
    pub(crate) nodes: Option<NonZeroU32>,
    pub(crate) start_in_outage: bool,
    pub(crate) on_mismatch: OnMismatch,
}

/// As whom to connect to the store. These can change in a reload, and the files are read again
/// for every connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreCredentials {
    user: Option<String>,
    password: Option<Password>,
    sentinel_user: Option<String>,
    sentinel_password: Option<Password>,
    ca: Option<PathBuf>,
    /// The client certificate chain and its key.
    certificate: Option<(PathBuf, PathBuf)>,
}

/// A password, or where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Password {
    Given(Hidden),
    File(PathBuf),
}

impl StoreSettings {
    /// Fills in defaults, and tells everything that does not go together; `None` if there is
    /// no store.
    pub(in crate::settings) fn new(given: &GivenStore, problems: &mut Vec<String>) -> Option<Self> {
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
        let credentials = StoreCredentials::new(given, url.reveal(), problems);
        let secret = one_of("secret", &given.secret, &given.secret_file);
        let secret = secret.unwrap_or_else(|problem| {
            problems.push(problem);
            None
        });
        let secret = secret.map(|secret| secret.reveal().parse()).transpose();
        let secret = secret.unwrap_or_else(|error| {
            problems.push(format!("the store secret cannot be used: {error}"));
            None
        });
        let time = |span: Option<Span>, millis| {
            span.map_or(Duration::from_millis(millis), |Span(time)| time)
        };
        if given.start_in_outage == Some(true) && given.nodes.is_none() {
            problems.push(NODES_NEEDED.to_owned());
        }
        let nodes = given.nodes.and_then(|nodes| u32::try_from(nodes).ok());
        let connections = given.connections.and_then(|count| usize::try_from(count).ok());
        Some(Self {
            url,
            credentials,
            secret,
            prefix: given.prefix.clone().map_or(Prefix::DEFAULT.to_owned(), |prefix| prefix.0),
            connect_timeout: time(given.connect_timeout, 250),
            command_timeout: time(given.command_timeout, 250),
            connections: connections.unwrap_or(1),
            nodes: nodes.and_then(NonZeroU32::new),
            start_in_outage: given.start_in_outage.unwrap_or(false),
            on_mismatch: given.on_mismatch.unwrap_or_default(),
        })
    }

    /// How to connect to it.
    pub(crate) fn options(&self) -> Result<Options, BackendError> {
        let options = Options::new(self.url.reveal())?
            .prefix(&self.prefix)
            .connect_time_out(self.connect_timeout)
            .command_time_out(self.command_timeout)
            .connections(self.connections);
        Ok(self.credentials.added_to(options))
    }

    /// True if `new` differs in more than credentials, which needs a restart.
    pub(crate) fn is_frozen_out(&self, new: &Self) -> bool {
        let rest = |settings: &Self| Self {
            url: Hidden::new(settings.place()),
            credentials: StoreCredentials::default(),
            ..settings.clone()
        };
        rest(self) != rest(new)
    }

    /// The files of credentials, which are looked at again.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let StoreCredentials { password, sentinel_password, ca, certificate, .. } =
            &self.credentials;
        let passwords = [password, sentinel_password].into_iter().flatten();
        let passwords = passwords.filter_map(|password| match password {
            Password::Given(_) => None,
            Password::File(path) => Some(path),
        });
        let certificate = certificate.iter().flat_map(|(chain, key)| [chain, key]);
        passwords.chain(ca).chain(certificate)
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
        let refuses = self.on_mismatch == OnMismatch::Refuse;
        let mut sharing = Sharing::default().refuse_mismatch(refuses);
        if let Some(secret) = &self.secret {
            sharing = sharing.secret(Secret::new(secret.reveal())?);
        }
        if let Some(nodes) = self.nodes {
            sharing = sharing.nodes(nodes);
        }
        Ok(sharing)
    }
}

impl StoreCredentials {
    /// What was said, once the files were read, and everything that does not go together.
    fn new(given: &GivenStore, url: &str, problems: &mut Vec<String>) -> Self {
        let mut password = |key, given: &Option<Hidden>, file: &Option<PathBuf>| {
            // Read now to tell what is wrong, and again for every connection.
            if let Err(problem) = one_of(key, given, file) {
                problems.push(problem);
            }
            let file = file.clone().map(Password::File);
            given.clone().map(Password::Given).or(file)
        };
        let own = password("password", &given.password, &given.password_file);
        let of_sentinels =
            password("sentinel-password", &given.sentinel_password, &given.sentinel_password_file);
        Self {
            user: given.user.clone(),
            password: own,
            sentinel_user: given.sentinel_user.clone(),
            sentinel_password: of_sentinels,
            ca: given.ca.clone(),
            certificate: certificate(given, url, problems),
        }
    }

    fn added_to(&self, mut options: Options) -> Options {
        if let Some(user) = &self.user {
            options = options.user(user);
        }
        options = match &self.password {
            None => options,
            Some(Password::Given(password)) => options.password(password.reveal()),
            Some(Password::File(path)) => options.password_file(path),
        };
        if let Some(user) = &self.sentinel_user {
            options = options.sentinel_user(user);
        }
        options = match &self.sentinel_password {
            None => options,
            Some(Password::Given(password)) => options.sentinel_password(password.reveal()),
            Some(Password::File(path)) => options.sentinel_password_file(path),
        };
        if let Some(ca) = &self.ca {
            options = options.authorities(ca);
        }
        match &self.certificate {
            None => options,
            Some((chain, key)) => options.client_certificate(chain, key),
        }
    }
}

/// The client certificate and its key, which go together, and with TLS.
fn certificate(
    given: &GivenStore,
    url: &str,
    problems: &mut Vec<String>,
) -> Option<(PathBuf, PathBuf)> {
    let (chain, key) = match (given.cert.clone(), given.key.clone()) {
        (None, None) => return None,
        (Some(chain), Some(key)) => (chain, key),
        (Some(_), None) => {
            problems.push("there is a store cert but no store key; add it".to_owned());
            return None;
        }
        (None, Some(_)) => {
            problems.push("there is a store key but no store cert; add it".to_owned());
            return None;
        }
    };
    let is_tls = ["rediss", "valkeys"].iter().any(|scheme| url.starts_with(scheme));
    if !is_tls {
        problems.push(
            "there are a store cert and key, but the store url is not of TLS; begin it with \
             rediss://, or leave them out"
                .to_owned(),
        );
    }
    Some((chain, key))
}
/// Why a start in an outage needs to be told how many servers there are.
const NODES_NEEDED: &str = "store start-in-outage needs store nodes: a server that has not reached the \
    store yet does not know how many others there are, and would take the whole quota for its share; \
    add nodes = 3, or however many servers there are";

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
