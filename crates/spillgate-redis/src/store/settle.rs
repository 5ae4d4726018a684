//! Operations on one caller: peek, settle, debit, cancel.

use std::cmp::Ordering;
use std::num::NonZeroU32;
use std::sync::Arc;

use spillgate::account::Account;
use spillgate::algorithm::{Algorithm, SpendRecord, Word};
use spillgate::{Decision, Settled, Timestamp};

use super::account::Change;
use super::core::{Caller, StoreCore, unsettled};
use super::refunds::Refund;
use crate::State;
use crate::backend::{Backend, Found, Op, Result};
use crate::clock_sample::ClockSample;
use crate::effective_quota::EffectiveQuota;
use crate::to_the_end::to_the_end;

/// What is done to a caller whatever it has spent.
#[derive(Clone, Copy)]
pub(super) enum Correction {
    /// Nothing.
    None,
    /// Takes an amount.
    Debit(u64),
    /// Gives an amount back: of a known spend, without what has been refilled since.
    GiveBack(u64, Option<SpendRecord>),
    /// Forgets what was spent.
    Reset,
}

impl<B: Backend> StoreCore<B> {
    /// The decision of a call, without spending.
    pub(super) async fn peek(self: &Arc<Self>, mut caller: Caller, cost: u64) -> Result<Decision> {
        self.report(caller.name).await?;
        let mut attempts = self.attempts(caller.name);
        while attempts.next().await {
            let effective = *caller.effective();
            let (sent, fresh) = (self.local(), caller.fresh(&effective, &self.backend).await?);
            let Some((now, found)) = self.ask(&caller, &effective, fresh, Op::Look).await? else {
                break;
            };
            let word = match found {
                Found::Passed(word) | Found::Denied(word) => {
                    let sample = ClockSample { sent, received: self.local(), now };
                    self.words.record(caller.name, &effective, word, sample, false);
                    word
                }
                Found::Other(stored) => {
                    self.learn_override(&mut caller, &stored, sent)?;
                    match self.peek_account(&caller, stored, now).await? {
                        Some(word) => word,
                        None => continue,
                    }
                }
                Found::Gone => {
                    self.forget_override(&mut caller, sent);
                    continue;
                }
            };
            return Ok(Decision::peek(caller.effective().algorithm, word, now, cost));
        }
        Err(unsettled(&caller.limit))
    }

    /// The word of a caller under the quota in force. If the policy has changed, that is put in
    /// place, or the waiting time that is told would be another one later. A tier may be that of
    /// this question only. `None` if Redis must be asked again.
    async fn peek_account(
        &self,
        caller: &Caller,
        stored: State,
        now: Timestamp,
    ) -> Result<Option<Word>> {
        let terms = caller.effective().terms;
        let mut account = caller.account(&stored, caller.effective(), now)?;
        let word = account.word();
        if stored.terms == terms || caller.limit.quota_with(&stored.terms).is_some() {
            return Ok(Some(word));
        }
        let change = Change { old: stored, new: State::of(&mut account, terms, now) };
        Ok(self.change(caller.name, &change, now).await?.then_some(word))
    }

    /// Replaces a reserved cost by the actual one, and returns what is left. Without the spend it
    /// is unknown what has been refilled since.
    pub(super) async fn settle(
        self: &Arc<Self>,
        mut caller: Caller,
        spent: Option<SpendRecord>,
        reserved: u64,
        actual: u64,
    ) -> Result<Settled> {
        self.report(caller.name).await?;
        let difference = actual.abs_diff(reserved);
        let correction = match actual.cmp(&reserved) {
            Ordering::Greater => Correction::Debit(difference),
            Ordering::Equal => Correction::None,
            Ordering::Less => Correction::GiveBack(difference, spent),
        };
        self.correct(&mut caller, correction, spent.is_some()).await
    }

    /// The same also if nobody waits for it any more.
    pub(super) async fn settle_to_the_end(
        self: &Arc<Self>,
        caller: Caller,
        spent: Option<SpendRecord>,
        reserved: u64,
        actual: u64,
    ) -> Result<Settled> {
        let (core, of) = (Arc::clone(self), caller.clone());
        let settle = async move { core.settle(of, spent, reserved, actual).await };
        let core = Arc::clone(self);
        let unclaimed = move |settled: Result<Settled>| {
            if settled.is_err_and(|why| why.is_unmade()) {
                core.settle_later(caller, spent, reserved, actual);
            }
        };
        to_the_end(settle, unclaimed).await?
    }

    /// Settles a spend once Redis can be asked: the call was certainly not made. Returns what is
    /// left as far as this node knows.
    pub(super) fn settle_later(
        self: &Arc<Self>,
        caller: Caller,
        spent: Option<SpendRecord>,
        reserved: u64,
        actual: u64,
    ) -> Settled {
        let (effective, local) = (*caller.effective(), self.local());
        let last = self.words.last(caller.name);
        let word = last.map_or(effective.fresh(None), |last| {
            last.in_share(&effective, &effective.algorithm, NonZeroU32::MIN, local)
        });
        match actual.cmp(&reserved) {
            Ordering::Equal => {}
            Ordering::Greater => {
                let all = effective.algorithm.deepest();
                let word = effective.algorithm.debit_up_to(word, local, all, all);
                self.add_debt(&caller, actual - reserved, (effective.algorithm, word));
            }
            Ordering::Less => {
                self.refunds.add(Refund { caller, spent, reserved, actual });
                self.report_later();
            }
        }
        Settled { left: Decision::peek(effective.algorithm, word, local, 0), uncharged: 0 }
    }

    /// Takes an amount unconditionally, up to the deepest debt.
    pub(super) async fn debit(&self, mut caller: Caller, amount: u64) -> Result<Settled> {
        self.correct(&mut caller, Correction::Debit(amount), true).await
    }

    /// Cuts a word that denies for longer than any debt-free bucket can: the Redis clock has
    /// stepped back since it was written. The caller then has spent exactly what it has. Returns
    /// the word in place.
    pub(super) async fn cut(&self, caller: &Caller, word: Word, now: Timestamp) -> Word {
        let effective = caller.effective();
        if !caller.limit.is_cut || !effective.is_impossible(word, now) {
            return word;
        }
        let algorithm = effective.algorithm;
        let cut =
            algorithm.debit_up_to(effective.fresh(None), now, algorithm.limit(), algorithm.limit());
        let exchange = self.exchange_of_words(caller.name, effective, [word, cut], now);
        // If that fails, the caller is denied all the same.
        let is_cut = self.backend.exchange(&exchange).await == Ok(true);
        self.counters.cut.add(is_cut.into());
        if is_cut { cut } else { word }
    }

    /// Takes a spend back, if nothing has been spent since.
    pub(super) async fn cancel(&self, caller: &Caller, spent: &SpendRecord) {
        let SpendRecord { algorithm, word, at, cost } = *spent;
        let effective = caller.effective();
        if effective.algorithm != algorithm {
            return;
        }
        let words = [word, algorithm.refund(word, at, cost)];
        let exchange = self.exchange_of_words(caller.name, effective, words, at);
        let is_done = match self.backend.exchange(&exchange).await {
            Ok(false) => self.cancel_in_account(caller, spent).await,
            done => done,
        };
        if is_done == Ok(true) {
            self.words.invalidate(caller.name);
        }
    }

    async fn cancel_in_account(&self, caller: &Caller, spent: &SpendRecord) -> Result<bool> {
        let effective = caller.effective();
        let read = self.ask(caller, effective, spent.word, Op::Read).await?;
        let Some((now, Found::Other(old))) = read else { return Ok(false) };
        if old.past.is_none() || old.word != spent.word || old.terms != effective.terms {
            return Ok(false);
        }
        let mut account = caller.account(&old, effective, now)?;
        let refunded = |word| effective.algorithm.refund_call(word, now, spent.cost, spent.word);
        account.act(now, |_, word| ((), Some(refunded(word))));
        let new = State::of(&mut account, effective.terms, now);
        self.change(caller.name, &Change { old, new }, now).await
    }

    /// Corrects what a caller has spent. If that is of an earlier call, the caller stays in the tier
    /// that it has now.
    pub(super) async fn correct(
        &self,
        caller: &mut Caller,
        correction: Correction,
        is_of_call: bool,
    ) -> Result<Settled> {
        let mut attempts = self.attempts(caller.name);
        while attempts.next().await {
            let mut effective = *caller.effective();
            if let (true, Correction::GiveBack(_, Some(spent))) =
                (caller.limit.is_by_call, correction)
            {
                effective.algorithm = spent.algorithm;
            }
            let fresh = caller.fresh(&effective, &self.backend).await?;
            let (sent, op) = (self.local(), correction.op(&effective, caller.limit.max_debt));
            let Some((now, found)) = self.ask(caller, &effective, fresh, op).await? else { break };
            let sample = ClockSample { sent, received: self.local(), now };
            match found {
                Found::Passed(found) | Found::Denied(found) => {
                    let algorithm = effective.algorithm.starting_from(fresh);
                    let word = op.left(&algorithm, found, now);
                    self.words.record(caller.name, &effective, word, sample, false);
                    let uncharged = match correction {
                        Correction::Debit(amount) => algorithm.uncharged(found, word, now, amount),
                        _ => 0,
                    };
                    let left = Decision::peek(effective.algorithm, word, now, 0);
                    return Ok(Settled { left, uncharged });
                }
                Found::Other(stored) => {
                    self.learn_override(caller, &stored, sent)?;
                    let effective = match is_of_call {
                        true => caller.in_force(&stored),
                        false => *caller.effective(),
                    };
                    let corrected =
                        self.correct_account(caller, &effective, stored, correction, sample);
                    if let Some(settled) = Box::pin(corrected).await? {
                        return Ok(settled);
                    }
                }
                Found::Gone => self.forget_override(caller, sent),
            }
        }
        Err(unsettled(&caller.limit))
    }

    /// The same where the script cannot. `None` if Redis must be asked again.
    async fn correct_account(
        &self,
        caller: &Caller,
        effective: &EffectiveQuota,
        stored: State,
        correction: Correction,
        sample: ClockSample,
    ) -> Result<Option<Settled>> {
        let now = sample.now;
        let fresh = caller.fresh(effective, &self.backend).await?;
        let mut account = caller.account(&stored, effective, now)?;
        let max_debt = caller.limit.max_debt;
        let uncharged = correction.make(&mut account, fresh, max_debt, now);
        let new = State::of(&mut account, effective.terms, now);
        let is_changed = !matches!(correction, Correction::None) || new.terms != stored.terms;
        if is_changed && !self.change(caller.name, &Change { old: stored, new }, now).await? {
            return Ok(None);
        }
        self.words.record(caller.name, effective, account.word(), sample, false);
        let left = Decision::peek(effective.algorithm, account.word(), now, 0);
        Ok(Some(Settled { left, uncharged }))
    }

    /// Runs an operation on one caller.
    pub(super) async fn ask(
        &self,
        caller: &Caller,
        effective: &EffectiveQuota,
        fresh: Word,
        op: Op,
    ) -> Result<Option<(Timestamp, Found)>> {
        let reply = self.backend.run(&[effective.entry(caller.name, fresh, op)]).await?;
        let now = reply.now;
        Ok(reply.answers.into_iter().next().map(|found| (now, found)))
    }
}

impl Correction {
    /// The operation on a caller whose word tells all.
    fn op(self, effective: &EffectiveQuota, max_debt: Option<u64>) -> Op {
        match self {
            Self::Debit(amount) => {
                Op::Debit { amount, most: effective.algorithm.most_owed(max_debt) }
            }
            // What was spent under another quota has been refilled, or the word would not tell all.
            Self::GiveBack(_, Some(spent)) if spent.algorithm != effective.algorithm => Op::Look,
            Self::GiveBack(amount, spent) => {
                Op::GiveBack { amount, spent: spent.map(|spent| spent.word) }
            }
            Self::Reset => Op::Reset,
            Self::None => Op::Look,
        }
    }

    /// The same to an account. Returns what was not debited.
    fn make(
        self,
        account: &mut Account,
        fresh: Word,
        max_debt: Option<u64>,
        now: Timestamp,
    ) -> u64 {
        match self {
            Self::None => 0,
            Self::Debit(amount) => account.act(now, |algorithm, word| {
                let (next, uncharged) = algorithm.debit(word, now, amount, max_debt);
                (uncharged, Some(next))
            }),
            Self::GiveBack(unused, Some(spent)) => {
                account.settle(&spent, spent.cost.saturating_sub(unused), max_debt, now).uncharged
            }
            Self::GiveBack(unused, None) => account.act(now, |algorithm, word| {
                (0, Some(algorithm.starting_from(fresh).refund(word, now, unused)))
            }),
            Self::Reset => {
                account.reset(now);
                account.act(now, |_, _| (0, Some(fresh)))
            }
        }
    }
}
