//! Quotas that come with each call.

use super::update::{By, attempt};
use super::{Fingerprint, Table};
use crate::algorithm::{Algorithm, TokenBucket};
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
            .and_then(|slot| attempt::<false, _, _>(home, slot, client, || Some(bucket), spend));
        match at_home {
            Some(decision) => decision,
            None => self.check_with_anywhere(client, bucket, cost, now),
        }
    }

    #[cold]
    #[inline(never)]
    fn check_with_anywhere(
        &self,
        client: Fingerprint,
        bucket: TokenBucket,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        self.check_by(client, By::Call(&bucket), cost, now)
    }

    /// Takes `amount` from a client whether or not it passes under a quota of the caller's own,
    /// but leaves no more than `most` spent in all.
    pub fn debit_with(
        &self,
        client: Fingerprint,
        bucket: TokenBucket,
        amount: u64,
        most: u64,
        now: Timestamp,
    ) {
        if amount > 0 {
            self.rewrite(client, By::Call(&bucket), now, |bucket, word| {
                bucket.debit_up_to(word, now, amount, most)
            });
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
        self.rewrite(client, By::Call(&bucket), now, |bucket, word| {
            bucket.refund(word, now, amount)
        });
    }
}
