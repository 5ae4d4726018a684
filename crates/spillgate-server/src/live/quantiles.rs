//! How long something took during the last minute.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::Serialize;
use spillgate_enforce::LatencyHistogram;

/// Seconds that are kept.
const KEPT: usize = 60;

/// The counts of a histogram at the end of each second of the last minute.
#[derive(Default)]
pub(super) struct RecentLatencies(VecDeque<Box<[u64]>>);

/// Durations in seconds, interpolated.
#[derive(Clone, Copy, Serialize, JsonSchema)]
pub(super) struct Quantiles {
    /// Half take no longer.
    pub(super) p50: f64,
    /// 99 of 100 take no longer.
    pub(super) p99: f64,
}

impl RecentLatencies {
    pub(super) fn push(&mut self, counts: Box<[u64]>) {
        if self.0.len() > KEPT {
            self.0.pop_front();
        }
        self.0.push_back(counts);
    }

    /// Of the last minute; `None` if there was nothing.
    pub(super) fn quantiles(&self, histogram: &LatencyHistogram) -> Option<Quantiles> {
        let now = histogram.counts();
        let before = self.0.front().filter(|before| before.len() == now.len());
        let counts: Vec<u64> = match before {
            Some(before) => {
                now.iter().zip(before).map(|(now, old)| now.saturating_sub(*old)).collect()
            }
            None => now.to_vec(),
        };
        let quantile = |share| histogram.quantile(&counts, share);
        Some(Quantiles { p50: quantile(0.5)?, p99: quantile(0.99)? })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_older_than_a_minute_does_not_count() {
        let histogram = LatencyHistogram::new(&[0.1, 1.0]);
        let mut recent = RecentLatencies::default();
        assert!(recent.quantiles(&histogram).is_none());
        histogram.observe(Duration::from_millis(500));
        for _ in 0..=KEPT {
            recent.push(histogram.counts());
        }
        assert!(recent.quantiles(&histogram).is_none());
        histogram.observe(Duration::from_millis(50));
        let quantiles = recent.quantiles(&histogram);
        assert!(quantiles.is_some_and(|it| it.p50 <= 0.1 && it.p99 <= 0.1));
    }
}
