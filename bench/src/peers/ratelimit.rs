use dashmap::DashMap;
use ratelimit::Ratelimiter;

use super::in_dashmap;
use crate::keys::FlatText;
use crate::peer::Peer;
use crate::terms::Terms;

/// The `ratelimit` crate, one limiter per caller.
pub struct Ratelimit {
    terms: Terms,
    limiters: DashMap<String, Ratelimiter>,
}

impl Peer for Ratelimit {
    const NAME: &'static str = "ratelimit";
    type Keys = FlatText;

    fn build(terms: Terms, capacity: usize) -> Self {
        let limiters = DashMap::with_capacity(capacity);
        Self { terms, limiters }
    }

    #[inline]
    fn check(&self, key: &str) -> bool {
        let make = || limiter(self.terms);
        in_dashmap::ask(&self.limiters, key, make, |limiter| limiter.try_wait().is_ok())
    }
}

fn limiter(terms: Terms) -> Ratelimiter {
    Ratelimiter::builder(terms.amount.into())
        .period(terms.period)
        .max_tokens(terms.burst.into())
        .initial_available(terms.burst.into())
        .build()
        .expect("terms that the crate can express")
}
