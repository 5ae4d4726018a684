use super::{AnyAlgorithm, Word};

/// What the bits of a [`Word`] mean, for code that computes with words where this library
/// does not run: for example a script inside Redis.
///
/// Times are nanoseconds since the epoch, or quanta: multiples of some nanoseconds. A word
/// that holds times and counts has the last count in its lowest bits:
///
/// ```text
/// 63                         count_bits           0
/// ├── time, in quanta ───────────┼───── count ──────┤
/// ├── window ──┼──── previous ───┼──── current ─────┤  a sliding window
/// ```
///
/// No count is above `2^count_bits - 2`, and times end where their bits do.
///
/// ```
/// use spillgate::algorithm::{AnyAlgorithm, Layout, TokenBucket};
/// use spillgate::Quota;
///
/// let bucket: AnyAlgorithm = TokenBucket::new(&Quota::per_second(10).burst(20).build()?)?.into();
/// let layout = Layout::Bucket { interval: 100_000_000, span: 2_000_000_000, refills: true };
/// assert_eq!(bucket.layout(), layout);
/// # Ok::<(), spillgate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// Token and leaky buckets: the time at which the bucket is full again.
    Bucket {
        /// The time in which one unit refills.
        interval: u64,
        /// The time in which the whole burst refills.
        span: u64,
        /// False if time is always zero, so that the word counts what is spent.
        refills: bool,
    },
    /// Interval buckets: the quantum of the last refill, and what is spent.
    IntervalBucket {
        /// The length of a quantum: `2^(count_bits - 2)`.
        quantum: u64,
        /// How many bits the count has: at most 53.
        count_bits: u32,
        /// The time between two refills, in quanta.
        period: u64,
        /// How much refills per period.
        amount: u64,
        /// The most that the bucket holds.
        burst: u64,
    },
    /// Fixed windows: the quantum at which the window began, and the count.
    FixedWindow {
        /// The length of a quantum: of a window, if windows are aligned.
        quantum: u64,
        /// How many bits the count has.
        count_bits: u32,
        /// The length of a window in quanta: 1 if windows are aligned.
        length: u64,
        /// The limit per window.
        limit: u64,
    },
    /// Sliding windows: the window's number, and the counts of the previous and the current
    /// window.
    SlidingWindow {
        /// The length of a window.
        quantum: u64,
        /// How many bits each of the two counts has: at most 31.
        count_bits: u32,
        /// The limit per window.
        limit: u64,
    },
}

impl AnyAlgorithm {
    /// What the bits of a word mean.
    #[must_use]
    pub fn layout(&self) -> Layout {
        match *self {
            Self::TokenBucket(bucket) => {
                let [interval, span, _] = bucket.to_raw();
                Layout::Bucket { interval, span, refills: bucket.refills() }
            }
            Self::LeakyBucket(bucket) => {
                let [interval, span, _] = bucket.to_raw();
                Layout::Bucket { interval, span, refills: true }
            }
            Self::IntervalBucket(bucket) => {
                let [quantum, bits, period, amount, burst, _] = bucket.to_raw();
                let count_bits = bits as u32;
                Layout::IntervalBucket { quantum, count_bits, period, amount, burst }
            }
            Self::FixedWindow(window) => {
                let [quantum, bits, length, limit] = window.to_raw();
                Layout::FixedWindow { quantum, count_bits: bits as u32, length, limit }
            }
            Self::SlidingWindow(window) => {
                let [quantum, bits, limit] = window.to_raw();
                Layout::SlidingWindow { quantum, count_bits: bits as u32, limit }
            }
        }
    }

    /// The same algorithm with `start` as the word of a new caller: for an empty start that is
    /// stored elsewhere. Only token and interval buckets have one.
    #[must_use]
    pub fn starting_from(self, start: Word) -> Self {
        match self {
            Self::TokenBucket(bucket) => bucket.starting_from(start).into(),
            Self::IntervalBucket(bucket) => bucket.starting_from(start).into(),
            other => other,
        }
    }
}
