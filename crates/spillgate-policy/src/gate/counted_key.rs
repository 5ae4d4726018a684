//! Keys that are shown after their request has ended.

use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use super::admin::find;
use super::bans::caller_text;
use super::{LimitState, Outcome, Subject};
use crate::key::{Described, KeyValue, Value};
use crate::policy::Part;
use crate::{Key, Policy};

/// What a limit counted by: to be counted, kept, and shown.
///
/// Shown as text, an API key, a user and everything else that may be secret is a fingerprint, as in
/// logs. [`in_clear`](Self::in_clear), [`values`](Self::values) and [`caller`](Self::caller) are for
/// operators.
#[derive(Clone)]
pub struct CountedKey<'a> {
    per: Cow<'a, [Part]>,
    key: Cow<'a, Key>,
    /// The limit counts everyone together, and this is the key of a caller.
    is_global: bool,
    /// If the key was too long to be kept.
    cut: Option<Box<Cut>>,
}

/// What is kept of a long key.
#[derive(Clone)]
struct Cut {
    masked: Box<str>,
    in_clear: Box<str>,
    /// The caller's own key, if that is not the long part.
    caller: Option<Key>,
}

/// How many bytes of a key are [kept](CountedKey::into_kept).
const KEPT: usize = 256;

/// How many bytes of each part of a longer key are shown.
const SHOWN: usize = 64;

impl Outcome<'_> {
    /// What a limit of this outcome counted by. If it counts everyone together, this is the caller
    /// of the request: whoever asks who uses a limit up wants to know a caller.
    #[must_use]
    pub fn counted_key<'a>(&self, limit: LimitState<'a>, subject: Subject<'_>) -> CountedKey<'a> {
        let (per, key) = (&limit.rule.per, &limit.spend.key);
        match subject {
            Subject::Request(request) if per.is_empty() => {
                let caller = self.policy().caller(request);
                CountedKey {
                    per: Cow::Borrowed(&[Part::Caller]),
                    key: Cow::Owned(Key::of_caller(Value::from(&caller))),
                    is_global: true,
                    cut: None,
                }
            }
            _ => CountedKey {
                per: Cow::Borrowed(per),
                key: Cow::Borrowed(key),
                is_global: per.is_empty(),
                cut: None,
            },
        }
    }
}

impl CountedKey<'_> {
    /// The bytes that identify the key within its limit.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.key.as_bytes()
    }

    /// The same, kept beyond its request. Of a key above 256 bytes, enough is kept to show it.
    #[must_use]
    pub fn into_kept(self) -> CountedKey<'static> {
        let is_long = self.key.bytes.len() > KEPT;
        let cut = self.cut.clone().or_else(|| is_long.then(|| Box::new(self.cut())));
        let mut key = self.key.into_owned();
        if is_long {
            // Keys that begin alike stay apart.
            static APART: LazyLock<RandomState> = LazyLock::new(RandomState::new);
            let rest = APART.hash_one(&key.bytes[..]).to_le_bytes();
            key.bytes.truncate(KEPT - rest.len());
            key.bytes.extend_from_slice(&rest);
            key.bytes.shrink_to_fit();
        }
        let (per, key) = (Cow::Owned(self.per.into_owned()), Cow::Owned(key));
        CountedKey { per, key, is_global: self.is_global, cut }
    }

    fn cut(&self) -> Cut {
        Cut {
            masked: Described::masked(&self.key, &self.per).to_string().into(),
            in_clear: self.described_in_clear(SHOWN).into(),
            caller: self.caller_key().filter(|caller| caller.bytes.len() <= KEPT),
        }
    }

    /// The key as text that may hold secrets. Others have chosen it: escape it.
    #[must_use]
    pub fn in_clear(&self) -> String {
        match &self.cut {
            Some(cut) => cut.in_clear.clone().into(),
            None => self.described_in_clear(usize::MAX),
        }
    }

    fn described_in_clear(&self, most: usize) -> String {
        Described { key: &self.key, per: &self.per, in_clear: Some(most) }.to_string()
    }

    /// The values that name this key under a limit, as [`Gate::reset_limit`](crate::Gate::reset_limit)
    /// takes them. `None` if the limit counts by something else, or the key cannot be written.
    #[must_use]
    pub fn values(&self, policy: &Policy, limit: &str) -> Option<Vec<String>> {
        let texts = match self.is_global {
            true => Vec::new(),
            false => self.texts().filter(|_| self.cut.is_none())?,
        };
        let values: Vec<_> = texts.iter().map(String::as_str).collect();
        let (_, key) = find(policy, limit, &values).ok()?;
        (self.is_global || key.bytes == self.key.bytes).then_some(texts)
    }

    /// The caller whom the key names, as [`Gate::ban`](crate::Gate::ban) takes it.
    #[must_use]
    pub fn caller(&self, policy: &Policy) -> Option<String> {
        let key = match &self.cut {
            Some(cut) => cut.caller.clone(),
            None => self.caller_key(),
        };
        Some(caller_text(&key?.to_caller()?, &policy.identifier))
    }

    /// The key of the caller alone.
    fn caller_key(&self) -> Option<Key> {
        let part = self.per.iter().position(Part::is_identity)?;
        self.key.caller(part, self.per.len())
    }

    /// A text per part.
    fn texts(&self) -> Option<Vec<String>> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        if let [Part::Key] = *self.per {
            return Some(vec![text(self.key.as_bytes())?]);
        }
        let of_caller = |part: &Part, kind: &str, name: &[u8]| {
            let name = text(name)?;
            Some(if *part == Part::Caller { format!("{kind}:{name}") } else { name })
        };
        let written = |(part, value): (&Part, KeyValue<'_>)| match value {
            KeyValue::Absent => Some("anonymous".to_owned()),
            KeyValue::ApiKey(name) => of_caller(part, "api-key", name),
            KeyValue::User(name) => of_caller(part, "user", name),
            KeyValue::Ip(address) => Some(address.to_string()),
            KeyValue::Text(bytes) => text(bytes),
            KeyValue::Descriptor(_) => None,
        };
        self.per.iter().zip(self.key.values(self.per.len())).map(written).collect()
    }
}

impl fmt::Display for CountedKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cut {
            Some(cut) => f.write_str(&cut.masked),
            None => Described::masked(&self.key, &self.per).fmt(f),
        }
    }
}

impl fmt::Debug for CountedKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CountedKey({self})")
    }
}
