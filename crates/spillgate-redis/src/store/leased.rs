//! Decides by leases.

use std::sync::Arc;

use spillgate::algorithm::SpendRecord;
use spillgate::{Decision, Timestamp};
use spillgate_policy::Key;
use spillgate_policy::store::Spend;

use super::RedisStore;
use super::core::Caller;
use super::decide::DecideRequest;
use super::limits::{Limit, RedisLimits};
use crate::backend::{Backend, BackendError};
use crate::lease::{LeaseId, Spent};

impl<B: Backend> RedisStore<B> {
    /// The id of a caller's lease.
    pub(super) fn id(&self, limit: &Limit, key: &Key) -> LeaseId {
        self.leases.id(limit.number(), key.as_bytes())
    }

    /// The same, if the limit is leased.
    pub(super) fn lease(&self, limit: &Arc<Limit>, key: &Key) -> Option<LeaseId> {
        limit.is_leased.then(|| self.id(limit, key))
    }

    /// The same, unless a quota comes with the call.
    pub(super) fn lease_of(&self, limit: &Arc<Limit>, spend: &Spend) -> Option<LeaseId> {
        if spend.quota.is_some() { None } else { self.lease(limit, &spend.key) }
    }

    /// Decides a call by leases alone, if possible. Otherwise nothing has happened.
    pub(super) fn decide_by_leases(&self, limits: &RedisLimits, spends: &mut [Spend]) -> bool {
        let is_leased =
            |spend: &Spend| limits.limit(spend.limit).is_leased && spend.quota.is_none();
        if !spends.iter().all(is_leased) {
            return false;
        }
        let local = self.core.local();
        for index in 0..spends.len() {
            let spend = &mut spends[index];
            let limit = limits.limit(spend.limit);
            let (id, own) = (self.id(limit, &spend.key), limit.quota_for(&spend.key));
            let (decision, is_over) = match self.leases.spend(id, own, spend.cost, local) {
                Spent::Allowed(decision) => (Some(decision), false),
                Spent::Denied(decision) => (Some(decision), !spend.is_shadow),
                Spent::Empty => (None, true),
            };
            spend.decision = decision;
            if is_over {
                self.take_back(limits, &mut spends[..index], decision.is_some(), local);
                return decision.is_some();
            }
        }
        true
    }

    /// Takes back what was spent out of leases, and decides again without it if the call is denied.
    fn take_back(
        &self,
        limits: &RedisLimits,
        spends: &mut [Spend],
        is_denied: bool,
        local: Timestamp,
    ) {
        for spend in spends.iter_mut().rev() {
            let limit = limits.limit(spend.limit);
            let (id, own) = (self.id(limit, &spend.key), limit.quota_for(&spend.key));
            if let Some(spent) = spend.decision.take().and_then(|it| it.spent()) {
                self.count_undone(self.leases.undo(id, &spent));
            }
            if is_denied {
                spend.decision = self.leases.peek(id, own, spend.cost, local);
            }
        }
    }

    /// Spends what is enforced and leased. Returns false if a lease denies it. What cannot be
    /// leased stays pending.
    pub(super) async fn spend_leases(&self, call: &mut DecideRequest<'_, B>) -> bool {
        if call.pending.iter().all(|pending| pending.lease.is_none()) {
            return true;
        }
        for pending in std::mem::take(&mut call.pending) {
            let Some(id) = pending.lease else {
                call.pending.push(pending);
                continue;
            };
            if pending.is_shadow {
                call.shadow.push(pending);
                continue;
            }
            if call.is_out_of_time() {
                call.failed.push(pending);
                continue;
            }
            // Nothing is taken in advance before all have charged what they admitted.
            if self.core.is_returning(&pending.caller, self.core.local()) {
                call.pending.push(pending);
                continue;
            }
            let own = &pending.caller.by_policy;
            match self.leases.decide(id, own, &pending.caller, pending.cost).await {
                Ok(None) => call.pending.push(pending),
                Ok(Some(decision)) => {
                    call.spends[pending.spend].decision = Some(decision);
                    if decision.is_denied() {
                        return false;
                    }
                    call.leased.push((pending, decision));
                }
                Err(why) => {
                    call.failed.push(pending);
                    call.failure = Some(why);
                }
            }
        }
        true
    }

    /// Spends what is leased and in shadow mode.
    pub(super) async fn spend_shadow_leases(
        &self,
        call: &mut DecideRequest<'_, B>,
    ) -> Option<BackendError> {
        let mut failure = None;
        for mut pending in std::mem::take(&mut call.shadow) {
            let Some(id) = pending.lease else { continue };
            let own = &pending.caller.by_policy;
            let decided = self.leases.decide(id, own, &pending.caller, pending.cost).await;
            let decided = match decided {
                Ok(None) => {
                    let spent = self.core.spend(std::slice::from_mut(&mut pending)).await;
                    spent.map(|_| pending.decision())
                }
                decided => decided,
            };
            match decided {
                Ok(decision) => call.spends[pending.spend].decision = decision,
                Err(why) => failure = Some(why),
            }
        }
        failure
    }

    /// Takes back what was spent out of leases, since the call is denied.
    pub(super) fn undo_leases(&self, call: &mut DecideRequest<'_, B>) {
        let local = self.core.local();
        for (pending, decision) in std::mem::take(&mut call.leased).into_iter().rev() {
            let Some(id) = pending.lease else { continue };
            let spent = decision.spent();
            self.count_undone(spent.is_some_and(|spent| self.leases.undo(id, &spent)));
            let own = &pending.caller.by_policy;
            let left = self.leases.peek(id, own, pending.cost, local);
            call.spends[pending.spend].decision = left;
        }
    }

    fn count_undone(&self, is_undone: bool) {
        let counters = &self.core.counters;
        if is_undone { &counters.undone } else { &counters.kept_spends }.add(1);
    }

    /// Debits a lease with the cost beyond the reserved one, if it holds enough. Returns what is
    /// left.
    pub(super) fn debit_lease(
        &self,
        caller: &Caller,
        lease: Option<LeaseId>,
        reserved: u64,
        actual: u64,
    ) -> Option<Decision> {
        let more = actual.checked_sub(reserved).filter(|more| *more > 0)?;
        let (id, own, local) = (lease?, &caller.by_policy, self.core.local());
        match self.leases.spend(id, own, more, local) {
            Spent::Allowed(spent) => Some(self.leases.peek(id, own, 0, local).unwrap_or(spent)),
            Spent::Denied(_) | Spent::Empty => None,
        }
    }

    /// Refunds the unused cost to a lease, if nothing was spent out of it since. Returns what is
    /// left.
    pub(super) fn refund_lease(
        &self,
        caller: &Caller,
        lease: Option<LeaseId>,
        spent: Option<SpendRecord>,
        actual: u64,
    ) -> Option<Decision> {
        let (id, spent) = (lease?, spent?);
        let unused = spent.cost.checked_sub(actual).filter(|unused| *unused > 0)?;
        if !self.leases.give_back(id, &spent, unused) {
            return None;
        }
        let left = self.leases.peek(id, &caller.by_policy, 0, self.core.local());
        Some(left.unwrap_or_else(|| Decision::peek(spent.algorithm, spent.word, spent.at, 0)))
    }

    /// Gives back what a lease holds, since the quota of its bucket will change.
    pub(super) async fn return_lease(&self, limit: &Arc<Limit>, key: &Key) {
        if let Some(id) = self.lease(limit, key) {
            self.leases.return_one(id).await;
        }
    }

    /// Forgets a lease whose bucket has changed.
    pub(super) fn forget_lease(&self, limit: &Arc<Limit>, key: &Key) {
        if let Some(id) = self.lease(limit, key) {
            self.leases.forget(id);
        }
    }
}
