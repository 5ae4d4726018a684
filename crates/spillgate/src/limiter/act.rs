//! The only access to a caller's word, in the table or in its account.

use super::Limiter;
use super::accounts::Stripe;
use super::tiers::Caller;
use crate::algorithm::{Algorithm, AnyAlgorithm, SpendRecord, TokenBucket, Word};
use crate::sync::{MutexGuard, Ordering};
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
        if self.may_be_elsewhere(caller) || own.is_some() {
            let go_there =
                |stripe: MutexGuard<'_, Stripe>, step| self.act_in(stripe, caller, now, step);
            return self.act_otherwise(caller, own, now, when_full, step, go_there);
        }
        // Other callers are handled out of line, so that this path does not pay for them. A
        // caller that is given an account just now is one of them.
        let may_have = || self.accounts.may_have(caller.fingerprint);
        let go_there = |step| {
            let go_there =
                |stripe: MutexGuard<'_, Stripe>, step| self.act_in(stripe, caller, now, step);
            self.act_on_account(caller, now, when_full, step, go_there)
        };
        self.table.update(caller.fingerprint, By::Base, now, when_full, step, (may_have, go_there))
    }

    /// The same for callers with a tier, an account or a quota that comes with the call. What is
    /// not in the table, or in another tier, is acted on by `go_there`.
    #[cold]
    #[inline(never)]
    fn act_otherwise<T, F>(
        &self,
        caller: Caller,
        own: Own<'_>,
        now: Timestamp,
        when_full: WhenFull,
        step: F,
        go_there: impl FnOnce(MutexGuard<'_, Stripe>, F) -> T,
    ) -> Result<T, Full>
    where
        F: FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    {
        let fingerprint = caller.fingerprint;
        let may_have = || own.is_none() && self.accounts.may_have(fingerprint);
        let go_there = |step| self.act_on_account(caller, now, when_full, step, go_there);
        if may_have() {
            return go_there(step);
        }
        let by = own.map_or(caller.by(), By::Call);
        self.table.update(fingerprint, by, now, when_full, step, (may_have, go_there))
    }

    /// The same for a caller that may have an account, which does not change while its stripe is
    /// held.
    #[cold]
    #[inline(never)]
    fn act_on_account<T, F>(
        &self,
        caller: Caller,
        now: Timestamp,
        when_full: WhenFull,
        step: F,
        go_there: impl FnOnce(MutexGuard<'_, Stripe>, F) -> T,
    ) -> Result<T, Full>
    where
        F: FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    {
        self.tidy(now);
        let stripe = self.accounts.stripe(caller.fingerprint);
        if stripe.has(caller.fingerprint) {
            return Ok(go_there(stripe, step));
        }
        let go_there = |step| Ok(go_there(stripe, step));
        let there = (|| false, go_there);
        let acted = self.table.update(caller.fingerprint, caller.by(), now, when_full, step, there);
        self.tidy(now);
        acted
    }

    /// The same for a caller that has an account, or whose word is in another tier.
    #[inline]
    fn act_in<T>(
        &self,
        mut stripe: MutexGuard<'_, Stripe>,
        caller: Caller,
        now: Timestamp,
        step: impl FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    ) -> T {
        self.give_account(&mut stripe, caller, now);
        let entry = stripe.entry(caller, now);
        let answer = entry.account.act(now, step);
        if entry.own.is_some() {
            entry.account.forget_what_has_run_off(now);
        } else {
            self.put_back(&mut stripe, caller.fingerprint, now);
            drop(stripe);
            self.tidy(now);
        }
        answer
    }

    /// Moves what a caller has spent from the table to an account, under the quota that it was
    /// spent under, unless it has one.
    pub(super) fn give_account(&self, stripe: &mut Stripe, caller: Caller, now: Timestamp) {
        if !stripe.has(caller.fingerprint) {
            // First, so that no call enters the caller again once it is taken out of the table.
            self.accounts.announce(caller.fingerprint);
            let taken = self.table.take_out(caller.fingerprint);
            stripe.enter(caller, taken, now);
        }
    }

    /// True if what a caller has spent may be in an account, or in another tier. A hint, as in
    /// `check_at_home`.
    #[inline]
    fn may_be_elsewhere(&self, caller: Caller) -> bool {
        !self.plain.load(Ordering::Relaxed)
            && (self.tiers.are_some() || self.accounts.may_have(caller.fingerprint))
    }

    /// Returns a caller to the table whose word tells all that it has spent, or has to: if there
    /// are too many accounts, those before the quota in force are forgotten. Returns whether it
    /// is there.
    pub(super) fn put_back(
        &self,
        stripe: &mut Stripe,
        caller: Fingerprint,
        now: Timestamp,
    ) -> bool {
        if self.accounts.are_being_saved() {
            return false;
        }
        let Some(settled) = stripe.settled(caller, now) else { return false };
        let step = |rule: &AnyAlgorithm, known| (true, Some(rule.larger(settled.word, known, now)));
        // It is nowhere else.
        let there = (|| false, |_| Ok(false));
        let by = By::of_tier(settled.tier);
        // Memory that grows with an attack is worse than a caller who is evicted.
        let when_full = if settled.has_to { WhenFull::Evict } else { self.table.when_full() };
        let put = self.table.update(caller, by, now, when_full, step, there);
        let is_back = put.unwrap_or(false);
        if is_back {
            stripe.entries.remove(&caller);
            self.table.count_evictions(u64::from(settled.is_cut));
        }
        is_back
    }

    /// Returns some callers to the table, now and then: so few that it costs no call much.
    fn tidy(&self, now: Timestamp) {
        let mut stripe = self.accounts.next_stripe();
        let is_over = stripe.sweep(now, |stripe, caller| self.put_back(stripe, caller, now));
        drop(stripe);
        if is_over {
            self.forget_accounts();
        }
    }

    /// Sends callers without an account to the table again.
    #[cold]
    fn forget_accounts(&self) {
        // A call does not wait for a change of quotas or a snapshot: the next sweep does it.
        let Some(_changing) = self.accounts.try_hold() else { return };
        let mut stripes = self.accounts.hold_stripes();
        self.accounts.announce_only(&mut stripes);
        let has_some = stripes.iter().any(|stripe| !stripe.is_empty());
        self.plain.store(!has_some && !self.tiers.are_some(), Ordering::Relaxed);
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
        // Nothing changes, nor is anything moved.
        let foresee = |stripe: MutexGuard<'_, Stripe>, _| {
            let in_table = self.table.in_any_tier(caller.fingerprint);
            let account = stripe.foresee(caller, in_table, now);
            Decision::peek(account.rule().algorithm, account.word(), now, cost)
        };
        let when_full = self.table.when_full();
        let looked = match self.may_be_elsewhere(caller) {
            false => self.act(caller, own, now, when_full, step),
            true => self.act_otherwise(caller, own, now, when_full, step, foresee),
        };
        match looked {
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
        let step =
            settling(now, |algorithm, word| algorithm.debit(word, now, amount, self.max_debt));
        settled(now, self.act(caller, own, now, WhenFull::Evict, step))
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
        let step = settling(now, |algorithm, word| match actual.checked_sub(spent.cost) {
            Some(missing) => algorithm.debit(word, now, missing, self.max_debt),
            // What was spent under another quota has run off, or there would be an account.
            None if spent.algorithm != *algorithm => (word, 0),
            None => (algorithm.refund_call(word, now, spent.cost - actual, spent.word), 0),
        });
        // In the tier that it has now, whatever that of the call was.
        let settle = |mut stripe: MutexGuard<'_, Stripe>, _| {
            self.give_account(&mut stripe, caller, now);
            let account = &mut stripe.known(caller, now).account;
            let settled = account.settle(spent, actual, self.max_debt, now);
            self.put_back(&mut stripe, caller.fingerprint, now);
            settled
        };
        let result = match self.may_be_elsewhere(caller) {
            false => self.act(caller, own, now, WhenFull::Evict, step),
            true => self.act_otherwise(caller, own, now, WhenFull::Evict, step, settle),
        };
        settled(now, result)
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

/// A step that settles by `change`, which returns the next word and what it has not debited.
fn settling(
    now: Timestamp,
    change: impl Fn(&AnyAlgorithm, Word) -> (Word, u64),
) -> impl Fn(&AnyAlgorithm, Word) -> (Settled, Option<Word>) {
    move |algorithm, word| {
        let (next, uncharged) = change(algorithm, word);
        let left = Decision::peek(*algorithm, next, now, 0);
        (Settled { left, uncharged }, (next != word).then_some(next))
    }
}

fn settled(now: Timestamp, result: Result<Settled, Full>) -> Settled {
    result.unwrap_or_else(|full| Settled { left: full.decision(now, 0), uncharged: 0 })
}
