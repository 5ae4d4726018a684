//! Entries of lists: addresses, callers, secrets.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::Caller;
use crate::caller::Masked;

/// How many are shown: lists can have millions.
const MOST: usize = 100;

/// An entry that was added, removed or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct EntryChange {
    /// What happened to it.
    pub change: EntryChangeKind,
    /// The entry: an address or range, or a fingerprint.
    pub entry: String,
}

/// What happened to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EntryChangeKind {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It has another expiry or comment.
    Changed,
}

/// Entries in an order, each with its text for people.
#[derive(Default)]
pub(super) struct Entries(BTreeMap<Vec<u8>, String>);

impl Entries {
    /// Entries that may be shown as they are.
    pub(super) fn plain(entries: impl IntoIterator<Item = String>) -> Self {
        Self(entries.into_iter().map(|entry| (entry.clone().into_bytes(), entry)).collect())
    }

    /// Entries of which only a fingerprint is shown.
    pub(super) fn secret<'e>(entries: impl IntoIterator<Item = &'e [u8]>) -> Self {
        let entry = |entry: &'e [u8]| (entry.to_vec(), Masked(entry).to_string());
        Self(entries.into_iter().map(entry).collect())
    }

    /// Callers, told from each other by these bytes.
    pub(super) fn callers(callers: impl IntoIterator<Item = (Vec<u8>, Caller<'static>)>) -> Self {
        let callers = callers.into_iter().map(|(bytes, caller)| (bytes, caller.to_string()));
        Self(callers.collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn keys(&self) -> Vec<&[u8]> {
        self.0.keys().map(Vec::as_slice).collect()
    }
}

/// The first entries that one side has and the other has not.
pub(super) fn between(old: &Entries, new: &Entries) -> Vec<EntryChange> {
    let without = |one: &Entries, other: &Entries, change| -> Vec<EntryChange> {
        let left = one.0.iter().filter(|(key, _)| !other.0.contains_key(*key));
        left.map(|(_, entry)| EntryChange { change, entry: entry.clone() }).collect()
    };
    let mut entries = without(new, old, EntryChangeKind::Added);
    entries.extend(without(old, new, EntryChangeKind::Removed));
    first(entries)
}

/// As many as anyone will read.
pub(super) fn first(mut entries: Vec<EntryChange>) -> Vec<EntryChange> {
    entries.truncate(MOST);
    entries
}

/// `+ 192.0.2.7`, `- api-key:#5f3a9c21`, `~ 203.0.113.0/24`.
impl fmt::Display for EntryChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.change {
            EntryChangeKind::Added => '+',
            EntryChangeKind::Removed => '-',
            EntryChangeKind::Changed => '~',
        };
        write!(f, "{sign} {}", self.entry)
    }
}
