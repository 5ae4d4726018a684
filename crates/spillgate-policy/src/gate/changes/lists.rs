//! Entries of the allow and block lists.

use super::ListChange;
use super::entries::{EntryChange, EntryChangeKind, first};
use crate::Caller;
use crate::ListKind;
use crate::policy::lists::{Entry, Lists};

/// Both lists, if they differ.
pub(super) fn changes(old: &Lists, new: &Lists) -> impl Iterator<Item = ListChange> {
    ListKind::BOTH.into_iter().filter_map(|kind| {
        let (before, now) = (old.list(kind), new.list(kind));
        let added: Vec<_> = now.entries().filter(|entry| !before.has(entry)).collect();
        let removed: Vec<_> = before.entries().filter(|entry| !now.has(entry)).collect();
        let changed = now.terms_that_differ(before);
        let all = [
            (EntryChangeKind::Added, &added),
            (EntryChangeKind::Removed, &removed),
            (EntryChangeKind::Changed, &changed),
        ];
        let entries = all.into_iter().flat_map(|(change, entries)| shown(change, entries));
        let change = ListChange {
            list: kind,
            added: added.len(),
            removed: removed.len(),
            changed: changed.len(),
            entries: first(entries.collect()),
        };
        (!change.entries.is_empty()).then_some(change)
    })
}

fn shown(change: EntryChangeKind, entries: &[Entry]) -> Vec<EntryChange> {
    // Names are in a set, which has no order.
    let mut names: Vec<_> = entries.iter().collect();
    names.sort_by_cached_key(|entry| match entry {
        Entry::Range(_) => None,
        Entry::ApiKey(_) | Entry::User(_) => Some(entry.to_text()),
    });
    names.into_iter().map(|entry| EntryChange { change, entry: text(entry) }).collect()
}

fn text(entry: &Entry) -> String {
    match entry {
        Entry::Range(range) => range.to_string(),
        Entry::ApiKey(key) => Caller::ApiKey((&**key).into()).to_string(),
        Entry::User(user) => Caller::User((&**user).into()).to_string(),
    }
}
