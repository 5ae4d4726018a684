//! Quotas between two others.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::algorithm::TokenBucket;
use crate::{Error, Quota};

/// Two quotas, and everything between them: rate and burst move together, in a straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RateRange {
    min: Quota,
    max: Quota,
}

impl RateRange {
    pub(super) fn new(range: &RangeInclusive<Quota>) -> Result<Self, Error> {
        let (min, max) = (*range.start(), *range.end());
        for quota in [min, max] {
            if quota.period().is_none() {
                return Err(Error::quota(format!(
                    "\"{quota}\" never refills, so there is no rate to move; use a rate such as \
                     \"10/s\""
                )));
            }
            TokenBucket::new(&quota)?;
        }
        if min.rate() > max.rate() {
            return Err(Error::quota(format!(
                "the minimum \"{min}\" is a higher rate than the maximum \"{max}\"; exchange them"
            )));
        }
        Ok(Self { min, max })
    }

    /// The lowest and the highest rate, per second.
    pub(super) fn rates(&self) -> (f64, f64) {
        (self.min.rate(), self.max.rate())
    }

    pub(super) fn min(&self) -> Quota {
        self.min
    }

    pub(super) fn max(&self) -> Quota {
        self.max
    }

    /// The quota of a rate. At both ends it is the very quota that was given.
    pub(super) fn quota(&self, rate: f64) -> Quota {
        let (low, high) = self.rates();
        if rate >= high {
            return self.max;
        }
        if rate <= low || rate.is_nan() {
            return self.min;
        }
        let share = (rate - low) / (high - low);
        let (from, to) = (self.min.burst() as f64, self.max.burst() as f64);
        let burst = ((from + share * (to - from)).round() as u64).max(1);
        let rounded = self.rounded(rate, burst).filter(|quota| TokenBucket::new(quota).is_ok());
        // Whole nanoseconds are what a bucket counts.
        let interval = || Duration::from_nanos((1e9 / rate).ceil() as u64);
        rounded.or_else(|| Quota::per(1, interval()).burst(burst).build().ok()).unwrap_or(self.min)
    }

    /// A quota of a rate that is easy to read: a whole number, or else four digits, per period of
    /// the maximum, or per ten, hundred or thousand of them.
    fn rounded(&self, rate: f64, burst: u64) -> Option<Quota> {
        let period = self.max.period()?;
        let amount = rate * period.as_secs_f64();
        let is_round = |by: &u32| {
            let amount = amount * f64::from(*by);
            amount >= 1e3 || amount.fract() == 0.0
        };
        let factor = [1_u32, 10, 100, 1000].into_iter().find(is_round)?;
        // Up, so that it is not below the minimum; the maximum is a whole number.
        let amount = (amount * f64::from(factor)).ceil() as u64;
        let most = self.max.amount().checked_mul(factor.into())?;
        Quota::per(amount.min(most), period.checked_mul(factor)?).burst(burst).build().ok()
    }
}
