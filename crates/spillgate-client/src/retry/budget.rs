use spillgate::algorithm::{Algorithm, TokenBucket, Word};
use spillgate::{Quota, Timestamp};

/// How many requests may be sent again: a share of all requests, and a few in any case.
///
/// Without it, a far side that fails gets several times the load, just when it can bear the least.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    /// What a request adds.
    ratio: f64,
    balance: f64,
    /// For those who send few requests. `None` if no retries are wanted.
    floor: Option<(TokenBucket, Word)>,
}

/// Retries saved up for later.
const MOST: f64 = 100.0;
/// Retries of those who send few requests.
const FLOOR_PER_SECOND: u64 = 1;
const FLOOR_BURST: u64 = 5;

impl RetryBudget {
    pub(crate) fn new(ratio: f64) -> Self {
        let quota = Quota::per_second(FLOOR_PER_SECOND).burst(FLOOR_BURST).build();
        let floor = quota.and_then(|quota| TokenBucket::new(&quota)).ok().filter(|_| ratio > 0.0);
        let floor = floor.map(|bucket| (bucket, bucket.fresh(Timestamp::ZERO)));
        Self { ratio, balance: 0.0, floor }
    }

    pub(crate) fn deposit(&mut self) {
        self.balance = (self.balance + self.ratio).min(MOST);
    }

    pub(crate) fn withdraw(&mut self, now: Timestamp) -> bool {
        if self.balance >= 1.0 {
            self.balance -= 1.0;
            return true;
        }
        let Some((bucket, word)) = &mut self.floor else { return false };
        let spent = bucket.spend(*word, now, 1);
        *word = spent.unwrap_or(*word);
        spent.is_some()
    }
}
