//! The one way to a client's word, wherever it is.

use super::Limiter;
use super::tiers::Client;
use crate::algorithm::{Algorithm, AnyAlgorithm, Charged, TokenBucket, Word};
use crate::table::{By, Full, Written};
use crate::{Decision, Timestamp, WhenFull};

/// The quota that comes with a call, if one does: then tiers and overrides do not count.
pub(super) type Own<'q> = Option<&'q TokenBucket>;

/// What settling has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// What there is now.
    pub left: Decision,
    /// What was not charged, since the debt would have been deeper than the limiter's
    /// [bound](super::Builder::max_debt).
    pub uncharged: u64,
}

impl<K: ?Sized, C, S> Limiter<K, C, S> {
    /// Takes `step` on the one word that the client has: its override's, or the table's. The
    /// step tells its answer, and the word to put in place, if any.
    #[inline]
    fn act<T>(
        &self,
        client: Client,
        own: Own<'_>,
        now: Timestamp,
        when_full: WhenFull,
        step: impl FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    ) -> Result<T, Full> {
        let fingerprint = client.fingerprint;
        let may_have = || self.overrides.may_have(fingerprint);
        if client.tier != 0 || own.is_some() || may_have() {
            return self.act_otherwise(client, own, now, when_full, step);
        }
        // The others are apart, so that this does not pay for them. If it is given an override
        // just now, it is one of them.
        let go_there = |step| self.act_on_override(client, By::Base, now, when_full, step);
        self.table.update(fingerprint, By::Base, now, when_full, step, (may_have, go_there))
    }

    /// The same for clients with a tier, an override or a quota that comes with the call.
    #[cold]
    #[inline(never)]
    fn act_otherwise<T>(
        &self,
        client: Client,
        own: Own<'_>,
        now: Timestamp,
        when_full: WhenFull,
        step: impl FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    ) -> Result<T, Full> {
        let fingerprint = client.fingerprint;
        let by = own.map_or(client.by(), By::Call);
        let may_have = || own.is_none() && self.overrides.may_have(fingerprint);
        if may_have() {
            return self.act_on_override(client, by, now, when_full, step);
        }
        let go_there = |step| self.act_on_override(client, by, now, when_full, step);
        self.table.update(fingerprint, by, now, when_full, step, (may_have, go_there))
    }

    /// The same for a client that may have an override: none comes or goes while its stripe is
    /// held.
    #[cold]
    #[inline(never)]
    fn act_on_override<T>(
        &self,
        client: Client,
        by: By<'_>,
        now: Timestamp,
        when_full: WhenFull,
        step: impl FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    ) -> Result<T, Full> {
        let fingerprint = client.fingerprint;
        self.overrides.with(fingerprint, |pinned| match pinned {
            Some(pinned) => Ok(pinned.act(step)),
            None => self.table.update_here(fingerprint, by, now, when_full, step),
        })
    }

    /// Replaces a client's word, for which there is always room: whoever owes something is
    /// remembered.
    pub(super) fn rewrite<T: Default>(
        &self,
        client: Client,
        own: Own<'_>,
        now: Timestamp,
        change: impl Fn(&AnyAlgorithm, Word) -> (T, Word),
    ) -> T {
        let step = |algorithm: &AnyAlgorithm, word| {
            let (answer, next) = change(algorithm, word);
            (answer, (next != word).then_some(next))
        };
        // Evicting always finds a slot.
        self.act(client, own, now, WhenFull::Evict, step).unwrap_or_default()
    }

    /// Spends `cost` if it passes.
    #[inline]
    pub(super) fn try_spend(
        &self,
        client: Client,
        own: Own<'_>,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        let step = |algorithm: &AnyAlgorithm, word| Decision::of(*algorithm, word, now, cost);
        match self.act(client, own, now, self.table.when_full(), step) {
            Ok(decision) => decision,
            Err(full) => full.decision(now, cost),
        }
    }

    /// Spends `cost` if it passes, and tells what was written, if anything was.
    pub(super) fn spend_and_tell(
        &self,
        client: Client,
        own: Own<'_>,
        cost: u64,
        now: Timestamp,
    ) -> (Decision, Option<Written>) {
        let step = |algorithm: &AnyAlgorithm, before| {
            let (decision, next) = Decision::of(*algorithm, before, now, cost);
            ((decision, next.map(|after| Written { before, after })), next)
        };
        match self.act(client, own, now, self.table.when_full(), step) {
            Ok(decided) => decided,
            Err(full) => (full.decision(now, cost), None),
        }
    }

    /// What [`spend`](Self::spend) would answer, without spending.
    pub(super) fn look(&self, client: Client, own: Own<'_>, cost: u64, now: Timestamp) -> Decision {
        let step =
            |algorithm: &AnyAlgorithm, word| (Decision::peek(*algorithm, word, now, cost), None);
        match self.act(client, own, now, self.table.when_full(), step) {
            Ok(decision) => decision,
            Err(full) => full.decision(now, cost),
        }
    }

    /// Takes `amount` whether or not it passes, up to the deepest debt.
    pub(super) fn take(
        &self,
        client: Client,
        own: Own<'_>,
        amount: u64,
        now: Timestamp,
    ) -> Settled {
        self.settle_by(client, own, now, |algorithm, word| {
            algorithm.debit(word, now, amount, self.max_debt)
        })
    }

    pub(super) fn give_back(&self, client: Client, own: Own<'_>, amount: u64, now: Timestamp) {
        self.rewrite(client, own, now, |algorithm, word| ((), algorithm.refund(word, now, amount)));
    }

    /// Replaces what was charged by the actual cost.
    pub(super) fn correct(
        &self,
        client: Client,
        own: Own<'_>,
        charged: &Charged,
        actual: u64,
        now: Timestamp,
    ) -> Settled {
        self.settle_by(client, own, now, |algorithm, word| match actual.checked_sub(charged.cost) {
            Some(missing) => algorithm.debit(word, now, missing, self.max_debt),
            None => {
                let (unused, has_tiers) = (charged.cost - actual, self.tiers.are_some());
                (charged.give_back(algorithm, word, now, unused, has_tiers), 0)
            }
        })
    }

    /// Replaces a client's word, and tells what is left and what was not charged.
    fn settle_by(
        &self,
        client: Client,
        own: Own<'_>,
        now: Timestamp,
        change: impl Fn(&AnyAlgorithm, Word) -> (Word, u64),
    ) -> Settled {
        let step = |algorithm: &AnyAlgorithm, word| {
            let (next, uncharged) = change(algorithm, word);
            let left = Decision::peek(*algorithm, next, now, 0);
            (Settled { left, uncharged }, (next != word).then_some(next))
        };
        match self.act(client, own, now, WhenFull::Evict, step) {
            Ok(settled) => settled,
            Err(full) => Settled { left: full.decision(now, 0), uncharged: 0 },
        }
    }

    /// Takes a call back that was charged, if nothing has been spent since.
    pub(super) fn uncharge(
        &self,
        client: Client,
        own: Own<'_>,
        charged: &Charged,
        now: Timestamp,
    ) -> bool {
        self.rewrite(client, own, now, |algorithm, word| {
            let is_last =
                charged.cost > 0 && charged.word == word && charged.algorithm == *algorithm;
            let left = match is_last {
                true => algorithm.give_back(word, now, charged.cost, charged.word),
                false => word,
            };
            (is_last, left)
        })
    }

    /// Puts back the word that a decision replaced, if the one it left is still there.
    ///
    /// If it is not, the charge stays: taking it back later could hand out a token
    /// that refill has already replaced.
    pub(super) fn undo(
        &self,
        client: Client,
        own: Own<'_>,
        written: Written,
        now: Timestamp,
    ) -> bool {
        self.rewrite(client, own, now, |_, word| {
            let is_there = word == written.after;
            (is_there, if is_there { written.before } else { word })
        })
    }
}
