//! Offences that a store elsewhere is yet to be told of.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::lock;
use crate::Key;
use crate::policy::ban::MOST_STRIKES;
use crate::store::StrikeCall;

/// The most callers whose offences wait.
const MOST_WAITING: usize = 10_000;

/// The most calls about a caller that are made again: nobody needs more offences for a ban.
const MOST_CALLS: usize = MOST_STRIKES as usize;

/// Offences, by limit and caller.
#[derive(Default)]
pub(super) struct Untold {
    waiting: Mutex<HashMap<Offender, Waiting>>,
    lost: AtomicU64,
}

/// The name of a limit, and the key of a caller.
type Offender = (Arc<str>, Box<[u8]>);

#[derive(Default)]
struct Waiting {
    /// What the store was told and has not answered.
    calls: Vec<StrikeCall>,
    /// Offences that are in no call yet.
    count: u32,
}

impl Untold {
    /// Lets offences wait.
    pub(super) fn add(&self, limit: &Arc<str>, caller: &Key, count: u32) {
        let offender = (Arc::clone(limit), caller.as_bytes().into());
        self.change(offender, count, |waiting| waiting.count = waiting.count.saturating_add(count));
    }

    /// Takes what waits of at most so many callers, to tell the store.
    pub(super) fn take(&self, most: usize) -> Vec<Telling<'_>> {
        let mut waiting = lock(&self.waiting);
        let some: Vec<_> = waiting.keys().take(most).cloned().collect();
        let some = some.into_iter().filter_map(|offender| waiting.remove_entry(&offender));
        let telling = some.map(|(offender, Waiting { mut calls, count })| {
            if count > 0 {
                calls.push(StrikeCall::new(count));
            }
            Telling { untold: self, offender, calls }
        });
        telling.collect()
    }

    /// A call that is made for somebody who waits for its answer.
    pub(super) fn telling(&self, limit: &Arc<str>, caller: &Key, call: StrikeCall) -> Telling<'_> {
        let offender = (Arc::clone(limit), caller.as_bytes().into());
        Telling { untold: self, offender, calls: vec![call] }
    }

    /// Forgets what waits of a caller.
    pub(super) fn forget(&self, caller: &Key) {
        lock(&self.waiting).retain(|(_, waiting), _| **waiting != *caller.as_bytes());
    }

    /// Offences that were not counted, for want of room.
    pub(super) fn lost(&self) -> u64 {
        // Relaxed: a count orders nothing.
        self.lost.load(Ordering::Relaxed)
    }

    /// Changes what waits of a caller, if there is room for it. Otherwise so many are lost.
    fn change(&self, offender: Offender, count: u32, change: impl FnOnce(&mut Waiting)) {
        let mut waiting = lock(&self.waiting);
        if waiting.len() < MOST_WAITING || waiting.contains_key(&offender) {
            change(waiting.entry(offender).or_default());
        } else {
            self.lost.fetch_add(count.into(), Ordering::Relaxed);
        }
    }
}

/// What a store is told of a caller. What it has not answered when this is dropped waits on, in the
/// same calls: it may have counted them, and knows them then.
pub(super) struct Telling<'u> {
    untold: &'u Untold,
    offender: Offender,
    calls: Vec<StrikeCall>,
}

impl Telling<'_> {
    pub(super) fn limit(&self) -> &str {
        &self.offender.0
    }

    pub(super) fn caller(&self) -> Key {
        Key::from_bytes(&self.offender.1)
    }

    /// The call to be made next.
    pub(super) fn next(&self) -> Option<StrikeCall> {
        self.calls.first().copied()
    }

    /// Notes that the next call was answered.
    pub(super) fn answered(&mut self) {
        self.calls.drain(..self.calls.len().min(1));
    }

    /// Forgets all calls.
    pub(super) fn forget(&mut self) {
        self.calls.clear();
    }
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        if self.calls.is_empty() {
            return;
        }
        let calls = std::mem::take(&mut self.calls);
        let offender = (Arc::clone(&self.offender.0), std::mem::take(&mut self.offender.1));
        let count = calls.iter().map(|call| call.count).fold(0, u32::saturating_add);
        self.untold.change(offender, count, |waiting| {
            waiting.calls.extend(calls);
            waiting.calls.truncate(MOST_CALLS);
        });
    }
}
