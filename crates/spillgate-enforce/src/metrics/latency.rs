use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// A histogram of durations that is written without a lock, and from which quantiles can be read.
#[derive(Debug)]
pub struct LatencyHistogram {
    /// Upper bounds in seconds, ascending.
    bounds: &'static [f64],
    /// One more than there are bounds: the last is for everything longer.
    counts: Box<[AtomicU64]>,
    sum_nanos: AtomicU64,
}

// Relaxed throughout: counts order nothing.
impl LatencyHistogram {
    /// A histogram with these upper bounds in seconds, ascending.
    #[must_use]
    pub fn new(bounds: &'static [f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum_nanos: AtomicU64::new(0) }
    }

    /// Counts a duration.
    pub fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let place = self.bounds.iter().position(|bound| seconds <= *bound);
        self.counts[place.unwrap_or(self.bounds.len())].fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.sum_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// What was counted so far: one number per bound, and one for everything longer.
    #[must_use]
    pub fn counts(&self) -> Box<[u64]> {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// Which duration a share of so many durations does not exceed, in seconds, interpolated within
    /// its bucket. `counts` are [those](Self::counts) of a histogram with the same bounds, or the
    /// difference of two. `None` if nothing was counted.
    #[must_use]
    pub fn quantile(&self, counts: &[u64], share: f64) -> Option<f64> {
        let total: u64 = counts.iter().sum();
        let rank = (total as f64 * share).max(1.0);
        let mut below = 0;
        for (place, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let upto = below + count;
            if upto as f64 >= rank {
                let lower = place.checked_sub(1).map_or(0.0, |before| self.bounds[before]);
                // What is longer than the last bound is as long as that, at least.
                let upper = self.bounds.get(place).copied().unwrap_or(lower);
                let part = (rank - below as f64) / *count as f64;
                return Some(lower + (upper - lower) * part);
            }
            below = upto;
        }
        None
    }
}

impl EncodeMetric for LatencyHistogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let counts = self.counts();
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        let buckets: Vec<_> = bounds.zip(counts.iter().copied()).collect();
        let sum = Duration::from_nanos(self.sum_nanos.load(Ordering::Relaxed)).as_secs_f64();
        encoder.encode_histogram::<NoLabelSet>(sum, counts.iter().sum(), &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_interpolated_within_a_bucket() {
        let histogram = LatencyHistogram::new(&[0.1, 0.2, 0.4]);
        assert_eq!(histogram.quantile(&histogram.counts(), 0.5), None);
        for millis in [50, 150, 150, 150, 300, 300, 300, 300, 300, 9000] {
            histogram.observe(Duration::from_millis(millis));
        }
        let counts = histogram.counts();
        assert_eq!(*counts, [1, 3, 5, 1]);
        let quantile = |share| histogram.quantile(&counts, share).unwrap_or(f64::NAN);
        assert!((quantile(0.1) - 0.1).abs() < 1e-9);
        assert!((quantile(0.25) - 0.15).abs() < 1e-9);
        assert!((quantile(0.9) - 0.4).abs() < 1e-9);
        assert!((quantile(1.0) - 0.4).abs() < 1e-9, "at least that");
    }
}
