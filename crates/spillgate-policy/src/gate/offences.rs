//! Counts offences, and begins the bans that they lead to.

mod flush;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;

use super::admin::find;
use super::bans::{Ban, Earlier};
use super::{Active, Gate, Outcome, at_once};
use crate::policy::Rule;
use crate::policy::ban::BanTerms;
use crate::store::{BanStart, Edit, Spend, Store};
use crate::{Error, Key};

/// The most callers whose offences wait for a store elsewhere.
const MOST_WAITING: usize = 10_000;

/// The most bans that wait to be logged.
const MOST_STARTED: usize = 1_000;

/// What is still to be told to a store elsewhere, or to whoever logs.
#[derive(Default)]
pub(super) struct Offences {
    /// By the limit's name and the caller's key: how many.
    waiting: Mutex<HashMap<Waiting, u32>>,
    lost: AtomicU64,
    /// By their keys.
    edits: Mutex<HashMap<String, Edit>>,
    /// True if [`started`](Self::started) is not empty. Relaxed: the lock orders the rest.
    has_started: AtomicBool,
    started: Mutex<Vec<Arc<Ban>>>,
}

/// The name of a limit, and the key of a caller.
type Waiting = (Arc<str>, Box<[u8]>);

impl Offences {
    /// Lets an offence wait for the store.
    fn wait(&self, limit: &Arc<str>, caller: &Key, count: u32) {
        let mut waiting = lock(&self.waiting);
        let is_full = waiting.len() >= MOST_WAITING;
        match waiting.entry((Arc::clone(limit), caller.as_bytes().into())) {
            Entry::Occupied(mut known) => {
                *known.get_mut() = known.get().saturating_add(count);
            }
            Entry::Vacant(_) if is_full => {
                self.lost.fetch_add(count.into(), Ordering::Relaxed);
            }
            Entry::Vacant(place) => drop(place.insert(count)),
        }
    }

    /// Takes what waits of at most so many callers.
    fn take(&self, most: usize) -> Vec<(Waiting, u32)> {
        let mut waiting = lock(&self.waiting);
        let some: Vec<_> = waiting.keys().take(most).cloned().collect();
        some.into_iter().filter_map(|caller| waiting.remove_entry(&caller)).collect()
    }

    /// Forgets what waits of a caller.
    pub(super) fn forget(&self, caller: &Key) {
        lock(&self.waiting).retain(|(_, waiting), _| **waiting != *caller.as_bytes());
    }

    /// Offences that were not counted.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Lets an edit wait to be published.
    pub(super) fn tell(&self, edit: Edit) {
        lock(&self.edits).insert(edit.key.clone(), edit);
    }

    fn start(&self, ban: &Arc<Ban>) {
        let mut started = lock(&self.started);
        if started.len() < MOST_STARTED {
            started.push(Arc::clone(ban));
        }
        self.has_started.store(true, Ordering::Relaxed);
    }
}

impl<S: Store> Gate<S> {
    /// Counts the denials of an outcome that are offences.
    #[inline]
    pub(super) fn count_denials(&self, active: &Active<S::Limits>, outcome: &Outcome<'_>) {
        // A cost of 0 only looks.
        for spend in outcome.spends.iter().filter(|spend| spend.is_denied() && spend.cost > 0) {
            let rule = &active.policy.rules[spend.limit];
            if let Some(ban) = rule.ban.as_ref().filter(|ban| ban.on_denied) {
                self.offend(active, spend.limit, ban, &spend.key);
            }
        }
    }

    /// Counts a response if its status makes the request an offence. One that exceeded its limit
    /// was counted as such.
    pub(super) fn count_status(
        &self,
        active: &Active<S::Limits>,
        limit: usize,
        spend: &Spend,
        status: StatusCode,
    ) {
        let Some(ban) = &active.policy.rules[limit].ban else { return };
        let was_counted = ban.on_denied && spend.is_denied();
        if ban.is_offence(status) && !was_counted {
            self.offend(active, limit, ban, &spend.key);
        }
    }

    #[cold]
    fn offend(&self, active: &Active<S::Limits>, limit: usize, ban: &BanTerms, key: &Key) {
        // Those without an identity are many, so none of them is banned for another.
        let Some(caller) = ban.caller(key) else { return };
        ban.counters.strikes.fetch_add(1, Ordering::Relaxed);
        let rule = &active.policy.rules[limit];
        if !self.store.is_in_process() {
            return self.offences.wait(&rule.name, &caller, 1);
        }
        let struck = at_once(self.store.strike(&active.limits, limit, &caller, &ban.rule));
        if let Some(Ok(Some(start))) = struck {
            self.begin_ban(active, rule, ban, &caller, start);
        }
    }

    /// Counts an offence that a program reports, of the caller whom these values name: one for each
    /// part of the limit's `per`. Returns the ban that it leads to.
    ///
    /// # Errors
    ///
    /// If there is no such limit, it bans nobody, the values do not fit it, they name nobody, or
    /// the store could not answer.
    pub async fn strike(&self, limit: &str, values: &[&str]) -> Result<Option<Ban>, Error> {
        let active = self.active();
        let (place, key) = find(&active.policy, limit, values)?;
        let rule = &active.policy.rules[place];
        let Some(ban) = &rule.ban else {
            return Err(Error::unknown(format!(
                "limit {limit:?} bans nobody; give it a `ban`, such as ban = {{ strikes = 5 }}"
            )));
        };
        let Some(caller) = ban.caller(&key) else {
            return Err(Error::unknown(format!(
                "limit {limit:?}: nobody is banned for all anonymous callers; name one"
            )));
        };
        ban.counters.strikes.fetch_add(1, Ordering::Relaxed);
        let start = self.store.strike(&active.limits, place, &caller, &ban.rule).await?;
        let begun = start.and_then(|start| self.begin_ban(&active, rule, ban, &caller, start));
        Ok(begun.map(Arc::unwrap_or_clone))
    }

    fn begin_ban(
        &self,
        active: &Active<S::Limits>,
        rule: &Rule,
        terms: &BanTerms,
        caller: &Key,
        start: BanStart,
    ) -> Option<Arc<Ban>> {
        let now = self.store.now();
        let caller = caller.to_caller()?;
        let ban = Ban::new(caller, &active.policy.identifier, now, start.duration);
        let ban = Arc::new(ban.by_limit(&rule.name, terms, start.count));
        terms.counters.started.fetch_add(1, Ordering::Relaxed);
        if self.bans.set(Arc::clone(&ban), Earlier::Stays, now) && !self.store.is_in_process() {
            self.offences.tell(ban.to_edit());
        }
        self.offences.start(&ban);
        Some(ban)
    }

    /// True if bans began that nobody has [taken](Self::take_started_bans) yet.
    #[inline]
    #[must_use]
    pub fn has_started_bans(&self) -> bool {
        self.offences.has_started.load(Ordering::Relaxed)
    }

    /// The bans that began since this was last asked, to be logged.
    pub fn take_started_bans(&self) -> Vec<Arc<Ban>> {
        if !self.has_started_bans() {
            return Vec::new();
        }
        let mut started = lock(&self.offences.started);
        self.offences.has_started.store(false, Ordering::Relaxed);
        std::mem::take(&mut *started)
    }

    /// Publishes the edits that wait. What could not be published waits on.
    pub(super) async fn publish_bans(&self) -> Result<(), Error> {
        // They stay until they are published: whoever waits for that may give up.
        let edits: Vec<_> = lock(&self.offences.edits).values().cloned().collect();
        if edits.is_empty() {
            return Ok(());
        }
        self.store.publish(&edits).await?;
        let mut waiting = lock(&self.offences.edits);
        for edit in edits {
            // One that came meanwhile is newer.
            if waiting.get(&edit.key) == Some(&edit) {
                waiting.remove(&edit.key);
            }
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
