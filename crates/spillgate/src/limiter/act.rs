//! The only access to a caller's word, in the table or in an override.

use super::Limiter;
use super::tiers::Caller;
use crate::algorithm::{Algorithm, AnyAlgorithm, SpendRecord, TokenBucket, Word};
use crate::table::{By, Full, Written};
use crate::{Decision, Fingerprint, Timestamp, WhenFull};

/// The quota that comes with a call, if any: tiers and overrides do not apply then.
pub(super) type Own<'q> = Option<&'q TokenBucket>;

/// The result of a debit or a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// What is available now.
    pub left: Decision,
    /// What was not debited, since the debt would have exceeded
    /// [`max_debt`](super::LimiterBuilder::max_debt).
    pub uncharged: u64,
}

impl<K: ?Sized, C, S> Limiter<K, C, S> {
    /// Applies `step` to the caller's only word: its override's or the table's. The step returns
    /// a result, and the word to store, if any.
    #[inline]
    fn act<T>(
        &self,
        caller: Caller,
        own: Own<'_>,
        now: Timestamp,
        when_full: WhenFull,
        step: impl FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    ) -> Result<T, Full> {
        let fingerprint = caller.fingerprint;
        let may_have = || self.overrides.may_have(fingerprint);
        if caller.tier != 0 || own.is_some() || may_have() {
            return self.act_otherwise(caller, own, now, when_full, step);
        }
        // Other callers are handled out of line, so that this path does not pay for them. A
        // caller that is given an override just now is one of them.
        let go_there = |step| self.act_on_override(fingerprint, By::Base, now, when_full, step);
        self.table.update(fingerprint, By::Base, now, when_full, step, (may_have, go_there))
    }

    /// The same for callers with a tier, an override or a quota that comes with the call.
    #[cold]
    #[inline(never)]
    fn act_otherwise<T>(
        &self,
        caller: Caller,
        own: Own<'_>,
        now: Timestamp,
        when_full: WhenFull,
        step: impl FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    ) -> Result<T, Full> {
        let fingerprint = caller.fingerprint;
        let by = own.map_or(caller.by(), By::Call);
        let may_have = || own.is_none() && self.overrides.may_have(fingerprint);
        if may_have() {
            return self.act_on_override(fingerprint, by, now, when_full, step);
        }
        let go_there = |step| self.act_on_override(fingerprint, by, now, when_full, step);
        self.table.update(fingerprint, by, now, when_full, step, (may_have, go_there))
    }

    /// The same for a caller that may have an override, which does not change while its stripe
    /// is held.
    #[cold]
    #[inline(never)]
    fn act_on_override<T>(
        &self,
        fingerprint: Fingerprint,
        by: By<'_>,
        now: Timestamp,
        when_full: WhenFull,
        step: impl FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    ) -> Result<T, Full> {
        loop {
            let mut stripe = self.overrides.stripe(fingerprint);
            match stripe.get_mut(&fingerprint) {
                Some(pinned) if pinned.is_over(now) => {}
                Some(pinned) => {
                    pinned.tier = Caller::tier_by(by);
                    return Ok(pinned.act(step));
                }
                None => return self.table.update_here(fingerprint, by, now, when_full, step),
            }
            // Changes of overrides and quotas come first, and then a stripe.
            drop(stripe);
            self.expire(Caller { fingerprint, tier: Caller::tier_by(by) }, now);
        }
    }

    /// Replaces a caller's word. There is always room for it, since debts must be kept.
    pub(super) fn rewrite<T: Default>(
        &self,
        caller: Caller,
        own: Own<'_>,
        now: Timestamp,
        change: impl Fn(&AnyAlgorithm, Word) -> (T, Word),
    ) -> T {
        let step = |algorithm: &AnyAlgorithm, word| {
            let (answer, next) = change(algorithm, word);
            (answer, (next != word).then_some(next))
        };
        // Evicting always finds a slot.
        self.act(caller, own, now, WhenFull::Evict, step).unwrap_or_default()
    }

    /// Spends `cost` if allowed.
    #[inline]
    pub(super) fn try_spend(
        &self,
        caller: Caller,
        own: Own<'_>,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        let step = |algorithm: &AnyAlgorithm, word| Decision::of(*algorithm, word, now, cost);
        match self.act(caller, own, now, self.table.when_full(), step) {
            Ok(decision) => decision,
            Err(full) => full.decision(now, cost),
        }
    }

    /// Spends `cost` if allowed, and returns what was written, if anything.
    pub(super) fn spend_and_record(
        &self,
        caller: Caller,
        own: Own<'_>,
        cost: u64,
        now: Timestamp,
    ) -> (Decision, Option<Written>) {
        let step = |algorithm: &AnyAlgorithm, before| {
            let (decision, next) = Decision::of(*algorithm, before, now, cost);
            ((decision, next.map(|after| Written { before, after })), next)
        };
        match self.act(caller, own, now, self.table.when_full(), step) {
            Ok(decided) => decided,
            Err(full) => (full.decision(now, cost), None),
        }
    }

    /// What [`try_spend`](Self::try_spend) would decide, without spending.
    pub(super) fn look(&self, caller: Caller, own: Own<'_>, cost: u64, now: Timestamp) -> Decision {
        let step =
            |algorithm: &AnyAlgorithm, word| (Decision::peek(*algorithm, word, now, cost), None);
        match self.act(caller, own, now, self.table.when_full(), step) {
            Ok(decision) => decision,
            Err(full) => full.decision(now, cost),
        }
    }

    /// Spends `amount` unconditionally, up to the maximum debt.
    pub(super) fn take(
        &self,
        caller: Caller,
        own: Own<'_>,
        amount: u64,
        now: Timestamp,
    ) -> Settled {
        self.settle_by(caller, own, now, |algorithm, word| {
            algorithm.debit(word, now, amount, self.max_debt)
        })
    }

    pub(super) fn return_amount(&self, caller: Caller, own: Own<'_>, amount: u64, now: Timestamp) {
        self.rewrite(caller, own, now, |algorithm, word| ((), algorithm.refund(word, now, amount)));
    }

    /// Replaces what a call has spent with the actual cost.
    pub(super) fn correct(
        &self,
        caller: Caller,
        own: Own<'_>,
        spent: &SpendRecord,
        actual: u64,
        now: Timestamp,
    ) -> Settled {
        self.settle_by(caller, own, now, |algorithm, word| match actual.checked_sub(spent.cost) {
            Some(missing) => algorithm.debit(word, now, missing, self.max_debt),
            None => {
                let (unused, has_tiers) = (spent.cost - actual, self.tiers.are_some());
                (spent.refund(algorithm, word, now, unused, has_tiers), 0)
            }
        })
    }

    /// Replaces a caller's word, and returns what is left and what was not debited.
    fn settle_by(
        &self,
        caller: Caller,
        own: Own<'_>,
        now: Timestamp,
        change: impl Fn(&AnyAlgorithm, Word) -> (Word, u64),
    ) -> Settled {
        let step = |algorithm: &AnyAlgorithm, word| {
            let (next, uncharged) = change(algorithm, word);
            let left = Decision::peek(*algorithm, next, now, 0);
            (Settled { left, uncharged }, (next != word).then_some(next))
        };
        match self.act(caller, own, now, WhenFull::Evict, step) {
            Ok(settled) => settled,
            Err(full) => Settled { left: full.decision(now, 0), uncharged: 0 },
        }
    }

    /// Undoes an allowed call, if nothing has been spent since.
    pub(super) fn undo_last(
        &self,
        caller: Caller,
        own: Own<'_>,
        spent: &SpendRecord,
        now: Timestamp,
    ) -> bool {
        self.rewrite(caller, own, now, |algorithm, word| {
            let is_last = spent.cost > 0 && spent.word == word && spent.algorithm == *algorithm;
            let left = match is_last {
                true => algorithm.refund_call(word, now, spent.cost, spent.word),
                false => word,
            };
            (is_last, left)
        })
    }

    /// Puts back the word that a decision replaced, if the one it left is still there.
    ///
    /// If it is not, the spend stays: undoing it later could return a token
    /// that refill has already replaced.
    pub(super) fn undo(
        &self,
        caller: Caller,
        own: Own<'_>,
        written: Written,
        now: Timestamp,
    ) -> bool {
        self.rewrite(caller, own, now, |_, word| {
            let is_there = word == written.after;
            (is_there, if is_there { written.before } else { word })
        })
    }
}
