use std::sync::Arc;

use smallvec::SmallVec;
use spillgate::algorithm::{Algorithm, Word};
use spillgate::{Decision, Timestamp};
use tokio::runtime::Handle;

use super::account::Change;
use super::batches::Batches;
use super::core::{Caller, StoreCore, unsettled};
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
    /// If the script leaves the caller alone.
    pub(super) account: Option<Box<SpendOfAccount>>,
}

/// A spend of a caller whose state is replaced from here.
pub(super) struct SpendOfAccount {
    change: Change,
    /// What puts the quota in force in place without the spend, if it is not yet.
    unspent: Option<State>,
    /// True once it was made.
    is_made: bool,
}

/// The word before the spend, and whether the spend passes.
#[derive(Clone, Copy)]
pub(super) struct SpendReply {
    pub(super) sample: ClockSample,
    pub(super) word: Word,
    pub(super) passes: bool,
}

/// What a round of questions has come to.
enum Round {
    /// Everything was spent.
    Spent,
    /// One that is enforced is denied, and nothing was spent.
    Denied,
    /// Nothing was spent, and Redis must be asked again.
    Again,
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
            match self.run_script(pending, failure, batches, place, true).await {
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

    /// Spends one batch. Returns false if Redis denies it, and `None` if it was not spent: its slot is
    /// being moved, and it is now several batches; or it needs several calls, and may be dropped
    /// between them unless it `runs_to_the_end`.
    pub(super) async fn run_script(
        self: &Arc<Self>,
        pending: &mut [PendingSpend],
        failure: &mut Option<BackendError>,
        batches: &mut Batches,
        place: usize,
        runs_to_the_end: bool,
    ) -> Option<bool> {
        let Some(range) = batches.enforced.get(place).cloned() else { return Some(true) };
        if is_out_of_time(failure.as_ref()) {
            self.mark_failed(&mut pending[range.start..]);
            return Some(true);
        }
        let batch = &mut pending[range.clone()];
        let is_known = batch.iter().any(|pending| pending.account.is_some());
        let once = if is_known { Ok(Round::Again) } else { self.spend_once(batch).await };
        let spent = match once {
            Ok(Round::Again) if batch.len() > 1 && !runs_to_the_end => return None,
            Ok(Round::Again) => Box::pin(self.spend_in_rounds(batch)).await,
            once => once.map(|once| matches!(once, Round::Spent)),
        };
        match spent {
            Ok(passes) => Some(passes),
            Err(why) if why.fault() == Fault::Scattered && range.len() > 1 => {
                batch.iter_mut().for_each(PendingSpend::forget_reply);
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

    /// Spends a whole batch, or nothing if one that is enforced is denied. Returns whether it was
    /// spent.
    pub(super) async fn spend(self: &Arc<Self>, batch: &mut [PendingSpend]) -> Result<bool> {
        match self.spend_once(batch).await? {
            Round::Again => Box::pin(self.spend_in_rounds(batch)).await,
            once => Ok(matches!(once, Round::Spent)),
        }
    }

    /// The same in one round trip, as nearly always: if the words of all callers tell all under the
    /// quotas in force.
    async fn spend_once(self: &Arc<Self>, batch: &mut [PendingSpend]) -> Result<Round> {
        for pending in &*batch {
            self.report(pending.caller.name).await?;
        }
        self.spend_by_script(batch).await
    }

    async fn spend_by_script(self: &Arc<Self>, batch: &mut [PendingSpend]) -> Result<Round> {
        let mut entries: SmallVec<[Entry; 1]> = SmallVec::new();
        for pending in &*batch {
            let op = Op::Spend { cost: pending.cost, is_shadow: pending.is_shadow };
            entries.push(pending.entry(op, &self.backend).await?);
        }
        let sent = self.local();
        let reply = self.backend.run(&entries).await?;
        let sample = ClockSample { sent, received: self.local(), now: reply.now };
        let is_plain = |found: &Found| matches!(found, Found::Passed(_) | Found::Denied(_));
        if !reply.answers.iter().all(is_plain) {
            return Box::pin(self.after_nothing_was_spent(batch, &reply.answers, sample)).await;
        }
        for (pending, found) in batch.iter_mut().zip(&reply.answers) {
            self.note(pending, found, sample, matches!(found, Found::Passed(_)));
        }
        if !batch.iter().any(PendingSpend::is_denied) {
            return Ok(Round::Spent);
        }
        self.cut_denied(batch, sample.now).await;
        Ok(Round::Denied)
    }

    /// Notes what was found of a caller whose word tells all.
    fn note(&self, pending: &mut PendingSpend, found: &Found, sample: ClockSample, passes: bool) {
        if let Found::Passed(word) | Found::Denied(word) = *found {
            self.confirm_override(&pending.caller, sample.sent);
            (pending.reply, pending.account) = (Some(SpendReply { sample, word, passes }), None);
        }
    }

    /// What follows if the script has left callers alone, and so has spent nothing.
    async fn after_nothing_was_spent(
        self: &Arc<Self>,
        batch: &mut [PendingSpend],
        found: &[Found],
        sample: ClockSample,
    ) -> Result<Round> {
        if !self.decide_here(batch, found, sample)? {
            return Ok(Round::Again);
        }
        if batch.iter().any(PendingSpend::is_denied) {
            return Ok(self.deny(batch, sample.now).await);
        }
        match batch {
            [PendingSpend { account: Some(_), .. }] => self.make_changes(batch, sample.now).await,
            // Several changes are made by whoever runs to the end.
            _ => Ok(Round::Again),
        }
    }

    /// Decides a batch by what was found, without spending. Returns false if Redis must be asked
    /// again.
    fn decide_here(
        &self,
        batch: &mut [PendingSpend],
        found: &[Found],
        sample: ClockSample,
    ) -> Result<bool> {
        let mut is_decided = true;
        for (index, found) in found.iter().enumerate() {
            let pending = &mut batch[index];
            match found {
                Found::Other(stored) => {
                    self.spend_of_account(&mut batch[..=index], stored, sample)?;
                }
                Found::Gone => {
                    is_decided = false;
                    self.forget_override(&mut pending.caller, sample.sent);
                    pending.forget_reply();
                }
                // It has expired since it was read last.
                _ if pending.account.is_some() => {
                    is_decided = false;
                    pending.forget_reply();
                }
                Found::Passed(word) | Found::Denied(word) => {
                    let algorithm = pending.caller.effective().algorithm;
                    let passes = algorithm.spend(*word, sample.now, pending.cost).is_some();
                    self.note(pending, found, sample, passes);
                }
            }
        }
        Ok(is_decided)
    }

    /// Denies a batch of which nothing is spent.
    async fn deny(&self, batch: &mut [PendingSpend], now: Timestamp) -> Round {
        self.cut_denied(batch, now).await;
        // If Redis does not answer, the next denial does it.
        let is_done = self.put_quotas_in_place(batch, now).await.unwrap_or(true);
        if is_done { Round::Denied } else { Round::Again }
    }

    /// Spends a batch with callers whose quota has moved, until nobody is faster.
    async fn spend_in_rounds(self: &Arc<Self>, batch: &mut [PendingSpend]) -> Result<bool> {
        let Some(first) = batch.first() else { return Ok(true) };
        let (name, limit) = (first.caller.name, Arc::clone(&first.caller.limit));
        let mut attempts = self.attempts(name);
        // The first was made already.
        attempts.next().await;
        while attempts.next().await {
            match self.spend_in_round(batch).await? {
                Round::Spent => return Ok(true),
                Round::Denied => return Ok(false),
                Round::Again => {}
            }
        }
        Err(unsettled(&limit))
    }

    /// Reads all states, decides here, and puts in place what callers have spent whose quota has
    /// moved. Then the script spends for the rest: that fails only if one of them is denied just
    /// then, while an exchange fails whenever others spend.
    async fn spend_in_round(self: &Arc<Self>, batch: &mut [PendingSpend]) -> Result<Round> {
        let of_script = |pending: &PendingSpend| pending.account.is_none();
        if batch.iter().all(of_script) {
            return self.spend_by_script(batch).await;
        }
        let mut entries: SmallVec<[Entry; 1]> = SmallVec::new();
        for pending in &*batch {
            let op = if of_script(pending) { Op::Look } else { Op::Read };
            entries.push(pending.entry(op, &self.backend).await?);
        }
        let sent = self.local();
        let mut reply = self.backend.run(&entries).await?;
        let sample = ClockSample { sent, received: self.local(), now: reply.now };
        put_in_sequence(batch, &mut reply.answers, sample.now);
        if !self.decide_here(batch, &reply.answers, sample)? {
            return Ok(Round::Again);
        }
        if batch.iter().any(PendingSpend::is_denied) {
            return Ok(self.deny(batch, sample.now).await);
        }
        // They have spent nothing yet.
        batch.iter_mut().filter(|pending| of_script(pending)).for_each(PendingSpend::forget_reply);
        match self.make_changes(batch, sample.now).await? {
            Round::Spent => self.spend_for_the_rest(batch).await,
            other => Ok(other),
        }
    }

    /// Spends by the script for those callers whose word tells all, and undoes the others if they
    /// are denied.
    async fn spend_for_the_rest(self: &Arc<Self>, batch: &mut [PendingSpend]) -> Result<Round> {
        let mut entries: SmallVec<[Entry; 1]> = SmallVec::new();
        let of_script = |pending: &&mut PendingSpend| pending.account.is_none();
        for pending in batch.iter_mut().filter(of_script) {
            let op = Op::Spend { cost: pending.cost, is_shadow: pending.is_shadow };
            entries.push(pending.entry(op, &self.backend).await?);
        }
        if entries.is_empty() {
            return Ok(Round::Spent);
        }
        let sent = self.local();
        let reply = match self.backend.run(&entries).await {
            Ok(reply) => reply,
            Err(why) => return Err(self.undone(batch, why).await),
        };
        let sample = ClockSample { sent, received: self.local(), now: reply.now };
        let is_plain = |found: &Found| matches!(found, Found::Passed(_) | Found::Denied(_));
        let is_plain = reply.answers.iter().all(is_plain);
        let is_denied = |(pending, found): (&PendingSpend, &Found)| {
            !pending.is_shadow && matches!(found, Found::Denied(_))
        };
        let rest = || batch.iter().filter(|pending| pending.account.is_none());
        if !is_plain || rest().zip(&reply.answers).any(is_denied) {
            // Whatever is denied now is found so by the next round.
            self.undo(batch).await;
            return Ok(Round::Again);
        }
        for (pending, found) in batch.iter_mut().filter(of_script).zip(&reply.answers) {
            self.note(pending, found, sample, matches!(found, Found::Passed(_)));
        }
        Ok(Round::Spent)
    }

    /// Decides the last of these spends by what its caller has spent under several quotas. Where
    /// another spend of the batch changes the same caller, it goes on from what that one leaves.
    fn spend_of_account(
        &self,
        batch: &mut [PendingSpend],
        stored: &State,
        sample: ClockSample,
    ) -> Result<()> {
        let Some((pending, earlier)) = batch.split_last_mut() else { return Ok(()) };
        let name = pending.caller.name;
        let of_caller = earlier.iter().rev().filter(|earlier| earlier.caller.name == name);
        let left = of_caller.filter_map(PendingSpend::due).next().map(|change| &change.new);
        let is_first = left.is_none();
        let stored = left.unwrap_or(stored);
        let (caller, now) = (&mut pending.caller, sample.now);
        self.learn_override(caller, stored, sample.sent)?;
        let effective = *caller.effective();
        let mut account = caller.account(stored, &effective, now)?;
        let is_moved = is_first && stored.terms != effective.terms;
        let unspent = is_moved.then(|| State::of(&mut account.clone(), effective.terms, now));
        let word = account.word();
        let spent = effective.algorithm.spend(word, now, pending.cost);
        account.act(now, |_, _| ((), spent.filter(|_| pending.cost > 0)));
        let new = State::of(&mut account, effective.terms, now);
        let change = Change { old: stored.clone(), new };
        pending.reply = Some(SpendReply { sample, word, passes: spent.is_some() });
        pending.account = Some(Box::new(SpendOfAccount { change, unspent, is_made: false }));
        Ok(())
    }

    /// Makes the changes of spends, one after the other, or none if a state was replaced meanwhile.
    async fn make_changes(
        self: &Arc<Self>,
        batch: &mut [PendingSpend],
        now: Timestamp,
    ) -> Result<Round> {
        for index in 0..batch.len() {
            let pending = &mut batch[index];
            let Some(change) = pending.due() else { continue };
            match self.change(pending.caller.name, change, now).await {
                Ok(true) => {
                    pending.account.iter_mut().for_each(|account| account.is_made = true);
                }
                Ok(false) => {
                    self.undo(batch).await;
                    return Ok(Round::Again);
                }
                Err(why) => return Err(self.undone(batch, why).await),
            }
        }
        Ok(Round::Spent)
    }

    /// Puts the quotas in force in place of those that callers have in Redis, of a call that is
    /// denied. Returns false if that is not known to have been done.
    async fn put_quotas_in_place(&self, batch: &[PendingSpend], now: Timestamp) -> Result<bool> {
        for pending in batch {
            let Some(SpendOfAccount { change, unspent: Some(new), .. }) =
                pending.account.as_deref()
            else {
                continue;
            };
            let change = Change { old: change.old.clone(), new: new.clone() };
            if !self.change(pending.caller.name, &change, now).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn cut_denied(&self, batch: &mut [PendingSpend], now: Timestamp) {
        for pending in batch.iter_mut().filter(|pending| pending.is_denied()) {
            let Some(reply) = pending.reply.as_mut() else { continue };
            if pending.account.is_none() && pending.caller.limit.is_cut {
                reply.word = Box::pin(self.cut(&pending.caller, reply.word, now)).await;
            }
        }
    }

    /// Drops the replies and last words of spends whose outcome is unknown.
    pub(super) fn mark_failed(&self, batch: &mut [PendingSpend]) {
        for pending in batch {
            pending.forget_reply();
            pending.in_flight = None;
            self.words.invalidate(pending.caller.name);
        }
    }

    /// Takes back what was spent, if nobody has spent since.
    pub(super) async fn undo(&self, pending: &[PendingSpend]) {
        self.put_back(self.undo_exchanges(pending)).await;
    }

    /// The same after a failure: at once if the call may be made again, which must not find what it
    /// has spent itself.
    async fn undone(self: &Arc<Self>, pending: &[PendingSpend], why: BackendError) -> BackendError {
        match why.is_unmade() {
            true => self.undo(pending).await,
            false => self.undo_later(pending),
        }
        why
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
            if let Some(account) = &pending.account {
                let Change { old, new } = &account.change;
                let now = reply.sample.now;
                return account.is_made.then(|| self.exchange_of(name, Some(new), old, now));
            }
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
    async fn entry<B: Backend>(&self, op: Op, backend: &B) -> Result<Entry> {
        let effective = self.caller.effective();
        let fresh = self.caller.fresh(effective, backend).await?;
        Ok(effective.entry(self.caller.name, fresh, op))
    }

    /// True if this denies the call.
    fn is_denied(&self) -> bool {
        !self.is_shadow && self.reply.is_some_and(|reply| !reply.passes)
    }

    /// The change to be made if the call passes: also of one that is denied in shadow mode, if the
    /// quota in force is not in place yet.
    fn due(&self) -> Option<&Change> {
        let change = &self.account.as_ref()?.change;
        let Change { old, new } = change;
        let passes = self.reply.is_some_and(|reply| reply.passes);
        (old.terms != new.terms || passes && old != new).then_some(change)
    }

    fn forget_reply(&mut self) {
        (self.reply, self.account) = (None, None);
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

/// Words that were looked at, each without what the call spends before on the same caller: with
/// that, as the script decides.
fn put_in_sequence(batch: &[PendingSpend], found: &mut [Found], now: Timestamp) {
    for index in 1..batch.len() {
        let (earlier, rest) = found.split_at_mut(index);
        let Some(Found::Passed(word) | Found::Denied(word)) = rest.first_mut() else { continue };
        let (before, name) = (batch.iter().zip(earlier).rev(), batch[index].caller.name);
        let left =
            before.filter(|(before, _)| before.caller.name == name).find_map(|it| match it {
                (before, Found::Passed(word) | Found::Denied(word)) => {
                    before.caller.effective().algorithm.spend(*word, now, before.cost)
                }
                _ => None,
            });
        *word = left.unwrap_or(*word);
    }
}
