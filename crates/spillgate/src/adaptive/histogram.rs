//! Latencies in a fixed number of buckets.

/// Each power of two has this many buckets, so that the middle of one is within 1.6 % of whatever
/// is in it.
const PER_OCTAVE: u64 = 1 << OCTAVE_BITS;
const OCTAVE_BITS: u32 = 5;

/// The highest latency that has its own bucket has this many bits: 73 minutes.
const BITS: u32 = 42;

const BUCKETS: usize = (PER_OCTAVE as usize) * (BITS - OCTAVE_BITS + 1) as usize;

/// A log-linear histogram of nanoseconds, with an error below 2 %.
pub(super) struct Histogram {
    counts: Box<[u32; BUCKETS]>,
}

impl Histogram {
    pub(super) fn new() -> Self {
        Self { counts: Box::new([0; BUCKETS]) }
    }

    #[inline]
    pub(super) fn add(&mut self, nanos: u64, count: u32) {
        let cell = &mut self.counts[bucket(nanos)];
        *cell = cell.saturating_add(count);
    }

    /// Moves all counts of another one here.
    pub(super) fn take(&mut self, other: &mut Self) {
        for (here, there) in self.counts.iter_mut().zip(other.counts.iter_mut()) {
            *here = here.saturating_add(std::mem::take(there));
        }
    }

    /// What the given tenths of all latencies do not exceed: the middle of its bucket.
    pub(super) fn tenths(&self, tenths: u64) -> Option<u64> {
        let total: u64 = self.counts.iter().copied().map(u64::from).sum();
        let rank = (total * tenths).div_ceil(10).max(1);
        let mut seen = 0;
        let reaches = |count: &u32| {
            seen += u64::from(*count);
            seen >= rank
        };
        self.counts.iter().position(reaches).map(middle)
    }
}

#[inline]
fn bucket(nanos: u64) -> usize {
    let nanos = nanos.min((1 << BITS) - 1);
    // The first bits below the highest one choose the bucket inside its octave. Below that, each
    // nanosecond has its own.
    let octave = (u64::BITS - nanos.leading_zeros()).saturating_sub(OCTAVE_BITS + 1);
    (u64::from(octave) * PER_OCTAVE + (nanos >> octave)) as usize
}

fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let octave = (bucket / PER_OCTAVE).saturating_sub(1);
    let lowest = (bucket - octave * PER_OCTAVE) << octave;
    lowest + (1 << octave) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_is_within_two_percent_of_its_bucket() {
        let mut last = 0;
        for nanos in (0..4_096).chain((12..BITS).flat_map(|bit| {
            let low = 1_u64 << bit;
            [low - 1, low, low + 1, low + low / 3, low + low / 2 + 7, 2 * low - 1]
        })) {
            let (index, near) = (bucket(nanos), middle(bucket(nanos)));
            assert!(index < BUCKETS, "{nanos}");
            assert!(near.abs_diff(nanos) * 50 <= nanos, "{near} for {nanos}");
            assert!(index >= last || nanos < (1 << 12), "buckets grow: {nanos}");
            last = index;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn tenths_are_of_all_that_was_added() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.tenths(9), None);
        (1..=10).for_each(|ms| histogram.add(ms * 1_000_000, 1));
        let near = |tenths, ms: u64| {
            let found = histogram.tenths(tenths).unwrap();
            assert!(found.abs_diff(ms * 1_000_000) * 50 <= ms * 1_000_000, "{found}, not {ms} ms");
        };
        near(9, 9);
        near(10, 10);
        near(5, 5);
        near(1, 1);
        let mut all = Histogram::new();
        all.take(&mut histogram);
        assert_eq!(histogram.tenths(9), None, "taken");
        all.add(1, u32::MAX);
        all.add(1, u32::MAX);
        assert_eq!(all.tenths(9), Some(1), "saturates");
    }
}
