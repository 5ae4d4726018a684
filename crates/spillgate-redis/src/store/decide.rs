//! Decides all spends of a call together, in phases: remembered denial, leases, scripts, outage, shadow.

use std::sync::Arc;

use smallvec::SmallVec;
use spillgate::{Decision, Timestamp};
use spillgate_policy::Error;
use spillgate_policy::store::Spend;

use super::RedisStore;
use super::batches::Batches;
use super::core::StoreCore;
use super::last_words::InFlight;
use super::limits::{RedisLimits, store_error};
use super::local_tables::SpentShares;
use super::pending::PendingSpend;
use crate::backend::{Backend, BackendError, Fault};
use crate::lease::Leases;
use crate::to_the_end::to_the_end;

/// A call that is being decided. If it is dropped before, what it has spent is taken back.
pub(super) struct DecideRequest<'c, B: Backend> {
    pub(super) limits: &'c RedisLimits,
    leases: &'c Leases<StoreCore<B>>,
    pub(super) spends: &'c mut [Spend],
    /// Spends for the scripts: at first, all of them.
    pub(super) pending: SmallVec<[PendingSpend; 1]>,
    /// Spends allowed out of leases.
    pub(super) leased: Vec<(PendingSpend, Decision)>,
    /// Leased spends in shadow mode, which follow if the rest passes.
    pub(super) shadow: Vec<PendingSpend>,
    /// Leased spends whose take failed.
    pub(super) failed: Vec<PendingSpend>,
    /// What was spent out of this node's shares as well, since Redis was away until a moment ago.
    pub(super) shares: Option<SpentShares>,
    /// The last failure of Redis.
    pub(super) failure: Option<BackendError>,
}

/// What is spent in several places, in a task of its own.
struct Scripts {
    pending: SmallVec<[PendingSpend; 1]>,
    batches: Batches,
    failure: Option<BackendError>,
}

impl<B: Backend> DecideRequest<'_, B> {
    pub(super) fn is_out_of_time(&self) -> bool {
        is_out_of_time(self.failure.as_ref())
    }

    /// True if it spends in several places, so that it must not end between them.
    fn is_divided(&self, batches: &Batches) -> bool {
        let is_in_rounds =
            self.pending.len() > 1 && self.pending.iter().any(|pending| pending.account.is_some());
        is_in_rounds || batches.enforced.len() + usize::from(!self.leased.is_empty()) > 1
    }
}

impl<B: Backend> Drop for DecideRequest<'_, B> {
    fn drop(&mut self) {
        for (pending, decision) in self.leased.drain(..).rev() {
            if let (Some(id), Some(spent)) = (pending.lease, decision.spent()) {
                self.leases.undo(id, &spent);
            }
        }
    }
}

/// True if a call has waited for Redis in vain, and cannot wait again.
pub(super) fn is_out_of_time(failure: Option<&BackendError>) -> bool {
    failure.is_some_and(|why| match why.fault() {
        Fault::TimedOut => why.is_unanswered(),
        fault => fault == Fault::Overloaded,
    })
}

impl<B: Backend> RedisStore<B> {
    pub(super) async fn decide_call(
        &self,
        limits: &RedisLimits,
        spends: &mut [Spend],
    ) -> Result<(), Error> {
        let local = self.core.local();
        let mut call = self.request(limits, spends, local);
        if self.deny_by_last_word(&mut call, local) {
            return Ok(());
        }
        // Rare phases are boxed: the future of a call has room for everything it may wait for.
        let has_leases = call.pending.iter().any(|pending| pending.lease.is_some());
        let is_denied = (has_leases && !Box::pin(self.spend_leases(&mut call)).await)
            || (self.core.returning.is_any(local)
                && !Box::pin(self.spend_shares(&mut call, local)).await?)
            || !self.register_in_flight(&mut call, local);
        if is_denied {
            self.undo_leases(&mut call);
            return Ok(());
        }
        let mut batches = Batches::order(&mut call.pending, &self.core.backend);
        let passes = self.spend_in_redis(&mut call, &mut batches).await?
            && (call.failure.is_none() || Box::pin(self.decide_outage(&mut call)).await?);
        if !passes {
            self.undo_leases(&mut call);
            self.record_denied(&mut call);
            return Ok(());
        }
        call.leased.clear();
        call.shares.take().into_iter().for_each(SpentShares::keep);
        let has_shadow = !call.shadow.is_empty() || !batches.shadow.is_empty();
        let failure = match has_shadow {
            true => Box::pin(self.spend_shadow(&mut call, &mut batches)).await,
            false => None,
        };
        self.record_allowed(&mut call);
        // A failure of shadow limits matters only if there are no others.
        let is_shadow = |spend: &Spend| spend.is_shadow;
        let failure = failure.filter(|_| call.spends.iter().all(is_shadow));
        failure.map_or(Ok(()), |why| Err(store_error(why)))
    }

    /// Denies a call without Redis, if the last words say so.
    pub(super) fn deny_at_once(&self, limits: &RedisLimits, spends: &mut [Spend]) -> bool {
        let local = self.core.local();
        self.deny_by_last_word(&mut self.request(limits, spends, local), local)
    }

    fn request<'c>(
        &'c self,
        limits: &'c RedisLimits,
        spends: &'c mut [Spend],
        local: Timestamp,
    ) -> DecideRequest<'c, B> {
        let pending = |(index, spend): (usize, &Spend)| {
            let limit = limits.limit(spend.limit);
            PendingSpend {
                spend: index,
                batch: 0,
                lease: self.lease_of(limit, spend),
                caller: self.core.caller_of(limit, spend, local),
                cost: spend.cost,
                is_shadow: spend.is_shadow,
                in_flight: None,
                reply: None,
                account: None,
            }
        };
        let pending = spends.iter().enumerate().map(pending).collect();
        DecideRequest {
            limits,
            leases: &self.leases,
            spends,
            pending,
            leased: Vec::new(),
            shadow: Vec::new(),
            failed: Vec::new(),
            shares: None,
            failure: None,
        }
    }

    /// Denies a call if a remembered state does. Returns whether it is denied.
    fn deny_by_last_word(&self, call: &mut DecideRequest<'_, B>, local: Timestamp) -> bool {
        let enforced = || call.pending.iter().filter(|pending| !pending.is_shadow);
        let known = |pending: &PendingSpend| self.known_decision(pending, local);
        let is_denied = enforced().filter_map(known).any(|decision| decision.is_denied());
        if is_denied {
            self.core.counters.by_memory.add(1);
            for pending in enforced() {
                call.spends[pending.spend].decision = known(pending);
            }
        }
        is_denied
    }

    /// The decision that this node can make on its own.
    fn known_decision(&self, pending: &PendingSpend, local: Timestamp) -> Option<Decision> {
        let PendingSpend { caller, cost, .. } = pending;
        let leased =
            pending.lease.and_then(|id| self.leases.peek(id, &caller.by_policy, *cost, local));
        let words = &self.core.words;
        leased.or_else(|| words.peek(caller.name, caller.effective(), *cost, local))
    }

    /// Registers the spends as in flight. Returns false if the call is denied instead, because calls
    /// in flight already ask for everything that is left.
    fn register_in_flight(&self, call: &mut DecideRequest<'_, B>, local: Timestamp) -> bool {
        let words = &self.core.words;
        for index in 0..call.pending.len() {
            let PendingSpend { caller, cost, is_shadow: false, .. } = &call.pending[index] else {
                continue;
            };
            match words.begin(caller.name, caller.effective(), *cost, local) {
                Ok(in_flight) => call.pending[index].in_flight = in_flight,
                Err(denied) => {
                    self.core.counters.by_memory.add(1);
                    call.spends[call.pending[index].spend].decision = Some(denied);
                    return false;
                }
            }
        }
        true
    }

    /// Spends what is enforced. Returns whether it was spent. A call that is dropped between two
    /// places is carried out all the same, and then undone.
    async fn spend_in_redis(
        &self,
        call: &mut DecideRequest<'_, B>,
        batches: &mut Batches,
    ) -> Result<bool, Error> {
        // It may become divided, if its slot is being moved.
        while !call.is_divided(batches) {
            let DecideRequest { pending, failure, .. } = call;
            if let Some(passes) = self.core.run_script(pending, failure, batches, 0, false).await {
                return Ok(passes);
            }
        }
        let mut scripts = Scripts {
            pending: std::mem::take(&mut call.pending),
            batches: std::mem::take(batches),
            failure: call.failure.take(),
        };
        let core = Arc::clone(&self.core);
        let run = async move {
            let Scripts { pending, batches, failure } = &mut scripts;
            let passes = core.run_scripts(pending, failure, batches).await;
            (scripts, passes)
        };
        let core = Arc::clone(&self.core);
        let unclaimed = move |(scripts, passes): (Scripts, bool)| {
            if passes {
                core.undo_later(&scripts.pending);
            }
        };
        let (scripts, passes) = Box::pin(to_the_end(run, unclaimed)).await.map_err(store_error)?;
        (call.pending, call.failure, *batches) =
            (scripts.pending, scripts.failure, scripts.batches);
        Ok(passes)
    }

    /// Spends what is in shadow mode and was not part of an enforced batch.
    async fn spend_shadow(
        &self,
        call: &mut DecideRequest<'_, B>,
        batches: &mut Batches,
    ) -> Option<BackendError> {
        if call.is_out_of_time() {
            return None;
        }
        let mut failure = self.spend_shadow_leases(call).await;
        let mut place = 0;
        while let Some(range) = batches.shadow.get(place).cloned() {
            let batch = &mut call.pending[range.clone()];
            match self.core.spend(batch).await {
                Ok(_) => {}
                Err(why) if why.fault() == Fault::Scattered && range.len() > 1 => {
                    batches.scatter_shadow(place);
                    continue;
                }
                Err(why) => {
                    self.core.mark_failed(batch);
                    failure = Some(why);
                }
            }
            place += 1;
        }
        failure
    }

    fn record_denied(&self, call: &mut DecideRequest<'_, B>) {
        for pending in call.pending.iter_mut().filter(|pending| !pending.is_shadow) {
            let Some(reply) = pending.reply else { continue };
            let caller = &pending.caller;
            self.core.words.record(caller.name, caller.effective(), reply.word, reply.sample, true);
            pending.in_flight.take().into_iter().for_each(InFlight::answered);
            self.core.counters.by_redis.add(1);
            call.spends[pending.spend].decision = pending.peeked();
        }
    }

    fn record_allowed(&self, call: &mut DecideRequest<'_, B>) {
        for pending in &mut call.pending {
            let Some(reply) = pending.reply else { continue };
            let caller = &pending.caller;
            let word = pending.spent().map_or(reply.word, |(_, spent)| spent);
            if !pending.is_shadow {
                self.core.words.record(caller.name, caller.effective(), word, reply.sample, false);
            }
            pending.in_flight.take().into_iter().for_each(InFlight::answered);
            self.core.counters.by_redis.add(1);
            call.spends[pending.spend].decision = pending.decision();
        }
    }
}
