use super::{AnyAlgorithm, Word};

/// What the bits of a [`Word`] mean, for whoever has to compute with words where the
/// library does not run: a script inside a database, for example.
///
/// Times are nanoseconds since the epoch, or quanta: steps of so many nanoseconds. A word
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
    /// Of token and leaky buckets: the moment at which nothing is spent any more.
    Bucket {
        /// The time in which one unit is refilled.
        interval: u64,
        /// The time in which the whole burst is.
        span: u64,
        /// False if time stands still at zero, so that the word counts what is spent.
        refills: bool,
    },
    /// Of interval buckets: the quantum of the last refill, and what is spent.
    IntervalBucket {
        /// The length of a quantum: `2^(count_bits - 2)`.
        quantum: u64,
        /// How many bits the count has: at most 53.
        count_bits: u32,
        /// The time between two refills, in quanta.
        period: u64,
        /// How much is refilled.
        amount: u64,
        /// How much there is at most.
        burst: u64,
    },
    /// Of fixed windows: the quantum at which the window began, and the count.
    FixedWindow {
        /// The length of a quantum: of a window, if those follow the clock.
        quantum: u64,
        /// How many bits the count has.
        count_bits: u32,
        /// The length of a window in quanta: 1 if windows follow the clock.
        length: u64,
        /// The most that is counted in one.
        limit: u64,
    },
    /// Of sliding windows: the window's number, and the counts of the previous and of the
    /// current one.
    SlidingWindow {
        /// The length of a window.
        quantum: u64,
        /// How many bits each of the two counts has: at most 31.
        count_bits: u32,
        /// The most that is counted.
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

    /// The same algorithm for clients of whom `start` is the word before they are seen: an
    /// empty start that something else remembers. Only buckets have one.
    #[must_use]
    pub fn starting_from(self, start: Word) -> Self {
        match self {
            Self::TokenBucket(bucket) => bucket.starting_from(start).into(),
            Self::IntervalBucket(bucket) => bucket.starting_from(start).into(),
            other => other,
        }
    }
}
