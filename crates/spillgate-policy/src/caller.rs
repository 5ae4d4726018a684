use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::LazyLock;

use crate::Error;

/// Who is calling: a kind and a value. Callers of different kinds are never the same.
///
/// A key or a user may be a secret, or personal, so they are shown as a fingerprint,
/// which is the same for the life of the process: `api-key:#5f3a9c21`.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Caller<'r> {
    /// By API key.
    ApiKey(Cow<'r, [u8]>),
    /// By user.
    User(Cow<'r, [u8]>),
    /// By address or, if it was cut to a prefix, network.
    Ip(IpAddr),
    /// Without any identity.
    Anonymous,
}

impl Caller<'_> {
    /// A caller from its text: `api-key:NAME` (or `key:NAME`), `user:NAME`,
    /// `ip:ADDRESS` (or the address alone), `anonymous`.
    pub(crate) fn parse(text: &str) -> Result<Caller<'static>, String> {
        let (kind, value) = text.split_once(':').unwrap_or((text, ""));
        let bytes = || Cow::Owned(value.as_bytes().to_vec());
        match kind {
            "api-key" | "key" | "user" if value.is_empty() => {
                Err(format!("\"{kind}:\" names nobody; write \"{kind}:NAME\""))
            }
            "api-key" | "key" => Ok(Caller::ApiKey(bytes())),
            "user" => Ok(Caller::User(bytes())),
            "anonymous" if text == kind => Ok(Caller::Anonymous),
            _ => {
                // An IPv6 address has colons of its own.
                let address = text.strip_prefix("ip:").unwrap_or(text);
                let address: Result<IpAddr, _> = address.parse().map_err(|_| {
                    "not a caller; write \"api-key:NAME\", \"user:NAME\", \"ip:ADDRESS\" or \
                     \"anonymous\""
                        .to_owned()
                });
                Ok(Caller::Ip(address?.to_canonical()))
            }
        }
    }

    /// The kind: `api-key`, `user`, `ip` or `anonymous`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ApiKey(_) => "api-key",
            Self::User(_) => "user",
            Self::Ip(_) => "ip",
            Self::Anonymous => "anonymous",
        }
    }

    /// The same caller, without a copy.
    pub(crate) fn borrowed(&self) -> Caller<'_> {
        match self {
            Self::ApiKey(key) => Caller::ApiKey(Cow::Borrowed(key)),
            Self::User(user) => Caller::User(Cow::Borrowed(user)),
            Self::Ip(address) => Caller::Ip(*address),
            Self::Anonymous => Caller::Anonymous,
        }
    }

    /// The same caller, kept beyond its request.
    #[must_use]
    pub fn into_owned(self) -> Caller<'static> {
        match self {
            Self::ApiKey(key) => Caller::ApiKey(Cow::Owned(key.into_owned())),
            Self::User(user) => Caller::User(Cow::Owned(user.into_owned())),
            Self::Ip(address) => Caller::Ip(address),
            Self::Anonymous => Caller::Anonymous,
        }
    }
}

/// From the text of overrides and lists: `api-key:NAME` (or `key:NAME`), `user:NAME`, `ip:ADDRESS`
/// (or the address alone), `anonymous`.
///
/// ```
/// use spillgate_policy::Caller;
///
/// let caller: Caller<'static> = "user:42".parse()?;
/// assert_eq!(caller, Caller::User(b"42".into()));
/// assert!("42".parse::<Caller<'static>>().is_err());
/// # Ok::<(), spillgate_policy::Error>(())
/// ```
impl FromStr for Caller<'static> {
    type Err = Error;

    /// The text may be a secret, so that the error does not quote it.
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text).map_err(Error::unknown)
    }
}

impl fmt::Display for Caller<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiKey(value) | Self::User(value) => {
                write!(f, "{}:{}", self.kind(), Masked(value))
            }
            Self::Ip(address) => write!(f, "ip:{address}"),
            Self::Anonymous => f.write_str("anonymous"),
        }
    }
}

impl fmt::Debug for Caller<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Caller({self})")
    }
}

/// A value that may be a secret, shown as a fingerprint.
pub(crate) struct Masked<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Masked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A secret key keeps anyone from finding the value by trying. It is not that of the
        // tables: their hash is linear, so that a part of it would tell which keys collide.
        static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        write!(f, "#{:08x}", SECRET.hash_one(self.0) as u32)
    }
}

#[cfg(test)]
mod tests {
    use spillgate::KeyedState;

    use super::*;

    #[test]
    fn what_is_shown_of_a_key_tells_nothing_of_its_place_in_a_table() {
        for key in ["k1", "k2", "k3", "k4"] {
            let shown = Masked(key.as_bytes()).to_string();
            assert_eq!(shown, Masked(key.as_bytes()).to_string());
            let hash = KeyedState::new().hash_one(key.as_bytes());
            for half in [hash as u32, (hash >> 32) as u32] {
                assert_ne!(shown, format!("#{half:08x}"));
            }
        }
    }
}
