use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use throttlecrab::{PeriodicStore, RateLimiter};

use crate::keys::FlatText;
use crate::peer::{Peer, Sweep};
use crate::terms::Terms;

/// The `throttlecrab` crate with its periodic store, behind the lock that its
/// documentation asks of users with more than one thread.
///
/// The adaptive store would go through all callers at every 100,000th check.
pub struct Throttlecrab {
    terms: Terms,
    limiter: Mutex<RateLimiter<PeriodicStore>>,
}

/// The crate's own default.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(60);

/// Often enough that every measured round meets a few.
const FREQUENT_CLEANUP_INTERVAL: Duration = Duration::from_millis(100);

impl Throttlecrab {
    fn new(terms: Terms, capacity: usize, cleanup_interval: Duration) -> Self {
        let store =
            PeriodicStore::builder().capacity(capacity).cleanup_interval(cleanup_interval).build();
        let limiter = Mutex::new(RateLimiter::new(store));
        Self { terms, limiter }
    }
}

impl Peer for Throttlecrab {
    const NAME: &'static str = "throttlecrab";
    type Keys = FlatText;

    fn build(terms: Terms, capacity: usize) -> Self {
        Self::new(terms, capacity, CLEANUP_INTERVAL)
    }

    #[inline]
    fn check(&self, key: &str) -> bool {
        let Terms { amount, period, burst } = self.terms;
        let mut limiter = self.limiter.lock().unwrap_or_else(PoisonError::into_inner);
        limiter
            .rate_limit(
                key,
                burst.into(),
                amount.into(),
                period.as_secs() as i64,
                1,
                SystemTime::now(),
            )
            .is_ok_and(|(allowed, _)| allowed)
    }
}

impl Sweep for Throttlecrab {
    fn build_sweeping(terms: Terms, capacity: usize) -> Self {
        Self::new(terms, capacity, FREQUENT_CLEANUP_INTERVAL)
    }

    /// Happens within a check that comes after the interval.
    fn sweep(&self) {}
}
