//! Changing the lists while the gate decides.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use super::{Active, Gate};
use crate::Error;
use crate::policy::lists::{Entry, ListKind, Lists};
use crate::store::Store;

/// What was changed at run time, on top of the policy.
#[derive(Default)]
pub(super) struct Edits {
    /// How many times the policy was replaced.
    pub(super) replaced: u32,
    /// True for an entry that was added, false for one that was removed.
    pub(super) entries: HashMap<(ListKind, Entry), bool>,
}

impl Edits {
    /// The lists of a policy, edited.
    pub(super) fn apply(&self, lists: &Arc<Lists>) -> Arc<Lists> {
        if self.entries.is_empty() {
            return Arc::clone(lists);
        }
        let mut lists = Lists::clone(lists);
        for kind in [ListKind::Allow, ListKind::Block] {
            let edits = self.entries.iter().filter(|((list, _), _)| *list == kind);
            lists.list_mut(kind).edit(edits.map(|((_, entry), add)| (entry.clone(), *add)));
        }
        Arc::new(lists)
    }
}

impl<S: Store> Gate<S> {
    /// Puts an entry on a list: an address, a range, `key:NAME` or `user:NAME`. Returns whether it
    /// is new. It survives [`replace`](Self::replace). Takes milliseconds for 100,000 ranges.
    ///
    /// # Errors
    ///
    /// If the entry cannot be understood.
    pub fn list(&self, kind: ListKind, entry: &str) -> Result<bool, Error> {
        self.edit(kind, entry, true)
    }

    /// Removes an entry from a list; ranges that contain it stay. Returns whether it was there.
    ///
    /// # Errors
    ///
    /// If the entry cannot be understood.
    pub fn unlist(&self, kind: ListKind, entry: &str) -> Result<bool, Error> {
        self.edit(kind, entry, false)
    }

    /// The entries of a list, as they can be put there. They may hold secrets.
    pub fn listed(&self, kind: ListKind) -> Vec<String> {
        self.active().lists.list(kind).entries().map(|entry| entry.to_text()).collect()
    }

    fn edit(&self, kind: ListKind, entry: &str, add: bool) -> Result<bool, Error> {
        let entry = Entry::parse(entry).map_err(Error::unknown)?;
        let mut edits = self.lock();
        let active = self.active();
        if active.lists.list(kind).has(&entry) == add {
            return Ok(false);
        }
        let mut lists = Lists::clone(&active.lists);
        lists.list_mut(kind).edit([(entry.clone(), add)]);
        let (policy, limits) = (Arc::clone(&active.policy), Arc::clone(&active.limits));
        // What the policy says itself need not be remembered.
        if policy.lists.list(kind).has(&entry) == add {
            edits.entries.remove(&(kind, entry));
        } else {
            edits.entries.insert((kind, entry), add);
        }
        self.active.store(Some(Arc::new(Active { policy, lists: Arc::new(lists), limits })));
        Ok(true)
    }

    /// Keeps the policy and the lists as they are.
    pub(super) fn lock(&self) -> MutexGuard<'_, Edits> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
