//! Deciding by leases.

use std::sync::Arc;

use spillgate::algorithm::SpendRecord;
use spillgate::{Decision, Timestamp};
use spillgate_policy::Key;
use spillgate_policy::store::Spend;

use super::RedisStore;
use super::core::Caller;
use super::decide::Call;
use super::limits::{Limit, RedisLimits};
use crate::engine::{Engine, EngineError};
use crate::lease::{Place, Spent};

impl<E: Engine> RedisStore<E> {
    /// Where the lease of a caller is.
    pub(super) fn place(&self, limit: &Limit, key: &Key) -> Place {
        self.leases.place(limit.number(), key.as_bytes())
    }

    /// The same, if the limit is leased.
    pub(super) fn lease(&self, limit: &Arc<Limit>, key: &Key) -> Option<Place> {
        limit.is_leased.then(|| self.place(limit, key))
    }

    /// The same, unless a quota comes with the call.
    pub(super) fn lease_of(&self, limit: &Arc<Limit>, spend: &Spend) -> Option<Place> {
        if spend.quota.is_some() { None } else { self.lease(limit, &spend.key) }
    }

    /// Decides about a call by leases alone, if they can. Otherwise nothing has happened.
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
            let (place, own) = (self.place(limit, &spend.key), limit.counted(&spend.key));
            let (decision, is_over) = match self.leases.spend(place, own, spend.cost, local) {
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

    /// Takes back what was spent out of leases, and tells what there is without it, or nothing.
    fn take_back(
        &self,
        limits: &RedisLimits,
        spends: &mut [Spend],
        is_denied: bool,
        local: Timestamp,
    ) {
        for spend in spends.iter_mut().rev() {
            let limit = limits.limit(spend.limit);
            let (place, own) = (self.place(limit, &spend.key), limit.counted(&spend.key));
            if let Some(charged) = spend.decision.take().and_then(|it| it.spent()) {
                self.leases.undo(place, &charged);
            }
            if is_denied {
                spend.decision = self.leases.peek(place, own, spend.cost, local);
            }
        }
    }

    /// Spends what enforces out of leases, as far as it is leased, and tells whether all of
    /// that passes. What turns out not to be leased is left to be asked for.
    pub(super) async fn spend_leases(&self, call: &mut Call<'_>) -> bool {
        if call.asked.iter().all(|asked| asked.lease.is_none()) {
            return true;
        }
        for asked in std::mem::take(&mut call.asked) {
            let Some(place) = asked.lease else {
                call.asked.push(asked);
                continue;
            };
            if asked.is_shadow {
                call.shadow.push(asked);
                continue;
            }
            if call.is_out_of_time() {
                call.failed.push(asked);
                continue;
            }
            let own = &asked.caller.own;
            match self.leases.decide(place, own, &asked.caller, asked.cost).await {
                Ok(None) => call.asked.push(asked),
                Ok(Some(decision)) => {
                    call.spends[asked.spend].decision = Some(decision);
                    if decision.is_denied() {
                        return false;
                    }
                    call.leased.push((asked, decision));
                }
                Err(why) => {
                    call.failed.push(asked);
                    call.failure = Some(why);
                }
            }
        }
        true
    }

    /// Spends what is in shadow out of leases, or has it asked for.
    pub(super) async fn spend_shadow_leases(&self, call: &mut Call<'_>) -> Option<EngineError> {
        let mut failure = None;
        for mut asked in std::mem::take(&mut call.shadow) {
            let Some(place) = asked.lease else { continue };
            let own = &asked.caller.own;
            let decided = self.leases.decide(place, own, &asked.caller, asked.cost).await;
            let decided = match decided {
                Ok(None) => {
                    let spent = self.core.spend(std::slice::from_mut(&mut asked)).await;
                    spent.map(|_| asked.decision())
                }
                decided => decided,
            };
            match decided {
                Ok(decision) => call.spends[asked.spend].decision = decision,
                Err(why) => failure = Some(why),
            }
        }
        failure
    }

    /// Takes back what was spent out of leases, since the call is denied.
    pub(super) fn undo_leases(&self, call: &mut Call<'_>) {
        let local = self.core.local();
        for (asked, decision) in std::mem::take(&mut call.leased).into_iter().rev() {
            let Some(place) = asked.lease else { continue };
            let counters = &self.core.counters;
            let charged = decision.spent();
            let is_undone = charged.is_some_and(|charged| self.leases.undo(place, &charged));
            if is_undone { &counters.undone } else { &counters.kept_charges }.add(1);
            let own = &asked.caller.own;
            let left = self.leases.peek(place, own, asked.cost, local);
            call.spends[asked.spend].decision = left;
        }
    }

    /// Takes what a call cost beyond what was reserved out of a lease, if it is there. Tells
    /// what is left then.
    pub(super) fn charge_lease(
        &self,
        caller: &Caller,
        lease: Option<Place>,
        reserved: u64,
        actual: u64,
    ) -> Option<Decision> {
        let more = actual.checked_sub(reserved).filter(|more| *more > 0)?;
        let (place, own, local) = (lease?, &caller.own, self.core.local());
        match self.leases.spend(place, own, more, local) {
            Spent::Allowed(spent) => Some(self.leases.peek(place, own, 0, local).unwrap_or(spent)),
            Spent::Denied(_) | Spent::Empty => None,
        }
    }

    /// Gives back to a lease what a call has not used, if nothing was spent out of it since.
    /// Tells what is left then.
    pub(super) fn give_back_to_lease(
        &self,
        caller: &Caller,
        lease: Option<Place>,
        charged: Option<SpendRecord>,
        actual: u64,
    ) -> Option<Decision> {
        let (place, charged) = (lease?, charged?);
        let unused = charged.cost.checked_sub(actual).filter(|unused| *unused > 0)?;
        if !self.leases.give_back(place, &charged, unused) {
            return None;
        }
        let left = self.leases.peek(place, &caller.own, 0, self.core.local());
        Some(left.unwrap_or_else(|| Decision::peek(charged.algorithm, charged.word, charged.at, 0)))
    }

    /// Forgets a lease whose bucket has changed.
    pub(super) fn forget_lease(&self, limit: &Arc<Limit>, key: &Key) {
        if let Some(place) = self.lease(limit, key) {
            self.leases.forget(place);
        }
    }
}
