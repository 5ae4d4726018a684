use std::fmt;
use std::sync::Arc;

use super::{At, all};

/// How callers are identified: by default by API key, then user, then address.
///
/// ```
/// use spillgate_policy::{Accept, Identity};
///
/// let identity = Identity::new()
///     .trusted_proxies(["10.0.0.0/8"])
///     .api_key("x-api-key", Accept::keys(["k1", "k2"]))
///     .user("x-user-id", Accept::TrustedProxies);
/// ```
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "kebab-case", deny_unknown_fields))]
#[must_use = "it does nothing until it is part of a policy"]
pub struct Identity {
    /// What identifies a caller, the first that is present and accepted: `api-key`, `user`, `ip`.
    /// A caller with none of them is "anonymous". Default: all three, in this order.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub(crate) order: Option<Vec<At<String>>>,
    /// Where the API key is. Default: nowhere.
    pub(crate) api_key: Option<HeaderIdentity>,
    /// Where the user is. Default: nowhere.
    pub(crate) user: Option<HeaderIdentity>,
    /// The header that names the caller's tier. Believed from trusted proxies only.
    /// Default: none.
    pub(crate) tier_header: Option<At<String>>,
    /// Addresses and ranges of the proxies in front of this service, which may speak
    /// for their clients. Default: none.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub(crate) trusted_proxies: Vec<At<String>>,
    /// The headers in which trusted proxies name the client, the first that is there:
    /// `forwarded`, `x-forwarded-for`, `x-real-ip`, `cf-connecting-ip`. Name only those
    /// that the proxies overwrite or append to. Default: `x-forwarded-for`.
    pub(crate) client_ip: Option<Vec<At<String>>>,
    /// The prefix length by which IPv4 callers are counted: 0 to 32. Default: 32.
    #[cfg_attr(feature = "schema", schemars(range(max = 32)))]
    pub(crate) ipv4_prefix: Option<At<u8>>,
    /// The prefix length by which IPv6 callers are counted: 0 to 128. Default: 64, what one
    /// subscriber usually has.
    #[cfg_attr(feature = "schema", schemars(range(max = 128)))]
    pub(crate) ipv6_prefix: Option<At<u8>>,
}

/// A header that names a caller, and when it is believed.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "kebab-case", deny_unknown_fields))]
pub struct HeaderIdentity {
    /// The header's name. For `authorization`, what follows `Bearer ` is the value.
    pub(crate) header: At<String>,
    /// When the header counts: `"trusted-proxies"` (the default), a list of the values
    /// that are known, the name of a file with one on each line, or `"any"` if
    /// something else has checked it already.
    #[cfg_attr(feature = "schema", schemars(default, with = "AcceptText"))]
    pub(crate) accept: At<Accept>,
}

/// When a header that a client could have invented is believed.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Accept {
    /// If a trusted proxy sent it.
    #[default]
    TrustedProxies,
    /// Always: something else has checked it already.
    Any,
    /// If it is one of these.
    Keys(Vec<String>),
    /// If it is on a line of this file.
    File(String),
    /// If the acceptor accepts it.
    Acceptor(Acceptor),
}

/// A closure that says whether a key or a user is known.
#[derive(Clone)]
pub struct Acceptor(pub(crate) AcceptClosure);

type AcceptClosure = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Keys are secrets, so they are not shown.
impl fmt::Debug for Accept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TrustedProxies => f.write_str("TrustedProxies"),
            Self::Any => f.write_str("Any"),
            Self::Keys(keys) => write!(f, "Keys({} of them)", keys.len()),
            Self::File(name) => write!(f, "File({name:?})"),
            Self::Acceptor(acceptor) => acceptor.fmt(f),
        }
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acceptor(closure)")
    }
}

impl Accept {
    /// Accepts the keys that are listed.
    pub fn keys<T: Into<String>>(keys: impl IntoIterator<Item = T>) -> Self {
        Self::Keys(keys.into_iter().map(Into::into).collect())
    }

    /// Accepts what a closure accepts. It is asked for every request that has the
    /// header, so it should be quick. It must not call the gate.
    pub fn closure(accepts: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        Self::Acceptor(Acceptor(Arc::new(accepts)))
    }
}

/// Where keys and users are, if nothing else is said.
pub(crate) const API_KEY: &str = "x-api-key";
pub(crate) const USER: &str = "x-user-id";

impl Identity {
    /// The default: no header is trusted, so callers are identified by their peer address.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says what names a caller, the first that is there and accepted: `api-key`,
    /// `user`, `ip`.
    pub fn order<T: Into<String>>(mut self, order: impl IntoIterator<Item = T>) -> Self {
        self.order = Some(all(order));
        self
    }

    /// Reads the API key from a header.
    pub fn api_key(mut self, header: impl Into<String>, accept: Accept) -> Self {
        self.api_key = Some(HeaderIdentity::new(header, accept));
        self
    }

    /// Reads the user from a header.
    pub fn user(mut self, header: impl Into<String>, accept: Accept) -> Self {
        self.user = Some(HeaderIdentity::new(header, accept));
        self
    }

    pub(crate) fn accept_api_keys(mut self, accept: Accept) -> Self {
        let header = self.api_key.map_or_else(|| API_KEY.to_owned().into(), |by| by.header);
        self.api_key = Some(HeaderIdentity { header, accept: At::from(accept) });
        self
    }

    pub(crate) fn accept_users(mut self, accept: Accept) -> Self {
        let header = self.user.map_or_else(|| USER.to_owned().into(), |by| by.header);
        self.user = Some(HeaderIdentity { header, accept: At::from(accept) });
        self
    }

    /// Reads the caller's tier from a header that trusted proxies set.
    pub fn tier_header(mut self, header: impl Into<String>) -> Self {
        self.tier_header = Some(At::from(header.into()));
        self
    }

    /// Names the proxies that may speak for their clients: addresses and ranges.
    pub fn trusted_proxies<T: Into<String>>(
        mut self,
        addresses: impl IntoIterator<Item = T>,
    ) -> Self {
        self.trusted_proxies = all(addresses);
        self
    }

    /// Names the headers in which trusted proxies name the client, the first that is
    /// there: `forwarded`, `x-forwarded-for`, `x-real-ip`, `cf-connecting-ip`.
    pub fn client_ip<T: Into<String>>(mut self, headers: impl IntoIterator<Item = T>) -> Self {
        self.client_ip = Some(all(headers));
        self
    }

    /// Cuts IPv4 addresses to so many bits.
    pub fn ipv4_prefix(mut self, bits: u8) -> Self {
        self.ipv4_prefix = Some(At::from(bits));
        self
    }

    /// Cuts IPv6 addresses to so many bits.
    pub fn ipv6_prefix(mut self, bits: u8) -> Self {
        self.ipv6_prefix = Some(At::from(bits));
        self
    }
}

impl HeaderIdentity {
    fn new(header: impl Into<String>, accept: Accept) -> Self {
        Self { header: At::from(header.into()), accept: At::from(accept) }
    }
}

/// `Accept` as the file writes it.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "describes a shape")]
enum AcceptText {
    /// `trusted-proxies`, `any`, or the name of a file with one key on each line.
    Text(String),
    /// The keys that are known.
    Keys(Vec<String>),
}
