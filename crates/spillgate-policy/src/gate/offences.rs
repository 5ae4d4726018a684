//! Counts offences, and begins the bans that they lead to.

mod flush;
mod untold;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;

use self::untold::Untold;
use super::admin::find;
use super::bans::{Ban, BansAt, Earlier};
use super::{Active, Gate, Outcome, at_once};
use crate::key::Value;
use crate::policy::Rule;
use crate::policy::ban::BanTerms;
use crate::store::{BanStart, Edit, Spend, Store, StrikeCall};
use crate::{Error, Key};

/// The most bans that wait to be logged.
const MOST_STARTED: usize = 1_000;

/// What is still to be told to a store elsewhere, or to whoever logs.
#[derive(Default)]
pub(super) struct Offences {
    untold: Untold,
    /// Keys of callers whose offences the store is to forget.
    forgiven: Mutex<HashSet<Box<[u8]>>>,
    /// By their keys.
    edits: Mutex<HashMap<String, Edit>>,
    /// True if [`started`](Self::started) is not empty. Relaxed: the lock orders the rest.
    has_started: AtomicBool,
    started: Mutex<StartedBans>,
}

/// Bans that began, to be logged.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StartedBans {
    /// The first of them.
    pub bans: Vec<Arc<Ban>>,
    /// How many began besides, for which there was no room.
    pub others: u64,
}

impl Offences {
    /// Forgets what waits of a caller, and lets the store forget the rest.
    pub(super) fn forgive(&self, caller: &Key) {
        self.untold.forget(caller);
        lock(&self.forgiven).insert(caller.as_bytes().into());
    }

    /// True if the store is still to forget the offences of a caller.
    fn is_forgiven(&self, caller: &Key) -> bool {
        lock(&self.forgiven).contains(caller.as_bytes())
    }

    /// Offences that were not counted.
    pub(super) fn lost(&self) -> u64 {
        self.untold.lost()
    }

    /// Lets an edit wait to be published.
    pub(super) fn tell(&self, edit: Edit) {
        lock(&self.edits).insert(edit.key.clone(), edit);
    }

    /// True if an edit of this key waits to be published.
    pub(super) fn tells(&self, key: &str) -> bool {
        lock(&self.edits).contains_key(key)
    }

    fn start(&self, ban: &Arc<Ban>) {
        let mut started = lock(&self.started);
        match started.bans.len() < MOST_STARTED {
            true => started.bans.push(Arc::clone(ban)),
            false => started.others += 1,
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
            return self.offences.untold.add(&rule.name, &caller, 1);
        }
        // Nobody makes this call again, so it needs no name.
        let call = StrikeCall { id: 0, count: 1 };
        let struck = at_once(self.store.strike(&active.limits, limit, &caller, &ban.rule, call));
        if let Some(Ok(Some(start))) = struck {
            self.begin_ban(active, rule, ban, &caller, start);
        }
    }

    /// Counts an offence that a program reports, of the caller whom these values name: one for each
    /// part of the limit's `per`. Returns the ban that it leads to, or finds in force.
    ///
    /// # Errors
    ///
    /// If there is no such limit, it bans nobody, the values do not fit it, or they name nobody. If
    /// the store could not answer: it may have counted the offence, and
    /// [`flush_offences`](Self::flush_offences) then finds the ban that this has led to.
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
        let call = StrikeCall::new(1);
        // Of a call that is given up or not answered nobody knows whether it counted. Whoever
        // reported may do so again, so it is only looked what it has led to.
        let mut looking = self.offences.untold.telling(&rule.name, &caller, call.looking());
        let start = self.store.strike(&active.limits, place, &caller, &ban.rule, call).await?;
        looking.answered();
        let begun = start.and_then(|start| self.begin_ban(&active, rule, ban, &caller, start));
        Ok(begun.map(Arc::unwrap_or_clone))
    }

    /// Begins a ban, unless it is one that is known. So it may be found by any node, any number of
    /// times.
    fn begin_ban(
        &self,
        active: &Active<S::Limits>,
        rule: &Rule,
        terms: &BanTerms,
        caller: &Key,
        start: BanStart,
    ) -> Option<Arc<Ban>> {
        let (now, key) = (self.store.now(), caller);
        let caller = caller.to_caller()?;
        if !start.is_new {
            let known = BansAt { bans: &self.bans, now }.of(Value::from(&caller));
            let is_it = |ban: &Arc<Ban>| ban.is_by(&rule.name, terms, start.count);
            if let Some(known) = known.map(|known| known.ban).filter(is_it) {
                return Some(known);
            }
            // The store does not know yet that it was lifted.
            if self.offences.is_forgiven(key) {
                return None;
            }
        }
        let ban = Ban::new(caller, &active.policy.identifier, now, start.duration);
        let ban = Arc::new(ban.by_limit(&rule.name, terms, start.count));
        if self.bans.set(Arc::clone(&ban), Earlier::Stays, now) && !self.store.is_in_process() {
            self.offences.tell(ban.to_edit());
        }
        if start.is_new {
            terms.counters.started.fetch_add(1, Ordering::Relaxed);
            self.offences.start(&ban);
        }
        Some(ban)
    }

    /// True if bans began that nobody has [taken](Self::take_started_bans) yet.
    #[inline]
    #[must_use]
    pub fn has_started_bans(&self) -> bool {
        self.offences.has_started.load(Ordering::Relaxed)
    }

    /// The bans that began since this was last asked, to be logged.
    pub fn take_started_bans(&self) -> StartedBans {
        if !self.has_started_bans() {
            return StartedBans::default();
        }
        let mut started = lock(&self.offences.started);
        self.offences.has_started.store(false, Ordering::Relaxed);
        std::mem::take(&mut *started)
    }

    /// Lets the store forget the offences of callers who are forgiven. What it could not be told
    /// waits on.
    pub(super) async fn forgive_all(&self) -> Result<(), Error> {
        // They stay until they are forgiven: whoever waits for that may give up.
        let callers: Vec<_> = lock(&self.offences.forgiven).iter().cloned().collect();
        for caller in callers {
            let (active, key) = (self.active(), Key::from_bytes(&caller));
            for (place, rule) in active.policy.rules.iter().enumerate() {
                if rule.ban.is_some() {
                    self.store.forgive(&active.limits, place, &key).await?;
                }
            }
            lock(&self.offences.forgiven).remove(&caller);
        }
        Ok(())
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
