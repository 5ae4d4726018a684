//! Values of the store. An error says what to write, and never what was a secret.

use std::fmt;
use std::str::FromStr;

use spillgate_redis::client::Options;

use crate::settings::value::Hidden;

/// Where the store is. It may hold a password.
pub(in crate::settings) struct Url(String);

impl Url {
    pub(super) const EXAMPLE: &'static str = "redis://127.0.0.1:6379";
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Options::new(text).map(|_| Self(text.to_owned())).map_err(|error| error.to_string())
    }
}

impl From<Url> for Hidden {
    fn from(url: Url) -> Self {
        Self::new(url.0)
    }
}

/// What the keys of a store begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::settings) struct Prefix(pub(super) String);

impl Prefix {
    pub(super) const DEFAULT: &'static str = "spillgate:";
    const LONGEST: usize = 64;
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A Cluster places a key by what stands in braces.
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"{}".contains(&byte);
        if text.len() > Self::LONGEST || !text.bytes().all(is_plain) {
            let longest = Self::LONGEST;
            return Err(format!(
                "use at most {longest} letters, digits and signs without braces, such as \
                 \"spillgate:\""
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

/// What a server does that finds others with another secret or policy when it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OnMismatch {
    /// It warns, and starts.
    #[default]
    Warn,
    /// It does not start.
    Refuse,
}

impl FromStr for OnMismatch {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "warn" => Ok(Self::Warn),
            "refuse" => Ok(Self::Refuse),
            _ => Err("write \"warn\" or \"refuse\""),
        }
    }
}

/// What servers that share a store hash their callers under.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ClusterSecret(String);

impl ClusterSecret {
    const SHORTEST: usize = 16;

    /// The secret itself.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for ClusterSecret {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (length, shortest) = (text.len(), Self::SHORTEST);
        if length < shortest {
            return Err(format!(
                "it has {length} bytes; use at least {shortest}, such as those of \
                 `openssl rand -hex 32`"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl From<ClusterSecret> for Hidden {
    fn from(secret: ClusterSecret) -> Self {
        Self::new(secret.0)
    }
}

impl fmt::Debug for ClusterSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterSecret(hidden)")
    }
}
