//! Quotas that come with each call.

use std::hash::{BuildHasher, Hash};

use super::tiers::Client;
use super::{Limiter, Settled, Spend};
use crate::algorithm::TokenBucket;
use crate::{Clock, Decision, Timestamp};

/// Both the limiter and the bucket that comes with a call must be token buckets that refill:
/// the word of one is a time, whatever its quota. See [`Table::check_with`](crate::Table::check_with).
/// Tiers and overrides do not count then.
impl<K: Hash + ?Sized, C: Clock, S: BuildHasher> Limiter<K, C, S> {
    /// Spends `cost` for a client if all of it passes at `now` under a quota that comes with
    /// the call.
    pub fn check_with(&self, key: &K, bucket: TokenBucket, cost: u64, now: Timestamp) -> Decision {
        let decision = self.table.check_with(self.fingerprint(key), bucket, cost, now);
        self.counters.count(&decision);
        decision
    }

    /// What [`check_with`](Self::check_with) would answer now, without spending.
    pub fn peek_with(&self, key: &K, bucket: TokenBucket, cost: u64) -> Decision {
        self.look(self.by_call(key), Some(&bucket), cost, self.clock.now())
    }

    /// Gives `amount` back to a client, as [`check_with`](Self::check_with) has spent it, and
    /// never more than that.
    pub fn refund_with(&self, key: &K, bucket: TokenBucket, amount: u64) {
        self.give_back(self.by_call(key), Some(&bucket), amount, self.clock.now());
    }

    /// Takes `amount` from a client whether or not it passes under a quota that comes with the
    /// call.
    pub fn debit_with(&self, key: &K, bucket: TokenBucket, amount: u64) -> Settled {
        self.take(self.by_call(key), Some(&bucket), amount, self.clock.now())
    }

    /// A cost for one client under a quota that comes with the call, to be spent together with
    /// others by [`check_all`](crate::check_all).
    pub fn spend_with(&self, key: &K, bucket: TokenBucket, cost: u64) -> Spend<'_>
    where
        S: Send + Sync,
    {
        self.spend(key, cost).with(bucket)
    }

    fn by_call(&self, key: &K) -> Client {
        Client::of_base(self.fingerprint(key))
    }
}
