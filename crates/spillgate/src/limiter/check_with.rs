//! Quotas that come with each call.

use std::hash::{BuildHasher, Hash};

use super::tiers::Caller;
use super::{Limiter, Settled, Spend};
use crate::algorithm::TokenBucket;
use crate::{Clock, Decision, Timestamp};

/// # A quota with each call
///
/// Both the limiter and the bucket that comes with the call must be token buckets that refill:
/// their word is a time, whatever the quota. See
/// [`Table::check_with_at`](crate::Table::check_with_at). Tiers and overrides do not apply.
impl<K: Hash + ?Sized, C: Clock, S: BuildHasher> Limiter<K, C, S> {
    /// [`check_n`](Self::check_n) under a quota that comes with the call.
    pub fn check_with(&self, key: &K, bucket: TokenBucket, cost: u64) -> Decision {
        self.check_with_at(key, bucket, cost, self.clock.now())
    }

    /// [`check_with`](Self::check_with) at a given time.
    #[inline]
    pub fn check_with_at(
        &self,
        key: &K,
        bucket: TokenBucket,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        let decision = self.table.check_with_at(self.fingerprint(key), bucket, cost, now);
        self.counters.count(&decision);
        decision
    }

    /// [`peek_n`](Self::peek_n) under a quota that comes with the call.
    pub fn peek_with(&self, key: &K, bucket: TokenBucket, cost: u64) -> Decision {
        self.peek_with_at(key, bucket, cost, self.clock.now())
    }

    /// [`peek_with`](Self::peek_with) at a given time.
    pub fn peek_with_at(
        &self,
        key: &K,
        bucket: TokenBucket,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        self.look(self.by_call(key), Some(&bucket), cost, now)
    }

    /// [`debit_n`](Self::debit_n) under a quota that comes with the call.
    pub fn debit_with(&self, key: &K, bucket: TokenBucket, amount: u64) -> Settled {
        self.debit_with_at(key, bucket, amount, self.clock.now())
    }

    /// [`debit_with`](Self::debit_with) at a given time.
    pub fn debit_with_at(
        &self,
        key: &K,
        bucket: TokenBucket,
        amount: u64,
        now: Timestamp,
    ) -> Settled {
        self.take(self.by_call(key), Some(&bucket), amount, now)
    }

    /// [`refund_n`](Self::refund_n) under a quota that comes with the call.
    pub fn refund_with(&self, key: &K, bucket: TokenBucket, amount: u64) {
        self.refund_with_at(key, bucket, amount, self.clock.now());
    }

    /// [`refund_with`](Self::refund_with) at a given time.
    pub fn refund_with_at(&self, key: &K, bucket: TokenBucket, amount: u64, now: Timestamp) {
        self.return_amount(self.by_call(key), Some(&bucket), amount, now);
    }

    /// [`spend`](Self::spend) under a quota that comes with the call.
    pub fn spend_with(&self, key: &K, bucket: TokenBucket, cost: u64) -> Spend<'_>
    where
        S: Send + Sync,
    {
        self.spend(key, cost).with(bucket)
    }

    fn by_call(&self, key: &K) -> Caller {
        Caller::of_base(self.fingerprint(key))
    }
}
