use quota::{QuotaPolicy, QuotaPool, RefillRate};

use crate::keys::FlatText;
use crate::peer::Peer;
use crate::terms::Terms;

/// The keyed pool of the `quota` crate.
pub struct Quota(QuotaPool<String>);

impl Peer for Quota {
    const NAME: &'static str = "quota";
    type Keys = FlatText;

    fn build(terms: Terms, capacity: usize) -> Self {
        let per_second = f64::from(terms.amount) / terms.period.as_secs_f64();
        let policy = QuotaPolicy::new()
            .set_capacity(terms.burst.into())
            .set_refill_rate(RefillRate::per_sec(per_second));
        Self(QuotaPool::with_capacity(policy, terms.burst.into(), capacity))
    }

    #[inline]
    fn check(&self, key: &str) -> bool {
        self.0.check(key, 1)
    }
}
