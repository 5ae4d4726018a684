use spillgate::Quota;
use spillgate::algorithm::TokenBucket;

use crate::Error;

/// A quota that comes with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallQuota {
    quota: Quota,
    pub(super) bucket: TokenBucket,
}

impl CallQuota {
    /// A quota that can be counted, whatever the quota of the next call.
    ///
    /// # Errors
    ///
    /// If it never refills, or a token bucket cannot keep its rate.
    pub fn new(quota: Quota) -> Result<Self, Error> {
        if quota.period().is_none() {
            return Err(Error::unknown(
                "a quota that comes with a call has to refill; give it a period",
            ));
        }
        let bucket = TokenBucket::new(&quota).map_err(|why| Error::unknown(why.to_string()))?;
        Ok(Self { quota, bucket })
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
