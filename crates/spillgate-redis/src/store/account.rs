//! What callers have spent whose quota moves: computed here, and put in place of what Redis has.

use std::time::Duration;

use spillgate::Timestamp;
use spillgate::account::Account;
use spillgate::algorithm::Algorithm;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{sleep, timeout};

use super::core::{Caller, StoreCore, uncountable};
use crate::backend::{Backend, Exchange, Result};
use crate::effective_quota::EffectiveQuota;
use crate::{Name, State};

/// What is put in place of a state, and the other way round to undo it.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) old: State,
    pub(super) new: State,
}

impl Caller {
    /// What the caller has spent by a stored state, under the quota `wanted` from `now` on.
    pub(super) fn account(
        &self,
        stored: &State,
        wanted: &EffectiveQuota,
        now: Timestamp,
    ) -> Result<Account> {
        let rule = wanted.rule();
        let is_override = wanted.terms.is_override || stored.terms.is_override;
        if self.limit.is_by_call && !is_override {
            // The word is a time, which means the same under every quota.
            return Ok(Account::new(&rule, stored.word, now));
        }
        let mut account = stored.account(now).map_err(|why| uncountable(&why))?;
        account.change(&rule, now);
        if self.limit.is_cut && wanted.is_impossible(account.word(), now) {
            let all = wanted.algorithm.limit();
            let word = wanted.algorithm.debit_up_to(wanted.fresh(None), now, all, all);
            account = Account::new(&rule, word, now);
        }
        Ok(account)
    }

    /// The quota in force by a stored state: one that the limit has, whatever the tier of a call.
    pub(super) fn in_force(&self, stored: &State) -> EffectiveQuota {
        match &self.by_override {
            Some(own) => *own,
            None => self.limit.quota_with(&stored.terms).unwrap_or(self.by_policy),
        }
    }
}

impl<B: Backend> StoreCore<B> {
    /// Puts a state in place of another, if that is still there.
    pub(super) async fn change(
        &self,
        name: Name,
        Change { old, new }: &Change,
        now: Timestamp,
    ) -> Result<bool> {
        let is_done = self.exchange(name, Some(old), new, now).await?;
        self.counters.carried_over.add((is_done && old.terms != new.terms).into());
        Ok(is_done)
    }

    /// Attempts at the same state.
    pub(super) fn attempts(&self, name: Name) -> Attempts<'_> {
        Attempts { turns: &self.turns, name, count: 0, turn: None }
    }

    pub(super) async fn exchange(
        &self,
        name: Name,
        old: Option<&State>,
        new: &State,
        now: Timestamp,
    ) -> Result<bool> {
        self.backend.exchange(&self.exchange_of(name, old, new, now)).await
    }

    pub(super) fn exchange_of(
        &self,
        name: Name,
        old: Option<&State>,
        new: &State,
        now: Timestamp,
    ) -> Exchange {
        let expires = new.idle_after(now).map(|after| after.saturating_add(self.margin));
        Exchange { name, old: old.cloned(), new: Some(new.clone()), expires }
    }
}

/// Attempts at a state that others replace meanwhile. From the second on, callers on this node take
/// turns, so that one of them competes with other nodes; then each follows a pause.
pub(super) struct Attempts<'t> {
    turns: &'t Turns,
    name: Name,
    count: u32,
    turn: Option<MutexGuard<'t, ()>>,
}

/// Whose turn it is, by name.
pub(super) struct Turns(Box<[Mutex<()>]>);

/// Attempts before giving up because others were always faster.
pub(super) const TRIES: u32 = 64;

/// So many names have turns of their own.
const TURNS: usize = 256;

/// The longest wait for a turn, since who has it may wait for a server that does not answer.
const PATIENCE: Duration = Duration::from_millis(100);

/// The longest pause is so many times this one, which is about a round trip.
const PAUSE: Duration = Duration::from_micros(200);
const MOST_PAUSES: u32 = 32;

impl Attempts<'_> {
    /// Begins the next attempt. False if there were too many.
    pub(super) async fn next(&mut self) -> bool {
        self.count += 1;
        match self.count {
            1 => {}
            2 => self.turn = timeout(PATIENCE, self.turns.of(self.name).lock()).await.ok(),
            count => sleep(self.pause(count)).await,
        }
        self.count <= TRIES
    }

    /// Anything up to a bound that grows, and that differs between nodes.
    fn pause(&self, count: u32) -> Duration {
        let random = u32::from(spillgate::Seed::random().to_bytes()[0]);
        PAUSE * count.min(MOST_PAUSES) * random / 256
    }
}

impl Turns {
    fn of(&self, name: Name) -> &Mutex<()> {
        // A name is random, so any of its bytes will do.
        &self.0[usize::from(name.as_bytes()[0]) % TURNS]
    }
}

impl Default for Turns {
    fn default() -> Self {
        Self((0..TURNS).map(|_| Mutex::default()).collect())
    }
}
