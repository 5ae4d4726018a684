//! What is asked about one caller: looking, settling, resetting.

use std::cmp::Ordering;

use tollgate::algorithm::{Algorithm, Word};
use tollgate::{Decision, Timestamp};

use super::core::{Caller, Core, TRIES, counted_by, unsettled};
use super::terms::Counted;
use crate::engine::{Engine, EngineError, Entry, Fault, Found, Op};
use crate::sighting::Sighting;

/// What an operation found, and what it left.
pub(super) struct Left {
    pub(super) now: Timestamp,
    /// What the word is counted by.
    pub(super) counted: Counted,
    pub(super) word: Word,
}

impl<E: Engine> Core<E> {
    /// What a call would be answered.
    pub(super) async fn peek(
        &self,
        mut caller: Caller,
        cost: u64,
    ) -> Result<Decision, EngineError> {
        let Left { now, counted, word } = self.apply(&mut caller, Op::Look).await?;
        let word = caller.carry_over(&counted.state(word), now)?;
        Ok(Decision::peek(caller.counted().algorithm, word, now, cost))
    }

    /// Replaces what was spent in advance by the actual cost, and tells what there is then.
    pub(super) async fn settle(
        &self,
        mut caller: Caller,
        reserved: u64,
        actual: u64,
    ) -> Result<Decision, EngineError> {
        let difference = actual.abs_diff(reserved);
        let op = match actual.cmp(&reserved) {
            Ordering::Greater => Op::Charge(difference),
            Ordering::Equal => Op::Look,
            Ordering::Less => Op::Refund(difference),
        };
        if caller.quota.is_some() {
            return self.settle_by_quota(caller, op).await;
        }
        let Left { now, counted, word } = self.apply(&mut caller, op).await?;
        Ok(Decision::peek(counted.algorithm, word, now, 0))
    }

    /// Settles by a quota that came with the call. The engine could do so only by that of the
    /// limit, so it is worked out here, as often as others are faster.
    async fn settle_by_quota(&self, mut caller: Caller, op: Op) -> Result<Decision, EngineError> {
        for _ in 0..TRIES {
            let Left { now, counted, word } = self.apply(&mut caller, Op::Look).await?;
            let settled = left(&counted, word, now, op, counted.fresh(None));
            let is_settled = settled == word
                || self.replace(&caller, (&counted, word), (&counted, settled), now).await?;
            if is_settled {
                self.denials.forget(caller.name);
                return Ok(Decision::peek(counted.algorithm, settled, now, 0));
            }
        }
        Err(EngineError::new(
            Fault::Unready,
            format!("others spent {TRIES} times while a charge was to be settled"),
        ))
    }

    /// Makes a caller as if it had never been seen.
    pub(super) async fn reset(&self, mut caller: Caller) -> Result<(), EngineError> {
        self.apply(&mut caller, Op::Reset).await?;
        self.denials.forget(caller.name);
        Ok(())
    }

    /// Takes a decision back, if nothing has been spent since.
    pub(super) async fn cancel(&self, caller: &Caller, decision: &Decision) {
        let (counted, word, now) = (caller.counted(), decision.word(), decision.now());
        let refunded = counted.algorithm.refund(word, now, decision.cost());
        let (old, new) = (counted.state(word), (counted, refunded));
        if self.exchange(caller.name, Some(old), new, now).await == Ok(true) {
            self.denials.forget(caller.name);
        }
    }

    /// Carries out what passes in any case, by the terms that the engine has: there is nothing
    /// to be decided, so nothing has to be carried over.
    pub(super) async fn apply(&self, caller: &mut Caller, op: Op) -> Result<Left, EngineError> {
        let mut counted = *caller.counted();
        for _ in 0..TRIES {
            let fresh = caller.fresh(&counted, &self.engine).await?;
            let sent = self.local();
            let entry = Entry { name: caller.name, terms: counted.terms, fresh, op };
            let reply = self.engine.run(&[entry]).await?;
            match reply.answers.first() {
                Some(Found::Passed(word) | Found::Denied(word)) => {
                    let word = left(&counted, *word, reply.now, op, fresh);
                    let seen = Sighting { sent, heard: self.local(), now: reply.now };
                    self.denials.tell(caller.name, &counted, word, seen, false);
                    return Ok(Left { now: reply.now, counted, word });
                }
                Some(Found::Other(stored)) => {
                    self.learn(caller, stored, sent)?;
                    counted = counted_by(stored)?;
                    if op == Op::Look {
                        return Ok(Left { now: reply.now, counted, word: stored.word });
                    }
                }
                Some(Found::Gone) => {
                    self.unlearn(caller, sent);
                    counted = caller.own;
                }
                None => break,
            }
        }
        Err(unsettled(&caller.limit))
    }

    /// Puts a word in place of the one that was found, also if that is of a caller whom the
    /// engine does not know. Tells whether it did.
    pub(super) async fn replace(
        &self,
        caller: &Caller,
        (old, word): (&Counted, Word),
        new: (&Counted, Word),
        now: Timestamp,
    ) -> Result<bool, EngineError> {
        let is_fresh = word == caller.fresh(old, &self.engine).await?;
        let known = self.exchange(caller.name, Some(old.state(word)), new, now).await?;
        Ok(known || (is_fresh && self.exchange(caller.name, None, new, now).await?))
    }
}

/// The word that an operation leaves.
fn left(counted: &Counted, word: Word, now: Timestamp, op: Op, fresh: Word) -> Word {
    let algorithm = counted.algorithm.starting_from(fresh);
    match op {
        Op::Charge(amount) => algorithm.charge(word, now, amount),
        Op::Refund(amount) => algorithm.refund(word, now, amount),
        Op::Reset => algorithm.fresh(now),
        Op::Look | Op::Spend { .. } | Op::SpendBy { .. } | Op::Take { .. } => word,
    }
}
