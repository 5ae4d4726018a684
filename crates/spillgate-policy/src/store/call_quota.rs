use std::time::Duration;

use spillgate::Quota;
use spillgate::algorithm::TokenBucket;

use crate::Error;

/// A quota that comes with a call.
///
/// Quotas are counted in classes by the time in which an empty bucket refills: up to 10 seconds,
/// up to 10 minutes, up to 6 hours, and longer. Each class has room of its own, since a full
/// table forgets the keys whose buckets are full again soonest: a flood of new keys under
/// `1/day` would otherwise free every caller under `10/s`. Within a class, refill times differ by
/// a factor of 60 at most, but for the shortest and the longest class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallQuota {
    quota: Quota,
    pub(super) bucket: TokenBucket,
    pub(super) class: u8,
}

/// How many classes of refill times there are.
pub(super) const CLASSES: usize = 4;

/// The longest refill time of each class but the last, in seconds. They part what people write as
/// "per second", "per minute", "per hour" and "per day", with bursts of some times that.
const LONGEST: [u64; CLASSES - 1] = [10, 10 * 60, 6 * 60 * 60];

impl CallQuota {
    /// A quota that can be counted, whatever the quota of the next call.
    ///
    /// # Errors
    ///
    /// If it never refills, or a token bucket cannot keep its rate.
    pub fn new(quota: Quota) -> Result<Self, Error> {
        let Some(period) = quota.period() else {
            return Err(Error::unknown(
                "a quota that comes with a call has to refill; give it a period",
            ));
        };
        let bucket = TokenBucket::new(&quota).map_err(|why| Error::unknown(why.to_string()))?;
        Ok(Self { quota, bucket, class: class_of(period, quota.amount(), quota.burst()) })
    }

    /// The quota.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.quota
    }

    /// The bucket that counts it.
    #[must_use]
    pub fn bucket(&self) -> TokenBucket {
        self.bucket
    }
}

fn class_of(period: Duration, amount: u64, burst: u64) -> u8 {
    // Refill time = period × burst / amount, compared without a division.
    let refill = period.as_nanos().saturating_mul(u128::from(burst));
    let is_longer =
        |seconds: &&u64| refill > u128::from(**seconds) * 1_000_000_000 * u128::from(amount);
    LONGEST.iter().filter(is_longer).count() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_of_a_class_by_the_time_in_which_an_empty_bucket_refills() {
        for (quota, class) in [
            ("10/s", 0),
            ("1/s burst 10", 0),
            ("1/s burst 11", 1),
            ("30/min burst 16", 1),
            ("10/min burst 100", 1),
            ("10/min burst 101", 2),
            ("100/h", 2),
            ("1/h burst 6", 2),
            ("1/h burst 7", 3),
            ("10/day", 3),
            ("1/s burst 4611686018", 3),
        ] {
            let call = CallQuota::new(quota.parse().unwrap()).unwrap();
            assert_eq!(call.class, class, "{quota}");
        }
    }
}
