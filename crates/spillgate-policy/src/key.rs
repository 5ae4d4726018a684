use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use smallvec::SmallVec;

use crate::Caller;
use crate::caller::Masked;
use crate::policy::Part;
use crate::policy::address::Address;
use crate::policy::identity::Who;

/// What a limit counts by: the caller or other parts of a request, and the tier.
///
/// The bytes are the parts of the limit's `per`, each with its kind and, unless it is
/// the last, its length: `("a", "b_c")` never meets `("a_b", "c")`, nor a user an API
/// key of the same name.
#[derive(Clone)]
pub struct Key {
    /// The place of the caller's tier among the limit's, counted from one; zero if it
    /// has none.
    pub(crate) tier: u16,
    /// Most keys are an address, or a name of some ten letters.
    pub(crate) bytes: SmallVec<[u8; 32]>,
}

/// The value of one part of a key.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    Absent,
    ApiKey(&'a [u8]),
    User(&'a [u8]),
    Ip(Address),
    Header(&'a [u8]),
    Path(&'a [u8]),
    /// The value of one entry of a descriptor.
    Entry(&'a [u8]),
}

impl Key {
    /// The key of a limit that counts everyone together.
    pub(crate) fn global() -> Self {
        Self { tier: 0, bytes: SmallVec::new() }
    }

    /// A key of these bytes, for a caller without a tier.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self { tier: 0, bytes: SmallVec::from_slice(bytes) }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: Value<'_>, is_last: bool) {
        match value {
            Value::Absent => self.bytes.push(0),
            Value::ApiKey(text) => self.push_text(1, text, is_last),
            Value::User(text) => self.push_text(2, text, is_last),
            Value::Header(text) => self.push_text(3, text, is_last),
            Value::Path(text) => self.push_text(5, text, is_last),
            Value::Entry(text) => self.push_text(7, text, is_last),
            Value::Ip(address) => self.push_address(address),
        }
    }

    #[inline]
    fn push_address(&mut self, address: Address) {
        match address.v4() {
            Some(bits) => {
                let bytes = (4 | u64::from(bits.swap_bytes()) << 8).to_le_bytes();
                self.bytes.extend_from_slice(&bytes[..5]);
            }
            None => {
                let mut bytes = [6; 17];
                bytes[1..].copy_from_slice(&address.bits().to_be_bytes());
                self.bytes.extend_from_slice(&bytes);
            }
        }
    }

    fn push_text(&mut self, kind: u8, text: &[u8], is_last: bool) {
        self.bytes.push(kind);
        if !is_last {
            self.bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        }
        self.bytes.extend_from_slice(text);
    }

    /// Adds a whole descriptor: its domain, and all keys and values in their order. It must be
    /// the last part.
    pub(crate) fn push_descriptor(&mut self, domain: &str, entries: &[(&str, &str)]) {
        self.bytes.push(8);
        let texts = entries.iter().flat_map(|(key, value)| [*key, *value]);
        for text in [domain].into_iter().chain(texts) {
            self.bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            self.bytes.extend_from_slice(text.as_bytes());
        }
    }

    /// The key of the caller whom one of so many parts names, alone; `None` if it names nobody.
    pub(crate) fn caller(&self, part: usize, parts: usize) -> Option<Self> {
        let mut bytes = self.bytes.as_slice();
        for _ in 0..part {
            bytes = split(bytes, false).2;
        }
        let (kind, value, _) = split(bytes, part + 1 == parts);
        let mut caller = Self::global();
        match kind {
            0 => return None,
            kind => caller.bytes.push(kind),
        }
        caller.bytes.extend_from_slice(value);
        Some(caller)
    }

    /// The caller whom a key [alone](Self::caller) names.
    pub(crate) fn to_caller(&self) -> Option<Caller<'static>> {
        let (kind, value, _) = split(&self.bytes, true);
        let bytes = || Cow::Owned(value.to_vec());
        match kind {
            1 => Some(Caller::ApiKey(bytes())),
            2 => Some(Caller::User(bytes())),
            4 => <[u8; 4]>::try_from(value).ok().map(|octets| Caller::Ip(octets.into())),
            6 => <[u8; 16]>::try_from(value).ok().map(|octets| Caller::Ip(octets.into())),
            _ => None,
        }
    }

    /// The bytes that identify this key within its limit.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The place of the caller's tier among the limit's, if it has one.
    #[must_use]
    pub fn tier(&self) -> Option<usize> {
        usize::from(self.tier).checked_sub(1)
    }
}

impl<'a> From<&'a Who<'_>> for Value<'a> {
    #[inline]
    fn from(who: &'a Who<'_>) -> Self {
        match who {
            Who::Named(caller) => caller.into(),
            Who::At(address) => Self::Ip(*address),
            Who::Nobody => Self::Absent,
        }
    }
}

impl<'a> From<&'a Caller<'_>> for Value<'a> {
    fn from(caller: &'a Caller<'_>) -> Self {
        match caller {
            Caller::ApiKey(key) => Self::ApiKey(key),
            Caller::User(user) => Self::User(user),
            Caller::Ip(address) => Self::Ip((*address).into()),
            Caller::Anonymous => Self::Absent,
        }
    }
}

/// A key as people may see it: each part with its value.
pub(crate) struct Described<'a> {
    pub(crate) key: &'a Key,
    pub(crate) per: &'a [Part],
    /// How many bytes are shown of what may be secret; `None` shows its fingerprint.
    pub(crate) in_clear: Option<usize>,
}

impl<'a> Described<'a> {
    /// With fingerprints in place of secrets.
    pub(crate) fn masked(key: &'a Key, per: &'a [Part]) -> Self {
        Self { key, per, in_clear: None }
    }

    /// A value that may be a secret.
    fn secret(&self, value: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.in_clear {
            Some(most) => write_text(value, most, f),
            None => fmt::Display::fmt(&Masked(value), f),
        }
    }
}

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.per.is_empty() {
            return f.write_str("global");
        }
        if let [Part::Key] = self.per {
            f.write_str("key=")?;
            return self.secret(self.key.as_bytes(), f);
        }
        let values = self.key.values(self.per.len());
        for (index, (part, value)) in self.per.iter().zip(values).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{part}=")?;
            match value {
                KeyValue::Absent => f.write_str("anonymous")?,
                KeyValue::Ip(address) => write!(f, "{address}")?,
                KeyValue::ApiKey(name) if *part == Part::Caller => {
                    f.write_str("api-key:")?;
                    self.secret(name, f)?;
                }
                KeyValue::User(name) if *part == Part::Caller => {
                    f.write_str("user:")?;
                    self.secret(name, f)?;
                }
                KeyValue::ApiKey(text) | KeyValue::User(text) | KeyValue::Text(text) => {
                    self.secret(text, f)?;
                }
                KeyValue::Descriptor(texts) => match self.in_clear {
                    Some(most) => write_descriptor(texts, most, f)?,
                    None => self.secret(texts, f)?,
                },
            }
        }
        Ok(())
    }
}

/// The beginning of a text.
fn write_text(bytes: &[u8], most: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let shown = bytes.get(..most).unwrap_or(bytes);
    f.write_str(&String::from_utf8_lossy(shown))?;
    if shown.len() < bytes.len() { f.write_str("…") } else { Ok(()) }
}

/// The domain of a descriptor, its keys and values.
fn write_descriptor(mut bytes: &[u8], most: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut index = 0;
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = u64::from_le_bytes(*length) as usize;
        let (text, rest) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        let before = match index {
            0 => "",
            1 => ": ",
            _ if index % 2 == 0 => "=",
            _ => ", ",
        };
        f.write_str(before)?;
        write_text(text, most, f)?;
        (bytes, index) = (rest, index + 1);
    }
    Ok(())
}

/// What a part of a key says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyValue<'k> {
    Absent,
    ApiKey(&'k [u8]),
    User(&'k [u8]),
    Ip(IpAddr),
    Text(&'k [u8]),
    /// The domain and all entries, each text after its length.
    Descriptor(&'k [u8]),
}

impl Key {
    /// The values of a key that has so many parts.
    pub(crate) fn values(&self, parts: usize) -> impl Iterator<Item = KeyValue<'_>> {
        let mut bytes = self.as_bytes();
        (0..parts).map(move |index| {
            let (kind, value, rest) = split(bytes, index + 1 == parts);
            bytes = rest;
            match (kind, <[u8; 4]>::try_from(value), <[u8; 16]>::try_from(value)) {
                (0, ..) => KeyValue::Absent,
                (1, ..) => KeyValue::ApiKey(value),
                (2, ..) => KeyValue::User(value),
                (4, Ok(octets), _) => KeyValue::Ip(octets.into()),
                (6, _, Ok(octets)) => KeyValue::Ip(octets.into()),
                (8, ..) => KeyValue::Descriptor(value),
                _ => KeyValue::Text(value),
            }
        })
    }
}

/// The kind and the value of a key's first part, and what follows it.
fn split(bytes: &[u8], is_last: bool) -> (u8, &[u8], &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return (0, &[], &[]) };
    let (bytes, length) = match kind {
        0 => (bytes, 0),
        4 => (bytes, 4),
        6 => (bytes, 16),
        _ if is_last => (bytes, bytes.len()),
        _ => match bytes.split_first_chunk() {
            Some((length, bytes)) => (bytes, u64::from_le_bytes(*length) as usize),
            None => (bytes, bytes.len()),
        },
    };
    let (value, rest) = bytes.split_at_checked(length).unwrap_or((bytes, &[]));
    (*kind, value, rest)
}

/// The tier is not part of the identity.
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.bytes);
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bytes.is_empty() { f.write_str("global") } else { Masked(&self.bytes).fmt(f) }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}
