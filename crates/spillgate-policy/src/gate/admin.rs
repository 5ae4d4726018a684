//! Changing a gate while it decides.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use spillgate::{Decision, Settled};

use super::adaptive::Asked;
use super::{Active, Changes, Gate};
use crate::config::key_of;
use crate::policy::per_text;
use crate::store::{Spend, Store, Usage};
use crate::suggest::{hint, quoted};
use crate::{Error, Key, Policy};

impl<S: Store> Gate<S> {
    /// Puts another policy in force, between one request and the next.
    ///
    /// A limit that keeps its name, algorithm and key keeps what callers have spent. Changes made
    /// at run time stay. The state of limits that are removed, or count something else, is kept
    /// for an hour, for up to a million callers (16 MB, oldest first out), in case they come back.
    /// Requests wait meanwhile: microseconds if quotas are the same, about 10 ms per million
    /// callers if not.
    ///
    /// # Errors
    ///
    /// If the store cannot keep the limits. Then nothing has changed.
    pub fn replace(&self, mut policy: Policy) -> Result<Changes, Error> {
        let mut edits = self.lock();
        let now = self.store.now();
        let lists = edits.in_force(&policy.lists, now);
        // Before anyone has to wait: lists may be long.
        let changes = Changes::between(&self.active().policy, &policy);
        let mut pause = self.pause();
        let old = &pause.next;
        let adaptive = old.adaptive.next(&policy, now)?;
        let limits = Arc::new(self.store.reopen(&old.limits, &edits.specs(&policy, &self.store))?);
        edits.replaced = edits.replaced.wrapping_add(1);
        carry_on(&old.policy, &mut policy, edits.replaced);
        let adaptive = Arc::new(adaptive.put_in_force(&policy, now));
        pause.next = Arc::new(Active { policy: Arc::new(policy), lists, limits, adaptive });
        Ok(changes)
    }

    /// Lets nobody decide, if what is spent is in this process and has to move.
    fn pause(&self) -> Pause<'_, S> {
        let pause = Pause { gate: self, next: Arc::clone(&self.active()) };
        if self.store.is_in_process() {
            self.active.store(None);
            // Nobody begins to decide now. Whoever still does, ends: that takes nanoseconds, or
            // microseconds if an adaptive limit reads its signal, unless its thread is not running
            // just now.
            let in_use = |pause: &Pause<'_, S>| {
                Arc::strong_count(&pause.next) > 1 || Arc::strong_count(&pause.next.limits) > 1
            };
            while in_use(&pause) {
                std::thread::yield_now();
            }
            // Pairs with the release of the last reference that was dropped: what was
            // spent through it is seen.
            fence(Ordering::Acquire);
        }
        pause
    }

    /// What a [`LimitCheck`](super::LimitCheck) would answer, without spending.
    ///
    /// # Errors
    ///
    /// If there is no such limit, a value does not fit its part, the values have more than
    /// 1,024 bytes together, or the store could not answer.
    pub async fn peek_limit(
        &self,
        limit: &str,
        values: &[&str],
        cost: u64,
    ) -> Result<Decision, Error> {
        let active = self.active();
        let (limit, key) = find(&active.policy, limit, values)?;
        active.policy.rules[limit].expect_own_quota()?;
        self.peek(&active, &Spend::new(limit, key, cost), &Asked::by_name(&active.policy)).await
    }

    /// What would be decided about a spend.
    pub(super) async fn peek(
        &self,
        active: &Active<S::Limits>,
        spend: &Spend,
        asked: &Asked,
    ) -> Result<Decision, Error> {
        match active.adaptive.get(spend.limit) {
            Some(live) => self.peek_decision(active, live, spend, asked),
            None => self.store.peek(&active.limits, spend).await,
        }
    }

    /// Replaces a reservation under one limit with the actual cost: debits what is missing, into
    /// debt if necessary, or refunds the rest, even if it has been refilled since, and as often as it
    /// is called. Where that matters, settle a [receipt](super::Outcome::receipt).
    ///
    /// # Errors
    ///
    /// As for [`peek_limit`](Self::peek_limit).
    pub async fn settle_limit(
        &self,
        limit: &str,
        values: &[&str],
        reserved: u64,
        actual: u64,
    ) -> Result<Settled, Error> {
        let active = self.active();
        let (limit, key) = find(&active.policy, limit, values)?;
        active.policy.rules[limit].expect_own_quota()?;
        active.policy.rules[limit].expect_rate("release permits in place of settling")?;
        self.store.settle(&active.limits, &Spend::new(limit, key, reserved), actual).await
    }

    /// Refuses a limit under which nothing can be reserved. To be asked before a check that is to
    /// give a [receipt](super::Outcome::receipt): afterwards the estimate is spent.
    ///
    /// # Errors
    ///
    /// If there is no such limit, it is on concurrency, or it follows load.
    pub fn expect_reservable(&self, limit: &str) -> Result<(), Error> {
        let active = self.active();
        let rule = &active.policy.rules[find_rule(&active.policy, limit)?];
        rule.expect_rate("acquire a permit in place of a reservation")
    }

    /// Forgets what a caller has spent under one limit.
    ///
    /// # Errors
    ///
    /// As for [`peek_limit`](Self::peek_limit).
    pub async fn reset_limit(&self, limit: &str, values: &[&str]) -> Result<(), Error> {
        let active = self.active();
        let (limit, key) = find(&active.policy, limit, values)?;
        active.policy.rules[limit].expect_rate("permits return when they are released")?;
        self.store.reset(&active.limits, limit, &key).await
    }

    /// The usage of each limit by name, in the order of the policy, without those whose callers
    /// are kept elsewhere. Visits every caller: for people and metrics.
    pub fn usage(&self) -> Vec<(String, Usage)> {
        // A new policy waits for this rather than for whoever holds the old one.
        let _changing = self.lock();
        let active = self.active();
        let usage =
            |(place, name): (usize, &str)| Some((name.to_owned(), self.usage_of(&active, place)?));
        active.policy.limits().enumerate().filter_map(usage).collect()
    }
}

/// While it lasts, nobody decides. When it ends, `next` is in force: what was before,
/// unless all went well.
struct Pause<'g, S: Store> {
    gate: &'g Gate<S>,
    next: Arc<Active<S::Limits>>,
}

impl<S: Store> Drop for Pause<'_, S> {
    fn drop(&mut self) {
        self.gate.active.store(Some(Arc::clone(&self.next)));
    }
}

/// Bytes of all parts of a key that is given by its parts. Such keys are kept: in overrides
/// for ever, in receipts until they are settled.
const LONGEST_KEY: usize = 1024;

/// The place of a limit.
// Inlined, since checks by name begin with it.
#[inline(always)]
pub(super) fn find_rule(policy: &Policy, name: &str) -> Result<usize, Error> {
    policy.rule(name).ok_or_else(|| {
        let hint = hint(name, policy.limits());
        Error::unknown(format!("there is no limit {}{hint}", quoted(name)))
    })
}

/// The place of a limit and the key of a caller.
pub(super) fn find(policy: &Policy, name: &str, values: &[&str]) -> Result<(usize, Key), Error> {
    let place = find_rule(policy, name)?;
    let per = &policy.rules[place].per;
    if values.len() != per.len() {
        let parts = per_text(per);
        return Err(Error::unknown(format!(
            "limit {name:?} is counted per {parts}, {} in all, and {} were given",
            per.len(),
            values.len()
        )));
    }
    let length: usize = values.iter().map(|value| value.len()).sum();
    if length > LONGEST_KEY {
        return Err(Error::unknown(format!(
            "limit {name:?}: the key has {length} bytes; write at most {LONGEST_KEY}"
        )));
    }
    let mut key = key_of(per, values, &policy.identifier)
        .map_err(|(index, why)| Error::unknown(format!("limit {name:?}, {}: {why}", per[index])))?;
    key.tier = policy.tier_place(place, values);
    Ok((place, key))
}

/// Notes since which policy each limit counts as it does.
fn carry_on(old: &Policy, new: &mut Policy, number: u32) {
    for rule in &mut new.rules {
        let same = old.rule(&rule.name).map(|place| &old.rules[place]);
        let same = same.filter(|old| rule.counts_like(old));
        rule.since = same.map_or(number, |old| old.since);
        rule.carry_on_bans(old.rule(&rule.name).map(|place| &old.rules[place]));
    }
}
