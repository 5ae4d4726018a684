//! The state that survives a restart.

use spillgate::Timestamp;

use super::Gate;
use crate::Error;
use crate::store::{Edit, SavedLimit, Saves};

/// The state of a gate: what callers have spent, and what was changed at run time.
///
/// Words are times of the store's [clock](crate::store::Memory::clock), and keys are hashed
/// with its [seed](crate::store::Memory::seed): save both, readable for the owner only.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct SavedState {
    /// What was spent, by limit.
    pub limits: Vec<SavedLimit>,
    /// What was changed at run time.
    pub edits: Vec<Edit>,
}

impl SavedState {
    /// A state of its parts, as they were saved.
    #[must_use]
    pub fn new(limits: Vec<SavedLimit>, edits: Vec<Edit>) -> Self {
        Self { limits, edits }
    }
}

impl<S: Saves> Gate<S> {
    /// The state that survives a restart. Visits every caller, without blocking requests.
    pub fn save(&self) -> SavedState {
        let edits = self.save_edits();
        // With the lock held: a new policy waits for that, and not for this one's limits.
        let _changing = self.lock();
        let active = self.active();
        let places = 0..active.policy.rules.len();
        let limits = places.filter_map(|place| self.store.save(&active.limits, place));
        let removed = self.store.save_removed(&active.limits);
        SavedState { limits: limits.chain(removed).collect(), edits }
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

    /// What was changed at run time, unless it outlives this process.
    pub fn save_edits(&self) -> Vec<Edit> {
        if self.store.is_in_process() { self.edits() } else { Vec::new() }
    }

    /// Restores a saved state. `then` is the present on its clock: what has ended by then is not
    /// restored. What was spent under limits that are gone, or count something else, is kept as that
    /// of [removed](Self::replace) ones.
    ///
    /// # Errors
    ///
    /// If an edit cannot be understood: the first. All else is restored nevertheless.
    pub fn restore(&self, saved: SavedState, then: Timestamp) -> Result<(), Error> {
        let SavedState { limits, mut edits } = saved;
        // Others have them, and perhaps later ones.
        if !self.store.is_in_process() {
            edits.clear();
        }
        let now = self.store.now();
        edits.retain(|edit| edit.until.is_none_or(|until| until > then));
        for edit in &mut edits {
            edit.until = edit.until.map(|until| now + until.since(then));
        }
        // Before the limits: what was spent under an override counts under it again.
        let applied = self.apply_all(&edits);
        let _changing = self.lock();
        self.store.restore(&self.active().limits, limits, then);
        applied
    }
}

debug_fields!(self: SavedState {
    limits: self.limits.iter().map(|limit| &limit.name).collect::<Vec<_>>(),
    edits: format_args!("{} edits", self.edits.len()),
});
