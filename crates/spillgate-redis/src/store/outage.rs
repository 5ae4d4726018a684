//! Deciding while the engine cannot be asked.

use std::num::NonZeroU32;
use std::sync::Arc;

use smallvec::SmallVec;
use spillgate::algorithm::{Algorithm, AnyAlgorithm, SpendRecord, Word};
use spillgate::{Decision, Settled};
use spillgate_policy::store::{Outage, Spend, Store};
use spillgate_policy::{Error, Key};
use tokio::runtime::Handle;

use super::RedisStore;
use super::ask::Asked;
use super::core::Caller;
use super::decide::Call;
use super::limits::{RedisLimits, refused, unanswered};
use super::local::{Local, local_charge};
use crate::engine::{Engine, EngineError, Fault};
use crate::flow::inherit_client;

impl<E: Engine> RedisStore<E> {
    /// Decides about what the engine could not be asked for. Tells whether the call passes;
    /// if it does not, what was spent at the engine is taken back, if it can be: for that
    /// the call does not wait, since the engine may not answer.
    ///
    /// # Errors
    ///
    /// If one of the limits is closed, or if the engine was not asked since it is asked too much.
    pub(super) async fn pass_outage(&self, call: &mut Call<'_>) -> Result<bool, Error> {
        let Some(why) = &call.failure else { return Ok(true) };
        if why.fault() == Fault::Overloaded {
            let error = unanswered(why.clone());
            self.refuse(call);
            return Err(error);
        }
        let unheard = |asked: &&Asked| !asked.is_shadow && asked.heard.is_none();
        let failed: SmallVec<[&Asked; 2]> =
            call.asked.iter().filter(unheard).chain(&call.failed).collect();
        let counters = &self.core.counters;
        let is_closed = |asked: &&&Asked| asked.caller.limit.outage == Outage::Closed;
        let closed = failed.iter().find(is_closed);
        if let Some(error) = closed.map(|closed| refused(closed.caller.limit.name(), why)) {
            drop(failed);
            counters.outage_closed.add(1);
            self.refuse(call);
            return Err(error);
        }
        let mut own = SmallVec::<[Spend; 2]>::new();
        let mut local = SmallVec::<[&Asked; 2]>::new();
        for asked in &failed {
            let (caller, spend) = (&asked.caller, &call.spends[asked.spend]);
            if let Some(spend) = self.own_charge(call.limits, spend, caller).await? {
                own.push(spend);
                local.push(asked);
            }
        }
        counters.outage_local.add(own.len());
        counters.outage_open.add(failed.len() - own.len());
        let Local { memory, .. } = &call.limits.local;
        memory.decide(&call.limits.local.among(self.core.assumed_nodes()), &mut own).await?;
        let is_denied = |spend: &Spend| spend.decision.is_some_and(|it| it.is_denied());
        let passes = !own.iter().any(is_denied);
        for (asked, decided) in local.into_iter().zip(&own) {
            call.spends[asked.spend].decision = decided.decision;
            if passes && let Some(decision) = &decided.decision {
                self.owe(&asked.caller, decision);
            }
        }
        if !passes {
            self.core.undo_later(&call.asked);
        }
        Ok(passes)
    }

    /// Takes back what was spent for a call that nothing is decided about.
    fn refuse(&self, call: &mut Call<'_>) {
        self.core.undo_later(&call.asked);
        self.undo_leases(call);
        call.spends.iter_mut().for_each(|spend| spend.decision = None);
    }

    /// A spend under this node's own share, in which the caller owes what it did by its last
    /// word, if its limit goes on by that.
    pub(super) async fn own_charge(
        &self,
        limits: &RedisLimits,
        spend: &Spend,
        caller: &Caller,
    ) -> Result<Option<Spend>, Error> {
        let nodes = self.core.assumed_nodes();
        let Some(own) = local_charge(limits, spend, nodes) else { return Ok(None) };
        self.follow_override(limits, caller, &spend.key).await?;
        if let Some(last) = self.core.words.last(caller.name) {
            let counted = caller.counted();
            let in_share =
                |share: &AnyAlgorithm, local| last.in_share(counted, share, nodes, local);
            limits.local.among(nodes).raise(&own, in_share);
        }
        Ok(Some(own))
    }

    /// The same, or why there is no answer.
    async fn own_charge_or(
        &self,
        limits: &RedisLimits,
        spend: &Spend,
        caller: &Caller,
        why: &EngineError,
    ) -> Result<Spend, Error> {
        if why.fault() == Fault::Overloaded {
            return Err(unanswered(why.clone()));
        }
        let own = self.own_charge(limits, spend, caller).await?;
        own.ok_or_else(|| refused(caller.limit.name(), why))
    }

    /// What is left of this node's share.
    pub(super) async fn peek_own(
        &self,
        limits: &RedisLimits,
        spend: &Spend,
        caller: &Caller,
        why: &EngineError,
    ) -> Result<Decision, Error> {
        let own = self.own_charge_or(limits, spend, caller, why).await?;
        let among = limits.local.among(self.core.assumed_nodes());
        limits.local.memory.peek(&among, &own).await
    }

    /// Settles a spend under this node's share.
    pub(super) async fn settle_own(
        &self,
        limits: &RedisLimits,
        spend: &Spend,
        caller: &Caller,
        actual: u64,
        why: &EngineError,
    ) -> Result<Settled, Error> {
        let (reserved, nodes) = (spend.cost, self.core.assumed_nodes());
        let mut own = self.own_charge_or(limits, spend, caller, why).await?;
        // What may have been given back there is not given back here as well.
        if why.is_unanswered() && actual < reserved {
            own.cost = actual;
        } else {
            own.decision = spend.decision;
        }
        let (memory, among) = (&limits.local.memory, limits.local.among(nodes));
        let local = self.core.local();
        let owed = |decision: &Decision| {
            let (share, word) = decision.state();
            share.owed(word, local)
        };
        let before = owed(&memory.peek(&among, &own).await?);
        let settled = memory.settle(&among, &own, actual).await?;
        let after = owed(&settled.left);
        if after > before {
            self.owe_more(caller, after - before, settled.left.state());
        } else {
            // What has been refilled already is not given back.
            self.core.unreported.subtract(caller, before - after);
        }
        Ok(settled)
    }

    /// Settles a spend as soon as the engine is not asked too much any more: that it was not asked
    /// for this is certain. Tells what there is as far as this node knows.
    pub(super) fn settle_later(
        &self,
        caller: Caller,
        charged: Option<SpendRecord>,
        reserved: u64,
        actual: u64,
    ) -> Settled {
        let (counted, local) = (*caller.counted(), self.core.local());
        let last = self.core.words.last(caller.name);
        let word = last.map_or(counted.fresh(None), |last| {
            last.in_share(&counted, &counted.algorithm, NonZeroU32::MIN, local)
        });
        match actual.checked_sub(reserved) {
            Some(0) => {}
            Some(more) => {
                let all = counted.algorithm.deepest();
                let word = counted.algorithm.debit_up_to(word, local, all, all);
                self.owe_more(&caller, more, (counted.algorithm, word));
            }
            None => {
                let core = Arc::clone(&self.core);
                let settle =
                    async move { core.settle_when_it_can(caller, charged, reserved, actual).await };
                if let Ok(runtime) = Handle::try_current() {
                    runtime.spawn(inherit_client(settle));
                }
            }
        }
        Settled { left: Decision::peek(counted.algorithm, word, local, 0), uncharged: 0 }
    }

    /// Has a caller charged at the engine, once that is back, for what its share let through.
    pub(super) fn owe(&self, caller: &Caller, decision: &Decision) {
        self.owe_more(caller, decision.spent().map_or(0, |it| it.cost), decision.state());
    }

    fn owe_more(&self, caller: &Caller, tokens: u64, spent: (AnyAlgorithm, Word)) {
        if tokens > 0 {
            self.core.unreported.add(caller, tokens, spent, self.core.local());
            self.core.report_later();
        }
    }

    /// Gives a caller the share of what it was last known to be given at run time.
    async fn follow_override(
        &self,
        limits: &RedisLimits,
        caller: &Caller,
        key: &Key,
    ) -> Result<(), Error> {
        let limit = &caller.limit;
        let (Some(place), Some(given)) = (limit.local, self.core.given.last(caller.name)) else {
            return Ok(());
        };
        // If that was taken away, what the policy gives it counts again.
        let counted = given.or_else(|| limit.configured(key).copied());
        let quota = counted.map(|counted| counted.quota);
        limits.local.set_override(place, key, quota, self.core.assumed_nodes()).await
    }
}
