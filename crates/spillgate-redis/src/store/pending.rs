use std::sync::Arc;

use smallvec::SmallVec;
use spillgate::Decision;
use spillgate::algorithm::{Algorithm, Word};
use tokio::runtime::Handle;

use super::batches::Batches;
use super::core::{Caller, StoreCore, TRIES, unsettled};
use super::decide::is_out_of_time;
use super::last_words::InFlight;
use crate::State;
use crate::backend::{Backend, BackendError, Entry, Exchange, Fault, Found, Op, Result};
use crate::clock_sample::ClockSample;
use crate::flow::inherit_client;
use crate::lease::LeaseId;
use crate::stats::StoreCounters;

/// A spend on its way to Redis.
pub(super) struct PendingSpend {
    /// Its index among the spends of the call.
    pub(super) spend: usize,
    /// Spends of one batch run in one script call.
    pub(super) batch: usize,
    /// The lease, if the limit is leased.
    pub(super) lease: Option<LeaseId>,
    pub(super) caller: Caller,
    pub(super) cost: u64,
    pub(super) is_shadow: bool,
    /// Held until it is answered.
    pub(super) in_flight: Option<InFlight>,
    pub(super) reply: Option<SpendReply>,
}

/// The word before the spend, and whether the spend passes.
#[derive(Clone, Copy)]
pub(super) struct SpendReply {
    pub(super) sample: ClockSample,
    pub(super) word: Word,
    pub(super) passes: bool,
    /// The converted state, if Redis has one under other terms. Then nothing was written.
    converted: Option<State>,
}

impl<B: Backend> StoreCore<B> {
    /// Spends batch by batch. Returns false if Redis denies one of them; then nothing stays spent
    /// there.
    pub(super) async fn run_scripts(
        self: &Arc<Self>,
        pending: &mut [PendingSpend],
        failure: &mut Option<BackendError>,
        batches: &mut Batches,
    ) -> bool {
        let mut place = 0;
        while let Some(start) = batches.enforced.get(place).map(|range| range.start) {
            match self.run_script(pending, failure, batches, place).await {
                Some(true) => place += 1,
                Some(false) => {
                    Box::pin(self.undo(&pending[..start])).await;
                    return false;
                }
                None => {}
            }
        }
        true
    }

    /// Spends one batch. Returns false if Redis denies it, and `None` if its slot is being moved: then
    /// it was not spent, and is now several batches.
    pub(super) async fn run_script(
        self: &Arc<Self>,
        pending: &mut [PendingSpend],
        failure: &mut Option<BackendError>,
        batches: &mut Batches,
        place: usize,
    ) -> Option<bool> {
        let Some(range) = batches.enforced.get(place).cloned() else { return Some(true) };
        if is_out_of_time(failure.as_ref()) {
            self.mark_failed(&mut pending[range.start..]);
            return Some(true);
        }
        let batch = &mut pending[range.clone()];
        match self.spend(batch).await {
            Ok(passes) => Some(passes),
            Err(why) if why.fault() == Fault::Scattered && range.len() > 1 => {
                batches.scatter(place, pending);
                None
            }
            Err(why) => {
                self.mark_failed(batch);
                *failure = Some(why);
                Some(true)
            }
        }
    }

    /// Spends a whole batch at one moment, or nothing if one that is enforced is denied. Returns
    /// whether it was spent.
    ///
    /// States under other terms are converted first, but only to be spent. Writing the conversion of a
    /// denied one could cut it to a smaller quota: while a policy is rolled out, two nodes with
    /// different quotas would forgive in turns. A shadow spend denied this way is not retried.
    pub(super) async fn spend(self: &Arc<Self>, batch: &mut [PendingSpend]) -> Result<bool> {
        for pending in &*batch {
            self.report(pending.caller.name).await?;
        }
        for _ in 0..TRIES {
            let mut batch: SmallVec<[&mut PendingSpend; 2]> =
                batch.iter_mut().filter(|pending| !pending.is_unconverted()).collect();
            let mut entries: SmallVec<[Entry; 1]> = SmallVec::new();
            for pending in &batch {
                entries.push(pending.entry(&self.backend).await?);
            }
            if entries.is_empty() {
                return Ok(true);
            }
            let sent = self.local();
            let reply = self.backend.run(&entries).await?;
            let sample = ClockSample { sent, received: self.local(), now: reply.now };
            let mut is_other = false;
            for (pending, found) in batch.iter_mut().zip(&reply.answers) {
                self.apply_reply(pending, found, sample)?;
                is_other |= matches!(found, Found::Other(_) | Found::Gone);
            }
            if batch.iter().any(|pending| pending.is_denied()) {
                for pending in batch.iter_mut().filter(|pending| pending.is_denied()) {
                    let Some(reply) = pending.reply.as_mut() else { continue };
                    if reply.converted.is_none() && pending.caller.limit.is_cut {
                        let (caller, now) = (&pending.caller, sample.now);
                        reply.word = Box::pin(self.cut(caller, reply.word, now)).await;
                    }
                }
                return Ok(false);
            }
            if !is_other {
                return Ok(true);
            }
            for (pending, found) in batch.iter().zip(&reply.answers) {
                let converted = pending.reply.and_then(|reply| reply.converted);
                if let (Found::Other(stored), Some(new), false) =
                    (found, converted, pending.is_unconverted())
                {
                    Box::pin(self.convert_stored(&pending.caller, stored, &new, reply.now)).await?;
                }
            }
        }
        batch.first().map_or(Ok(true), |pending| Err(unsettled(&pending.caller.limit)))
    }

    /// Applies a reply. A state under other terms is read as what its conversion will be.
    fn apply_reply(
        &self,
        pending: &mut PendingSpend,
        found: &Found,
        sample: ClockSample,
    ) -> Result<()> {
        let caller = &mut pending.caller;
        let (word, passes, converted) = match found {
            Found::Passed(word) => (*word, true, None),
            Found::Denied(word) => (*word, false, None),
            Found::Other(stored) => {
                self.learn_override(caller, stored, sample.sent)?;
                let new = caller.translated(stored, caller.effective(), sample.now)?;
                let algorithm = caller.effective().algorithm;
                let passes = algorithm.spend(new.word, sample.now, pending.cost).is_some();
                (new.word, passes, Some(new))
            }
            Found::Gone => {
                self.forget_override(caller, sample.sent);
                pending.reply = None;
                return Ok(());
            }
        };
        self.confirm_override(caller, sample.sent);
        pending.reply = Some(SpendReply { sample, word, passes, converted });
        Ok(())
    }

    /// Drops the replies and last words of spends whose outcome is unknown.
    pub(super) fn mark_failed(&self, batch: &mut [PendingSpend]) {
        for pending in batch {
            (pending.reply, pending.in_flight) = (None, None);
            self.words.invalidate(pending.caller.name);
        }
    }

    /// Takes back what was spent, if nobody has spent since.
    pub(super) async fn undo(&self, pending: &[PendingSpend]) {
        self.put_back(self.undo_exchanges(pending)).await;
    }

    /// The same in the background.
    pub(super) fn undo_later(self: &Arc<Self>, pending: &[PendingSpend]) {
        let (core, exchanges) = (Arc::clone(self), self.undo_exchanges(pending));
        if let (false, Ok(runtime)) = (exchanges.is_empty(), Handle::try_current()) {
            runtime.spawn(inherit_client(async move { core.put_back(exchanges).await }));
        }
    }

    /// The exchanges that restore the words before the spends, the last spend first: two on one caller
    /// come apart in that order.
    fn undo_exchanges(&self, pending: &[PendingSpend]) -> SmallVec<[Exchange; 1]> {
        let exchange = |pending: &PendingSpend| {
            let (reply, spent) = pending.spent()?;
            let (name, effective) = (pending.caller.name, pending.caller.effective());
            Some(self.exchange_of_words(name, effective, [spent, reply.word], reply.sample.now))
        };
        pending.iter().rev().filter_map(exchange).collect()
    }

    async fn put_back(&self, exchanges: SmallVec<[Exchange; 1]>) {
        let StoreCounters { undone, kept_spends, .. } = &self.counters;
        for exchange in &exchanges {
            let is_undone = self.backend.exchange(exchange).await == Ok(true);
            if is_undone { undone } else { kept_spends }.add(1);
        }
    }
}

impl PendingSpend {
    async fn entry<B: Backend>(&self, backend: &B) -> Result<Entry> {
        let effective = self.caller.effective();
        let fresh = self.caller.fresh(effective, backend).await?;
        let op = Op::Spend { cost: self.cost, is_shadow: self.is_shadow };
        Ok(effective.entry(self.caller.name, fresh, op))
    }

    /// True if this denies the call.
    fn is_denied(&self) -> bool {
        !self.is_shadow && self.reply.is_some_and(|reply| !reply.passes)
    }

    /// True for a shadow spend that is denied, so that its state is not converted.
    fn is_unconverted(&self) -> bool {
        self.is_shadow && self.reply.is_some_and(|reply| reply.converted.is_some() && !reply.passes)
    }

    /// The decision, with the cost spent if it passes.
    pub(super) fn decision(&self) -> Option<Decision> {
        let SpendReply { sample, word, .. } = self.reply?;
        Some(Decision::of(self.caller.effective().algorithm, word, sample.now, self.cost).0)
    }

    /// The decision, with nothing spent.
    pub(super) fn peeked(&self) -> Option<Decision> {
        let SpendReply { sample, word, .. } = self.reply?;
        Some(Decision::peek(self.caller.effective().algorithm, word, sample.now, self.cost))
    }

    /// The reply and the word after the spend, if that changed it.
    pub(super) fn spent(&self) -> Option<(SpendReply, Word)> {
        let reply = self.reply.filter(|reply| reply.passes && self.cost > 0)?;
        let algorithm = self.caller.effective().algorithm;
        Some((reply, algorithm.spend(reply.word, reply.sample.now, self.cost)?))
    }
}
