//! Quotas that come with each call.

use super::update::{Full, attempt, by};
use super::{Fingerprint, Table};
use crate::algorithm::{Algorithm, AnyAlgorithm, TokenBucket};
use crate::{Decision, Timestamp};

impl<S> Table<S> {
    /// Spends `cost` for a client at `now`, if it passes under a quota of the
    /// caller's own.
    ///
    /// The word of a token bucket is the time at which it is full again, whatever its
    /// quota. So one table can serve quotas that come with each call: what a client
    /// owes stays owed, in time, when its next call brings another one. The table's
    /// own quota decides nothing then, and clients are evicted by the time for which
    /// they still owe something.
    ///
    /// Both this table's algorithm and `bucket` must be token buckets that refill;
    /// words of anything else are not times.
    #[inline]
    pub fn check_with(
        &self,
        client: Fingerprint,
        bucket: TokenBucket,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        let home = &self.lines[self.geometry.home(client)];
        let spend = |bucket: &TokenBucket, word| Decision::of(*bucket, word, now, cost);
        let at_home = home
            .slot_of(client)
            .and_then(|slot| attempt(home, slot, client, || Some(bucket), spend));
        at_home.unwrap_or_else(|| self.decide(client, Some(bucket), cost, now).0)
    }

    /// Takes `amount` from a client whether or not it passes under a quota of the caller's own,
    /// as [`charge_at`](Self::charge_at) does under the table's.
    pub fn charge_with(
        &self,
        client: Fingerprint,
        bucket: TokenBucket,
        amount: u64,
        now: Timestamp,
    ) {
        if amount > 0 {
            self.rewrite(client, now, |_, word| bucket.charge(word, now, amount));
        }
    }

    /// Gives `amount` back to a client under a quota of the caller's own, as
    /// [`check_with`](Self::check_with) has spent it, and never more than that.
    pub fn refund_with(
        &self,
        client: Fingerprint,
        bucket: TokenBucket,
        amount: u64,
        now: Timestamp,
    ) {
        self.rewrite(client, now, |_, word| bucket.refund(word, now, amount));
    }

    /// What [`decide`](Self::decide) would answer, without spending.
    pub(crate) fn peek_by(
        &self,
        client: Fingerprint,
        own: Option<TokenBucket>,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        let look = |algorithm: &AnyAlgorithm, word| {
            (Decision::peek(by(algorithm, own), word, now, cost), None)
        };
        self.update(client, now, self.when_full, &look).unwrap_or_else(|full| {
            let algorithm = by(&full.algorithm, own);
            Full { algorithm, ..full }.decision(now, cost)
        })
    }
}
