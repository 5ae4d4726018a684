use std::time::Duration;

use dashmap::DashMap;
use leaky_bucket::RateLimiter;

use super::in_dashmap;
use crate::keys::FlatText;
use crate::peer::Peer;
use crate::terms::Terms;

/// The `leaky-bucket` crate, one limiter per caller, asked without waiting.
pub struct LeakyBucket {
    terms: Terms,
    limiters: DashMap<String, RateLimiter>,
}

impl Peer for LeakyBucket {
    const NAME: &'static str = "leaky-bucket";
    type Keys = FlatText;

    fn build(terms: Terms, capacity: usize) -> Self {
        let limiters = DashMap::with_capacity(capacity);
        Self { terms, limiters }
    }

    #[inline]
    fn check(&self, key: &str) -> bool {
        let make = || limiter(self.terms);
        in_dashmap::ask(&self.limiters, key, make, |limiter| limiter.try_acquire(1))
    }
}

/// Its time is in whole milliseconds and at least one: higher rates are more
/// tokens per millisecond.
fn limiter(terms: Terms) -> RateLimiter {
    let shortest = Duration::from_millis(1);
    let interval = terms.interval().max(shortest);
    let refill = terms.refilled_in(interval).round() as usize;
    RateLimiter::builder()
        .max(terms.burst as usize)
        .initial(terms.burst as usize)
        .refill(refill)
        .interval(interval)
        .build()
}
