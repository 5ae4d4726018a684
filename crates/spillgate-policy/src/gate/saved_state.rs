//! The state that survives a restart.

use std::sync::Arc;

use spillgate::Timestamp;

use super::{Active, Gate};
use crate::Error;
use crate::policy::lists::{Entry, ListKind};
use crate::store::{SavedLimit, Saves};

/// The state of a gate: what callers have spent, and what was changed at run time.
///
/// Words are times of the store's [clock](crate::store::Memory::clock), and keys are hashed
/// with its [seed](crate::store::Memory::seed): save both, readable for the owner only.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct SavedState {
    /// What was spent, by limit.
    pub limits: Vec<SavedLimit>,
    /// What was changed on the lists: which, the entry, and whether it was added.
    pub lists: Vec<(ListKind, String, bool)>,
}

impl SavedState {
    /// A state of its parts, as they were saved.
    #[must_use]
    pub fn new(limits: Vec<SavedLimit>, lists: Vec<(ListKind, String, bool)>) -> Self {
        Self { limits, lists }
    }
}

impl<S: Saves> Gate<S> {
    /// The state that survives a restart. Visits every caller, without blocking requests.
    pub fn save(&self) -> SavedState {
        let lists = self.save_lists();
        // With the lock held: a new policy waits for that, and not for this one's limits.
        let _changing = self.lock();
        let active = self.active();
        let places = 0..active.policy.rules.len();
        let limits = places.filter_map(|place| self.store.save(&active.limits, place));
        let removed = self.store.save_removed(&active.limits);
        SavedState { limits: limits.chain(removed).collect(), lists }
    }

    /// What was spent under removed limits, as far as it is [kept](Self::replace).
    pub fn save_removed(&self) -> Vec<SavedLimit> {
        // As in `save`.
        let _changing = self.lock();
        let active = self.active();
        self.store.save_removed(&active.limits)
    }

    /// What was spent under one limit; `None` if there is no such limit, or its state outlives this
    /// process. Saving one by one takes memory for the largest only.
    pub fn save_limit(&self, name: &str) -> Option<SavedLimit> {
        // As in `save`.
        let _changing = self.lock();
        let active = self.active();
        self.store.save(&active.limits, active.policy.rule(name)?)
    }

    /// What was changed on the lists at run time.
    pub fn save_lists(&self) -> Vec<(ListKind, String, bool)> {
        let edits = self.lock();
        let edits = edits.entries.iter();
        edits.map(|((kind, entry), added)| (*kind, entry.to_text(), *added)).collect()
    }

    /// Restores a saved state. `then` is the present on its clock. What was spent under limits that
    /// are gone, or count something else, is kept as that of [removed](Self::replace) ones.
    ///
    /// # Errors
    ///
    /// If an entry of a list cannot be understood.
    pub fn restore(&self, saved: SavedState, then: Timestamp) -> Result<(), Error> {
        let entries = saved.lists.iter().map(|(kind, entry, added)| {
            Ok(((*kind, Entry::parse(entry).map_err(Error::unknown)?), *added))
        });
        let entries: Vec<_> = entries.collect::<Result<_, Error>>()?;
        let mut edits = self.lock();
        edits.entries.extend(entries);
        let active = self.active();
        self.store.restore(&active.limits, saved.limits, then);
        let lists = edits.apply(&active.policy.lists);
        let (policy, limits) = (Arc::clone(&active.policy), Arc::clone(&active.limits));
        self.active.store(Some(Arc::new(Active { policy, lists, limits })));
        Ok(())
    }
}

// Entries of lists may be secrets, so they are not shown.
debug_fields!(self: SavedState {
    limits: self.limits.iter().map(|limit| &limit.name).collect::<Vec<_>>(),
    lists: format_args!("{} changes", self.lists.len()),
});
