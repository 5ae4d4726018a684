//! Decides about spends, and takes them back.

use smallvec::SmallVec;
use spillgate::algorithm::{AnyAlgorithm, Word};
use spillgate::{Clock, Decision, Limiter, Timestamp, check_all_at};

use super::{Held, MemoryLimits};
use crate::Key;
use crate::store::Spend;

impl<C: Clock + Clone> MemoryLimits<C> {
    /// Takes an allowed spend back, if nothing has been spent since. Returns whether it did.
    #[expect(clippy::needless_pass_by_value, reason = "a spend is cancelled once")]
    pub fn cancel(&self, spend: Spend) -> bool {
        let spent = spend.decision.and_then(|decision| decision.spent());
        let Some(spent) = spent else { return false };
        let cancel = |limiter: &Limiter<Key, C>| {
            limiter.cancel(limiter.reservation(&spend.key, spend.bucket(), spent))
        };
        // What was spent in another class since is copied to this one first, and stays.
        let is_last = cancel(self.limiter(&spend, spent.at));
        if is_last {
            if let Some(classes) = &self.held[spend.limit].classes {
                classes.each().for_each(|limiter| {
                    cancel(limiter);
                });
            }
        }
        is_last
    }

    /// Makes the caller of a spend owe at least what `word` says, by the algorithm that counts it
    /// and at the store's present time: for what is known of it from elsewhere.
    pub fn raise(&self, spend: &Spend, word: impl Fn(&AnyAlgorithm, Timestamp) -> Word) {
        let now = self.held[spend.limit].limiter.clock().now();
        self.limiter(spend, now).raise(&spend.key, word);
    }

    /// The limiter of a spend: of its class, if its quota comes with the call.
    #[inline]
    pub(super) fn limiter(&self, spend: &Spend, now: Timestamp) -> &Limiter<Key, C> {
        let held = &self.held[spend.limit];
        match (&spend.quota, &held.classes) {
            (Some(call), Some(classes)) => classes.table_for(call.class, &spend.key, now),
            _ => &held.limiter,
        }
    }

    // Always, since it is called twice: also after permits were taken.
    #[inline(always)]
    pub(super) fn decide(&self, spends: &mut [Spend], now: Timestamp) {
        match spends {
            [spend] => self.decide_one(spend, now),
            [] => {}
            spends => self.decide_all(spends, now),
        }
    }

    #[inline]
    fn decide_one(&self, spend: &mut Spend, now: Timestamp) {
        let Spend { key, cost, .. } = &*spend;
        let decision = match spend.bucket() {
            None => self.held[spend.limit].limiter.check_at(key, *cost, now),
            Some(bucket) => self.limiter(spend, now).check_with_at(key, bucket, *cost, now),
        };
        spend.decision = Some(decision);
    }

    pub(super) fn peek(&self, spend: &Spend, cost: u64, now: Timestamp) -> Decision {
        let Held { limiter, classes, .. } = &self.held[spend.limit];
        match (spend.bucket(), classes) {
            (None, _) => limiter.peek_n(&spend.key, cost),
            (Some(bucket), None) => limiter.peek_with(&spend.key, bucket, cost),
            (Some(bucket), Some(classes)) => {
                classes.table_of(&spend.key, now).peek_with(&spend.key, bucket, cost)
            }
        }
    }

    /// Gives back what a spend with a quota of the call has spent too much, in every class: what
    /// is left in one would count in all.
    pub(super) fn give_back(&self, spend: &Spend, now: Timestamp, back: impl Fn(&Limiter<Key, C>)) {
        match &self.held[spend.limit].classes {
            Some(classes) => classes.each().for_each(back),
            None => back(self.limiter(spend, now)),
        }
    }

    fn decide_all(&self, spends: &mut [Spend], now: Timestamp) {
        let enforcing = spends.partition_point(|spend| !spend.is_shadow);
        let (enforced, shadow) = spends.split_at_mut(enforcing);
        let mut all: SmallVec<[_; 4]> = enforced
            .iter()
            .map(|spend| match spend.bucket() {
                None => self.limiter(spend, now).spend(&spend.key, spend.cost),
                Some(bucket) => self.limiter(spend, now).spend_with(&spend.key, bucket, spend.cost),
            })
            .collect();
        let decided = check_all_at(&mut all[..], now);
        for (spend, decision) in enforced.iter_mut().zip(decided.decisions()) {
            spend.decision = Some(decision);
        }
        if !enforced.iter().any(Spend::is_denied) {
            shadow.iter_mut().for_each(|spend| self.decide_one(spend, now));
        }
    }
}
