//! Quotas that come with each call.

use super::update::{By, attempt};
use super::{Fingerprint, Owner, Table};
use crate::algorithm::{Algorithm, TokenBucket};
use crate::{Decision, Timestamp};

impl<S> Table<S> {
    /// [`check_at`](Self::check_at) under a quota that comes with the call.
    ///
    /// The word of a token bucket is the time at which it is full again, whatever its quota. So
    /// one table can serve quotas that come with each call: a caller keeps the time that it owes
    /// when its next call brings another quota. The table's own quota does not apply, and
    /// callers are evicted by the share of the smallest burst of their quotas that they have spent.
    ///
    /// Both this table's algorithm and `bucket` must be token buckets that refill; other words
    /// are not times.
    #[inline]
    pub fn check_with_at(
        &self,
        caller: Fingerprint,
        bucket: TokenBucket,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        match self.check_with_at_home(caller, bucket, cost, now) {
            Some(decision) => decision,
            None => self.check_with_anywhere(caller, bucket, cost, now),
        }
    }

    /// Decides for a known caller in its first line, whose word stays what it is counted by.
    #[inline(always)]
    fn check_with_at_home(
        &self,
        caller: Fingerprint,
        bucket: TokenBucket,
        cost: u64,
        now: Timestamp,
    ) -> Option<Decision> {
        let home = &self.lines[self.geometry.home(caller)];
        let slot = home.slot_of_caller(Owner::new(caller, By::Base))?;
        let owner = home.owner(slot);
        if !owner.stays_under(&bucket) {
            return None;
        }
        let spend = |bucket: &TokenBucket, word| Decision::of(*bucket, word, now, cost);
        attempt::<false, _, _>(home, slot, owner, || Some(bucket), spend)
    }

    #[cold]
    #[inline(never)]
    fn check_with_anywhere(
        &self,
        caller: Fingerprint,
        bucket: TokenBucket,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        self.check_by(caller, By::Call(&bucket), cost, now)
    }

    /// [`debit_at`](Self::debit_at) under a quota that comes with the call, but leaves no more
    /// than `most` spent in total.
    pub fn debit_with_at(
        &self,
        caller: Fingerprint,
        bucket: TokenBucket,
        amount: u64,
        most: u64,
        now: Timestamp,
    ) {
        if amount > 0 {
            self.rewrite(caller, By::Call(&bucket), now, |bucket, word| {
                bucket.debit_up_to(word, now, amount, most)
            });
        }
    }

    /// [`refund_at`](Self::refund_at) under a quota that comes with the call.
    pub fn refund_with_at(
        &self,
        caller: Fingerprint,
        bucket: TokenBucket,
        amount: u64,
        now: Timestamp,
    ) {
        self.rewrite(caller, By::Call(&bucket), now, |bucket, word| {
            bucket.refund(word, now, amount)
        });
    }
}
