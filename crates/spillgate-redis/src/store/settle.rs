//! Operations on one caller: peek, settle, debit, cancel.

use std::cmp::Ordering;
use std::num::NonZeroU32;
use std::sync::Arc;

use spillgate::algorithm::{Algorithm, Layout, SpendRecord, Word};
use spillgate::{Decision, Settled, Timestamp};

use super::core::{Caller, StoreCore, TRIES, stored_quota, unsettled};
use super::refunds::Refund;
use crate::State;
use crate::backend::{Backend, BackendError, Fault, Found, Op, Result};
use crate::clock_sample::ClockSample;
use crate::effective_quota::{EffectiveQuota, QuotaOwner};
use crate::to_the_end::to_the_end;

/// What an operation found and left.
pub(super) struct Left {
    now: Timestamp,
    effective: EffectiveQuota,
    /// The word of a caller that Redis does not know.
    fresh: Word,
    found: Word,
    word: Word,
}

/// What to give back of a reserved cost.
#[derive(Clone, Copy)]
enum Unused {
    /// Up to this amount.
    Any(u64),
    /// This amount of a known spend, without what has been refilled since.
    Of(SpendRecord, u64),
}

impl<B: Backend> StoreCore<B> {
    /// The decision of a call, without spending.
    pub(super) async fn peek(self: &Arc<Self>, mut caller: Caller, cost: u64) -> Result<Decision> {
        self.report(caller.name).await?;
        for _ in 0..TRIES {
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
                    caller.translated(&stored, caller.effective(), now)?.word
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
        match (actual.cmp(&reserved), spent) {
            (Ordering::Greater, _) => self.debit(caller, difference).await,
            (Ordering::Equal, _) => {
                let left = self.apply(&mut caller, |_| Op::Look).await?;
                Ok(left.settled(0))
            }
            (Ordering::Less, None) => self.give_back(caller, Unused::Any(difference)).await,
            (Ordering::Less, Some(spent)) => {
                self.give_back(caller, Unused::Of(spent, difference)).await
            }
        }
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
        let max_debt = caller.limit.max_debt;
        let op = |effective: &EffectiveQuota| Op::Debit {
            amount,
            most: effective.algorithm.most_owed(max_debt),
        };
        let left = self.apply(&mut caller, op).await?;
        Ok(left.settled(amount))
    }

    /// Gives back what was not used.
    async fn give_back(&self, mut caller: Caller, unused: Unused) -> Result<Settled> {
        for _ in 0..TRIES {
            let mut is_settled = true;
            let op = |effective: &EffectiveQuota| match unused {
                Unused::Any(amount) => Op::GiveBack { amount, spent: None },
                Unused::Of(spent, amount) if spent.algorithm == effective.algorithm => {
                    is_settled = true;
                    Op::GiveBack { amount, spent: Some(spent.word) }
                }
                // It was spent under another quota: compute the new word here.
                Unused::Of(..) => {
                    is_settled = false;
                    Op::Look
                }
            };
            let mut left = self.apply(&mut caller, op).await?;
            if let (Unused::Of(spent, amount), false) = (unused, is_settled) {
                let algorithm = left.effective.algorithm.starting_from(left.fresh);
                let has_tiers = caller.limit.base.terms.is_tiered;
                left.word = spent.refund(&algorithm, left.found, left.now, amount, has_tiers);
                is_settled = self.replace(&caller, &left).await?;
            }
            if is_settled {
                return Ok(left.settled(0));
            }
        }
        Err(BackendError::new(
            Fault::Unready,
            format!("the caller spent {TRIES} times during one settlement; retry"),
        ))
    }

    /// Replaces the word found by the one to be left. An absent caller has nothing to get back.
    async fn replace(&self, caller: &Caller, left: &Left) -> Result<bool> {
        if left.word == left.found || left.found == left.fresh {
            return Ok(true);
        }
        let words = [left.found, left.word];
        let exchange = self.exchange_of_words(caller.name, &left.effective, words, left.now);
        let is_replaced = self.backend.exchange(&exchange).await?;
        self.words.invalidate(caller.name);
        Ok(is_replaced)
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
        if self.backend.exchange(&exchange).await == Ok(true) {
            self.words.invalidate(caller.name);
        }
    }

    /// Runs an unconditional operation under the terms that Redis has: nothing is decided, so
    /// nothing must be converted.
    pub(super) async fn apply(
        &self,
        caller: &mut Caller,
        mut op: impl FnMut(&EffectiveQuota) -> Op,
    ) -> Result<Left> {
        let mut effective = *caller.effective();
        for _ in 0..TRIES {
            let fresh = caller.fresh(&effective, &self.backend).await?;
            let (sent, op) = (self.local(), op(&effective));
            let Some((now, found)) = self.ask(caller, &effective, fresh, op).await? else { break };
            match found {
                Found::Passed(found) | Found::Denied(found) => {
                    let algorithm = effective.algorithm.starting_from(fresh);
                    let word = op.left(&algorithm, found, now);
                    let sample = ClockSample { sent, received: self.local(), now };
                    self.words.record(caller.name, &effective, word, sample, false);
                    return Ok(Left { now, effective, fresh, found, word });
                }
                Found::Other(stored) => {
                    self.learn_override(caller, &stored, sent)?;
                    effective = caller.stored_quota(&stored)?;
                }
                Found::Gone => {
                    self.forget_override(caller, sent);
                    effective = caller.by_policy;
                }
            }
        }
        Err(unsettled(&caller.limit))
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
        Ok(reply.answers.first().map(|found| (reply.now, *found)))
    }
}

impl Caller {
    /// The quota of a stored state that is not converted. Words of a bucket with tiers are times:
    /// the caller's own tier applies.
    fn stored_quota(&self, stored: &State) -> Result<EffectiveQuota> {
        let own = &self.by_policy;
        let is_time = matches!(own.algorithm.layout(), Layout::Bucket { .. });
        if stored.terms.is_tiered && own.owner == QuotaOwner::Limit && is_time {
            return Ok(EffectiveQuota { terms: stored.terms, ..*own });
        }
        stored_quota(stored)
    }
}

impl Left {
    /// What is left after debiting an amount.
    fn settled(&self, amount: u64) -> Settled {
        let Self { now, effective: EffectiveQuota { algorithm, .. }, found, word, .. } = self;
        let uncharged = algorithm.uncharged(*found, *word, *now, amount);
        Settled { left: Decision::peek(*algorithm, *word, *now, 0), uncharged }
    }
}
