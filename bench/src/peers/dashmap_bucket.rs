use std::time::{Duration, Instant};

use dashmap::DashMap;

use crate::keys::FlatText;
use crate::peer::{Peer, Sweep};
use crate::terms::Terms;

/// The token bucket that services write for themselves.
pub struct DashMapBucket {
    per_second: f64,
    burst: f64,
    buckets: DashMap<String, Bucket>,
}

struct Bucket {
    tokens: f64,
    last_refill: Instant,
    last_access: Instant,
}

impl DashMapBucket {
    #[inline]
    fn take(&self, bucket: &mut Bucket, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(bucket.last_refill);
        let tokens = bucket.tokens + elapsed.as_secs_f64() * self.per_second;
        bucket.tokens = tokens.min(self.burst);
        bucket.last_refill = now;
        bucket.last_access = now;
        let allowed = bucket.tokens >= 1.0;
        if allowed {
            bucket.tokens -= 1.0;
        }
        allowed
    }
}

impl Peer for DashMapBucket {
    const NAME: &'static str = "dashmap-bucket";
    type Keys = FlatText;

    fn build(terms: Terms, capacity: usize) -> Self {
        Self {
            per_second: f64::from(terms.amount) / terms.period.as_secs_f64(),
            burst: f64::from(terms.burst),
            buckets: DashMap::with_capacity(capacity),
        }
    }

    #[inline]
    fn check(&self, key: &str) -> bool {
        let now = Instant::now();
        if let Some(mut bucket) = self.buckets.get_mut(key) {
            return self.take(&mut bucket, now);
        }
        let full = || Bucket { tokens: self.burst, last_refill: now, last_access: now };
        let mut bucket = self.buckets.entry(key.to_owned()).or_insert_with(full);
        self.take(&mut bucket, now)
    }
}

impl Sweep for DashMapBucket {
    fn sweep(&self) {
        let now = Instant::now();
        let longest = Duration::from_secs_f64(self.burst / self.per_second);
        self.buckets
            .retain(|_, bucket| now.saturating_duration_since(bucket.last_access) < longest);
    }
}
