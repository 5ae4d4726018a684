//! How much callers need, in bounded memory.

use std::collections::HashMap;

use spillgate::{HashIsKey, Timestamp};

/// Rates that are tried: amount, seconds, and how a quota writes the period.
pub(crate) const RATES: [(u64, u64, &str); 16] = [
    (1, 60, "min"),
    (2, 60, "min"),
    (5, 60, "min"),
    (10, 60, "min"),
    (20, 60, "min"),
    (30, 60, "min"),
    (1, 1, "s"),
    (2, 1, "s"),
    (5, 1, "s"),
    (10, 1, "s"),
    (20, 1, "s"),
    (50, 1, "s"),
    (100, 1, "s"),
    (200, 1, "s"),
    (500, 1, "s"),
    (1000, 1, "s"),
];

/// How many callers are measured per limit, of 256 bytes each. Of more, a random sample.
const MAX_CALLERS: usize = 1 << 16;

/// The burst that each caller would need at each of the [rates](RATES), so as never to be denied.
///
/// Which callers are measured depends on their hash alone, so each of them is measured from its
/// first request on.
#[derive(Debug)]
pub(crate) struct Demand {
    callers: HashMap<u64, Buckets, HashIsKey>,
    /// Hashes above it are not measured.
    highest: u64,
}

/// A token bucket per rate that never denies.
#[derive(Clone, Debug)]
struct Buckets {
    /// When each is full again.
    full: [u64; RATES.len()],
    /// The most that was missing from each, as the time that it takes to refill.
    most: [u64; RATES.len()],
}

impl Default for Demand {
    fn default() -> Self {
        Self { callers: HashMap::default(), highest: u64::MAX }
    }
}

/// The time in which one token is refilled, rounded up as quotas are.
fn interval(rate: usize) -> u64 {
    let (amount, seconds, _) = RATES[rate];
    (seconds * 1_000_000_000).div_ceil(amount)
}

impl Demand {
    pub(crate) fn count(&mut self, caller: u64, now: Timestamp, cost: u64) {
        if caller > self.highest {
            return;
        }
        let new = || Buckets { full: [0; RATES.len()], most: [0; RATES.len()] };
        let buckets = self.callers.entry(caller).or_insert_with(new);
        let now = now.as_nanos();
        for rate in 0..RATES.len() {
            let spent = cost.saturating_mul(interval(rate));
            let full = buckets.full[rate].max(now).saturating_add(spent);
            buckets.full[rate] = full;
            buckets.most[rate] = buckets.most[rate].max(full - now);
        }
        if self.callers.len() > MAX_CALLERS {
            self.highest /= 2;
            let highest = self.highest;
            self.callers.retain(|caller, _| *caller <= highest);
        }
    }

    /// How many callers were measured.
    pub(crate) fn callers(&self) -> usize {
        self.callers.len()
    }

    /// True if there were more callers than are measured.
    pub(crate) fn is_sample(&self) -> bool {
        self.highest < u64::MAX
    }

    /// How many callers a share of them are: at least so many are never denied.
    pub(crate) fn never_denied(&self, share: f64) -> usize {
        ((self.callers.len() as f64 * share).ceil() as usize).min(self.callers.len())
    }

    /// The burst with which a share of the callers would never be denied at a rate.
    pub(crate) fn burst(&self, rate: usize, share: f64) -> u64 {
        let mut needs: Vec<u64> = self.callers.values().map(|it| it.most[rate]).collect();
        if needs.is_empty() {
            return 0;
        }
        let place = self.never_denied(share).max(1) - 1;
        needs.select_nth_unstable(place).1.div_ceil(interval(rate))
    }
}

#[cfg(test)]
mod tests {
    use spillgate::{Limiter, ManualClock, Quota};

    use super::*;

    #[test]
    fn a_limiter_with_the_burst_never_denies_and_with_one_less_does() {
        let times = [0, 0, 1, 5, 5, 5, 9, 60, 60, 61, 200, 200, 200, 200, 201].map(|at| 1000 + at);
        let mut demand = Demand::default();
        times.iter().for_each(|at| demand.count(7, Timestamp::from_secs(*at), 1));
        for (rate, (amount, seconds, _)) in RATES.into_iter().enumerate() {
            let burst = demand.burst(rate, 1.0);
            let denied = |burst: u64| {
                let quota = Quota::per(amount, std::time::Duration::from_secs(seconds));
                let clock = ManualClock::default();
                let limiter = Limiter::<str>::builder(quota.burst(burst).build().unwrap());
                let limiter = limiter.clock(clock.clone()).build().unwrap();
                times.iter().any(|at| {
                    clock.set(Timestamp::from_secs(*at));
                    limiter.check("caller").is_denied()
                })
            };
            assert!(!denied(burst), "{amount} per {seconds}");
            assert!(denied(burst - 1), "{amount} per {seconds}");
        }
    }

    #[test]
    fn memory_is_bounded_and_a_share_of_callers_is_found_in_a_sample() {
        let mut demand = Demand::default();
        for caller in 0..200_000_u64 {
            let hash = caller.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let requests = if caller % 100 == 0 { 50 } else { 2 };
            (0..requests).for_each(|_| demand.count(hash, Timestamp::from_secs(1000), 1));
        }
        assert!(demand.callers() <= MAX_CALLERS && demand.is_sample());
        assert_eq!((demand.burst(6, 0.98), demand.burst(6, 0.999)), (2, 50));
    }
}
