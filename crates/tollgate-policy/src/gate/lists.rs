//! Changing the lists while the gate decides.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use super::{Active, Gate};
use crate::Error;
use crate::lists::{Entry, ListKind, Lists};
use crate::store::Store;

/// What was changed at run time, on top of whatever the policy says.
#[derive(Default)]
pub(super) struct Edits {
    /// True for an entry that was added, false for one that was removed.
    pub(super) entries: HashMap<(ListKind, Entry), bool>,
}

impl Edits {
    /// The lists of a policy, edited.
    pub(super) fn apply(&self, mut lists: Lists) -> Lists {
        for ((kind, entry), added) in &self.entries {
            edit(&mut lists, *kind, entry.clone(), *added);
        }
        lists
    }
}

/// Adds or removes an entry, and tells whether that changed anything.
fn edit(lists: &mut Lists, kind: ListKind, entry: Entry, add: bool) -> bool {
    let list = lists.list_mut(kind);
    if add { list.insert(entry) } else { list.remove(&entry) }
}

impl<S: Store> Gate<S> {
    /// Puts an entry on a list: an address, a range, `key:NAME` or `user:NAME`. Tells
    /// whether it is new. It stays when the policy is [replaced](Self::replace).
    ///
    /// # Errors
    ///
    /// If the entry cannot be understood.
    pub fn list(&self, kind: ListKind, entry: &str) -> Result<bool, Error> {
        self.edit(kind, entry, true)
    }

    /// Takes an entry off a list, as it was put there; ranges that contain it stay. Tells
    /// whether it was there.
    ///
    /// # Errors
    ///
    /// If the entry cannot be understood.
    pub fn unlist(&self, kind: ListKind, entry: &str) -> Result<bool, Error> {
        self.edit(kind, entry, false)
    }

    fn edit(&self, kind: ListKind, entry: &str, add: bool) -> Result<bool, Error> {
        let entry = Entry::parse(entry).map_err(Error::unknown)?;
        let mut edits = self.lock();
        let active = self.active();
        let mut lists = Lists::clone(&active.lists);
        let changed = edit(&mut lists, kind, entry.clone(), add);
        let (policy, limits) = (Arc::clone(&active.policy), Arc::clone(&active.limits));
        self.active.store(Some(Arc::new(Active { policy, lists: Arc::new(lists), limits })));
        edits.entries.insert((kind, entry), add);
        Ok(changed)
    }

    /// Keeps the policy and the lists as they are.
    pub(super) fn lock(&self) -> MutexGuard<'_, Edits> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
