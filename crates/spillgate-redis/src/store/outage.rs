//! Decides while Redis is unavailable.

use smallvec::SmallVec;
use spillgate::algorithm::{Algorithm, AnyAlgorithm};
use spillgate::{Decision, Settled, Timestamp};
use spillgate_policy::store::{Outage, Spend, Store};
use spillgate_policy::{Error, Key};

use super::RedisStore;
use super::core::Caller;
use super::decide::DecideRequest;
use super::limits::{RedisLimits, limit_error, store_error};
use super::local_tables::{LocalTables, SpentShares, share_spend};
use super::pending::PendingSpend;
use crate::backend::{Backend, BackendError, Fault};

impl<B: Backend> RedisStore<B> {
    /// Decides the spends that Redis could not be asked for, by the `outage` of their limits.
    /// Returns whether the call passes. If it does not, what was spent in Redis is taken back in
    /// the background, since Redis may not answer.
    ///
    /// # Errors
    ///
    /// If one of the limits is closed, or if Redis is overloaded.
    pub(super) async fn decide_outage(
        &self,
        call: &mut DecideRequest<'_, B>,
    ) -> Result<bool, Error> {
        let Some(why) = &call.failure else { return Ok(true) };
        if why.fault() == Fault::Overloaded {
            let error = store_error(why.clone());
            self.abort(call);
            return Err(error);
        }
        let unanswered_spend =
            |pending: &&PendingSpend| !pending.is_shadow && pending.reply.is_none();
        let failed: SmallVec<[&PendingSpend; 2]> =
            call.pending.iter().filter(unanswered_spend).chain(&call.failed).collect();
        let now = self.core.local();
        for pending in &failed {
            self.core.returning.note(why, self.core.backend.slot(&pending.caller.name), now);
        }
        let counters = &self.core.counters;
        let is_closed = |pending: &&&PendingSpend| {
            !matches!(pending.caller.limit.outage, Outage::Local | Outage::Open)
        };
        let closed = failed.iter().find(is_closed);
        if let Some(error) = closed.map(|closed| limit_error(closed.caller.limit.name(), why)) {
            drop(failed);
            counters.outage_closed.add(1);
            self.abort(call);
            return Err(error);
        }
        let shares = call.shares.take();
        let mut own = SmallVec::<[Spend; 2]>::new();
        let mut local = SmallVec::<[&PendingSpend; 2]>::new();
        let mut decided = SmallVec::<[(&PendingSpend, Decision); 2]>::new();
        for pending in &failed {
            let (caller, spend) = (&pending.caller, &call.spends[pending.spend]);
            // Once is enough.
            let spent = shares.as_ref().and_then(|shares| shares.decision(pending.spend));
            if let Some(decision) = spent {
                decided.push((pending, decision));
            } else if let Some(spend) = self.local_spend(call.limits, spend, caller).await? {
                own.push(spend);
                local.push(pending);
            }
        }
        let by_shares = own.len() + decided.len();
        counters.outage_local.add(by_shares);
        counters.outage_open.add(failed.len() - by_shares);
        let LocalTables { memory, .. } = &call.limits.local;
        memory.decide(&call.limits.local.for_nodes(self.core.nodes.assumed()), &mut own).await?;
        let is_denied = |spend: &Spend| spend.decision.is_some_and(|it| it.is_denied());
        let passes = !own.iter().any(is_denied);
        let now_decided = local.into_iter().zip(own.iter().map(|spend| spend.decision));
        decided.extend(now_decided.filter_map(|(pending, decision)| Some((pending, decision?))));
        for (pending, decision) in decided {
            call.spends[pending.spend].decision = Some(decision);
            if passes {
                self.record_debt(&pending.caller, &decision);
            }
        }
        if passes {
            call.shares = shares;
        } else {
            self.core.undo_later(&call.pending);
        }
        Ok(passes)
    }

    /// Takes back what was spent for a call that ends undecided.
    fn abort(&self, call: &mut DecideRequest<'_, B>) {
        self.core.undo_later(&call.pending);
        self.undo_leases(call);
        call.spends.iter_mut().for_each(|spend| spend.decision = None);
    }

    /// Spends out of this node's shares what Redis is to be asked for as well, since it was away until
    /// a moment ago. Returns false if a share denies the call.
    ///
    /// This is charged in Redis at once, and is no debt.
    pub(super) async fn spend_shares(
        &self,
        call: &mut DecideRequest<'_, B>,
        local: Timestamp,
    ) -> Result<bool, Error> {
        let mut own = SmallVec::<[Spend; 2]>::new();
        let mut places = SmallVec::<[usize; 2]>::new();
        for pending in call.pending.iter().filter(|pending| !pending.is_shadow) {
            if !self.core.is_returning(&pending.caller, local) {
                continue;
            }
            let spend = &call.spends[pending.spend];
            if let Some(spend) = self.local_spend(call.limits, spend, &pending.caller).await? {
                own.push(spend);
                places.push(pending.spend);
            }
        }
        let LocalTables { memory, .. } = &call.limits.local;
        let tables = call.limits.local.for_nodes(self.core.nodes());
        memory.decide(&tables, &mut own).await?;
        let is_denied = |spend: &Spend| spend.decision.is_some_and(|it| it.is_denied());
        if own.iter().any(is_denied) {
            self.core.counters.outage_local.add(own.len());
            for (place, decided) in places.iter().zip(&own) {
                call.spends[*place].decision = decided.decision;
            }
            return Ok(false);
        }
        call.shares = Some(SpentShares { tables, spends: own, places });
        Ok(true)
    }

    /// A spend under this node's share, raised to what the caller owes by its last word; `None`
    /// unless the limit has `outage = "local"`.
    pub(super) async fn local_spend(
        &self,
        limits: &RedisLimits,
        spend: &Spend,
        caller: &Caller,
    ) -> Result<Option<Spend>, Error> {
        let nodes = self.core.nodes.assumed();
        let Some(own) = share_spend(limits, spend, nodes) else { return Ok(None) };
        self.follow_override(limits, caller, &spend.key).await?;
        if let Some(last) = self.core.words.last(caller.name) {
            let effective = caller.effective();
            let in_share =
                |share: &AnyAlgorithm, local| last.in_share(effective, share, nodes, local);
            limits.local.for_nodes(nodes).raise(&own, in_share);
        }
        Ok(Some(own))
    }

    /// The same, or the error if there is no share.
    async fn local_spend_or(
        &self,
        limits: &RedisLimits,
        spend: &Spend,
        caller: &Caller,
        why: &BackendError,
    ) -> Result<Spend, Error> {
        if why.fault() == Fault::Overloaded {
            return Err(store_error(why.clone()));
        }
        let own = self.local_spend(limits, spend, caller).await?;
        own.ok_or_else(|| limit_error(caller.limit.name(), why))
    }

    /// What is left of this node's share.
    pub(super) async fn peek_local(
        &self,
        limits: &RedisLimits,
        spend: &Spend,
        caller: &Caller,
        why: &BackendError,
    ) -> Result<Decision, Error> {
        let own = self.local_spend_or(limits, spend, caller, why).await?;
        let tables = limits.local.for_nodes(self.core.nodes.assumed());
        limits.local.memory.peek(&tables, &own).await
    }

    /// Settles a spend under this node's share.
    pub(super) async fn settle_local(
        &self,
        limits: &RedisLimits,
        spend: &Spend,
        caller: &Caller,
        actual: u64,
        why: &BackendError,
    ) -> Result<Settled, Error> {
        let (reserved, nodes) = (spend.cost, self.core.nodes.assumed());
        let mut own = self.local_spend_or(limits, spend, caller, why).await?;
        // Redis may have given it back already.
        if why.is_unanswered() && actual < reserved {
            own.cost = actual;
        } else {
            own.decision = spend.decision;
        }
        let (memory, tables) = (&limits.local.memory, limits.local.for_nodes(nodes));
        let local = self.core.local();
        let owed = |decision: &Decision| {
            let (share, word) = decision.state();
            share.owed(word, local)
        };
        let before = owed(&memory.peek(&tables, &own).await?);
        let settled = memory.settle(&tables, &own, actual).await?;
        let after = owed(&settled.left);
        if after > before {
            self.core.add_debt(caller, after - before, settled.left.state());
        } else {
            // What has been refilled already is not given back.
            self.core.unreported.subtract(caller, before - after);
        }
        Ok(settled)
    }

    /// Records what the share admitted, to be debited in Redis after the outage.
    pub(super) fn record_debt(&self, caller: &Caller, decision: &Decision) {
        self.core.add_debt(caller, decision.spent().map_or(0, |it| it.cost), decision.state());
    }

    /// Applies the share of the last known override.
    async fn follow_override(
        &self,
        limits: &RedisLimits,
        caller: &Caller,
        key: &Key,
    ) -> Result<(), Error> {
        let limit = &caller.limit;
        let (Some(place), Some(last)) = (limit.local, self.core.overrides.last(caller.name)) else {
            return Ok(());
        };
        // If it was removed, the policy's own override applies again.
        let effective = last.or_else(|| limit.policy_override(key).copied());
        let quota = effective.map(|effective| effective.quota);
        limits.local.set_override(place, key, quota, self.core.nodes.assumed()).await
    }
}
