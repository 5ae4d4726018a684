//! One ban.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use spillgate::Timestamp;

use super::name::{from_hex, named};
use crate::key::Value;
use crate::policy::ban::BanTerms;
use crate::policy::identity::Identifier;
use crate::policy::lists::Entry;
use crate::store::Edit;
use crate::{Caller, Error, Key, Mode};

/// A caller who is refused until some time.
///
/// ```
/// use std::time::Duration;
/// use spillgate_policy::{Gate, Limit, Policy};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = Gate::new(Policy::builder().limit(Limit::new("api", "10/s")).build()?)?;
/// let hour = Duration::from_secs(3600);
/// let ban = gate.ban("203.0.113.7", hour, Some("scrapes the catalogue")).await?;
/// assert_eq!(ban.caller_text(), "203.0.113.7");
/// assert_eq!(ban.reason(), "scrapes the catalogue");
/// assert_eq!(ban.until().since(ban.since()), hour);
/// assert!(gate.lift("203.0.113.7").await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq)]
pub struct Ban {
    pub(super) caller: Caller<'static>,
    /// The caller as an operator writes it.
    pub(super) text: Box<str>,
    pub(super) limit: Option<Arc<str>>,
    pub(super) reason: Option<Arc<str>>,
    pub(super) count: u32,
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
    pub(super) mode: Mode,
    pub(super) status: StatusCode,
}

/// A ban as it is saved and shared, without its caller and its end.
#[derive(Serialize, Deserialize)]
struct Record {
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    count: u32,
    /// From begin to end.
    length_ms: u64,
    shadow: bool,
    status: u16,
}

impl Ban {
    /// A ban that an operator sets.
    pub(in crate::gate) fn new(
        caller: Caller<'static>,
        identifier: &Identifier,
        since: Timestamp,
        duration: Duration,
    ) -> Self {
        Self {
            text: caller_text(&caller, identifier).into(),
            caller,
            limit: None,
            reason: None,
            count: 1,
            since,
            until: since + duration,
            mode: Mode::Enforce,
            status: StatusCode::TOO_MANY_REQUESTS,
        }
    }

    /// The same for offences against a limit.
    pub(in crate::gate) fn by_limit(self, name: &Arc<str>, terms: &BanTerms, count: u32) -> Self {
        let (mode, status) = (terms.mode, terms.status);
        Self { limit: Some(Arc::clone(name)), count, mode, status, ..self }
    }

    /// True if offences against a limit led to it, and it is the caller's ban of this number.
    pub(in crate::gate) fn is_by(&self, name: &str, terms: &BanTerms, count: u32) -> bool {
        self.limit.as_deref() == Some(name) && self.count == count && self.mode == terms.mode
    }

    /// Who is banned. Shown, an API key or user is a fingerprint.
    #[must_use]
    pub fn caller(&self) -> &Caller<'static> {
        &self.caller
    }

    /// Who is banned, as [`Gate::lift`](crate::Gate::lift) takes it: `203.0.113.7`,
    /// `2001:db8:1:2::/64`, `key:NAME`, `user:NAME`; `key-hex:…` or `user-hex:…` if the name is not
    /// UTF-8. It may be a secret.
    #[must_use]
    pub fn caller_text(&self) -> &str {
        &self.text
    }

    /// Why: what an operator wrote, or the name of the limit.
    #[must_use]
    pub fn reason(&self) -> &str {
        let limit = self.limit.as_deref().unwrap_or("set by an operator");
        self.reason.as_deref().unwrap_or(limit)
    }

    /// The limit against which the caller offended; `None` if an operator set the ban.
    #[must_use]
    pub fn limit(&self) -> Option<&str> {
        self.limit.as_deref()
    }

    /// How many bans there were for that limit with this one, since they were last forgotten.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// When the ban began, by the store's clock.
    #[must_use]
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// When the ban ends, by the store's clock.
    #[must_use]
    pub fn until(&self) -> Timestamp {
        self.until
    }

    /// Whether the caller is refused.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The status with which the caller is refused: 429 or 403.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The same as a change made at run time.
    pub(in crate::gate) fn to_edit(&self) -> Edit {
        let length = self.until.since(self.since).as_millis();
        let record = Record {
            limit: self.limit.as_deref().map(str::to_owned),
            reason: self.reason.as_deref().map(str::to_owned),
            count: self.count,
            length_ms: u64::try_from(length).unwrap_or(u64::MAX),
            shadow: self.mode == Mode::Shadow,
            status: self.status.as_u16(),
        };
        // Texts and numbers can always be written.
        let value = serde_json::to_string(&record).unwrap_or_default();
        Edit::new(edit_key(&self.caller), Some(value), Some(self.until))
    }

    /// The ban that an edit describes; `None` if it describes none.
    pub(super) fn from_edit(edit: &Edit, identifier: &Identifier) -> Option<Self> {
        let caller = parse(&edited_caller(edit)?, identifier).ok()?;
        let record: Record = serde_json::from_str(edit.value.as_deref()?).ok()?;
        let until = edit.until?;
        let length = Duration::from_millis(record.length_ms);
        let status = StatusCode::from_u16(record.status).ok();
        let status = status.filter(|status| [429, 403].contains(&status.as_u16()))?;
        let mode = if record.shadow { Mode::Shadow } else { Mode::Enforce };
        let (limit, reason) = (record.limit.map(Arc::from), record.reason.map(Arc::from));
        let count = record.count;
        let ban = Self::new(caller, identifier, until - length, length);
        Some(Self { limit, reason, count, until, mode, status, ..ban })
    }
}

// Who it is may be a secret, and so may the reason be.
debug_fields!(self: Ban {
    caller: self.caller,
    limit: self.limit,
    count: self.count,
    since: self.since,
    until: self.until,
    mode: self.mode,
});

/// The key of an edit about a caller's ban.
pub(super) fn edit_key(caller: &Caller<'_>) -> String {
    let name = match caller {
        Caller::ApiKey(value) | Caller::User(value) => named(caller.kind(), value),
        other => other.to_string(),
    };
    serde_json::to_string(&("ban", name)).unwrap_or_default()
}

/// Whose ban an edit is about; `None` if it is about something else.
pub(super) fn edited_caller(edit: &Edit) -> Option<String> {
    let (kind, caller): (String, String) = serde_json::from_str(&edit.key).ok()?;
    (kind == "ban").then_some(caller)
}

/// A caller who may be banned, as it is counted.
pub(super) fn parse(text: &str, identifier: &Identifier) -> Result<Caller<'static>, Error> {
    if let Some(caller) = from_hex(text) {
        return Ok(caller);
    }
    let entry = Entry::parse(text).map_err(Error::unknown)?;
    let range = match entry {
        Entry::ApiKey(key) => return Ok(Caller::ApiKey(Cow::Owned(key.into()))),
        Entry::User(user) => return Ok(Caller::User(Cow::Owned(user.into()))),
        Entry::Range(range) => range,
    };
    let address = range.network();
    let counted = identifier.prefixes.length(address.into());
    if range.prefix_len() != range.max_prefix_len() && range.prefix_len() != counted {
        return Err(Error::unknown(format!(
            "{range} is more or less than one caller, which is a /{counted}; to refuse a range, \
             put it on the block list"
        )));
    }
    Ok(identifier.as_counted(Caller::Ip(address)))
}

/// A caller as operators write it.
pub(in crate::gate) fn caller_text(caller: &Caller<'_>, identifier: &Identifier) -> String {
    match caller {
        Caller::ApiKey(key) => named("key", key),
        Caller::User(user) => named("user", user),
        Caller::Anonymous => "anonymous".to_owned(),
        Caller::Ip(address) => {
            let counted = identifier.prefixes.length((*address).into());
            let is_whole = counted == if address.is_ipv4() { 32 } else { 128 };
            let is_cut = IpAddr::from(identifier.cut((*address).into())) == *address;
            if is_whole || !is_cut { address.to_string() } else { format!("{address}/{counted}") }
        }
    }
}

impl Key {
    /// The key of a caller alone.
    pub(in crate::gate) fn of_caller(value: Value<'_>) -> Self {
        let mut key = Self::global();
        key.push(value, true);
        key
    }
}
