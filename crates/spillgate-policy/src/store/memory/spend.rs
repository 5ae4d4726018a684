//! Decides about spends, and takes them back.

use smallvec::SmallVec;
use spillgate::algorithm::{AnyAlgorithm, Word};
use spillgate::{Clock, Decision, Limiter, Timestamp, check_all_at};

use super::MemoryLimits;
use crate::Key;
use crate::store::Spend;

impl<C: Clock + Clone> MemoryLimits<C> {
    /// Takes an allowed spend back, if nothing has been spent since. Returns whether it did.
    #[expect(clippy::needless_pass_by_value, reason = "a spend is cancelled once")]
    pub fn cancel(&self, spend: Spend) -> bool {
        let spent = spend.decision.and_then(|decision| decision.spent());
        let Some(spent) = spent else { return false };
        let limiter = self.limiter(&spend);
        limiter.cancel(limiter.reservation(&spend.key, spend.bucket(), spent))
    }

    /// Makes the caller of a spend owe at least what `word` says, by the algorithm that counts it
    /// and at the store's present time: for what is known of it from elsewhere.
    pub fn raise(&self, spend: &Spend, word: impl Fn(&AnyAlgorithm, Timestamp) -> Word) {
        self.limiter(spend).raise(&spend.key, word);
    }

    #[inline]
    pub(super) fn limiter(&self, spend: &Spend) -> &Limiter<Key, C> {
        &self.held[spend.limit].limiter
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
        let (limiter, Spend { key, cost, .. }) = (self.limiter(spend), &*spend);
        let decision = match spend.bucket() {
            None => limiter.check_at(key, *cost, now),
            Some(bucket) => limiter.check_with_at(key, bucket, *cost, now),
        };
        spend.decision = Some(decision);
    }

    pub(super) fn peek(&self, spend: &Spend, cost: u64) -> Decision {
        let limiter = self.limiter(spend);
        match spend.bucket() {
            None => limiter.peek_n(&spend.key, cost),
            Some(bucket) => limiter.peek_with(&spend.key, bucket, cost),
        }
    }

    fn decide_all(&self, spends: &mut [Spend], now: Timestamp) {
        let enforcing = spends.partition_point(|spend| !spend.is_shadow);
        let (enforced, shadow) = spends.split_at_mut(enforcing);
        let mut all: SmallVec<[_; 4]> = enforced
            .iter()
            .map(|spend| match spend.bucket() {
                None => self.limiter(spend).spend(&spend.key, spend.cost),
                Some(bucket) => self.limiter(spend).spend_with(&spend.key, bucket, spend.cost),
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
