//! What was seen of a service since a window began.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::histogram::Histogram;
use super::{Ending, Window};
use crate::sync::{lock_plain, try_lock_plain};

/// Samples of the present window, from any number of threads.
///
/// Each thread has a shard, under a lock that it shares with few others: an uncontended lock costs
/// as much as two atomic additions, and sum, count and histogram of a sample are never apart.
pub(super) struct Recorder {
    shards: Box<[SampleShard]>,
}

#[repr(align(64))]
struct SampleShard(Mutex<Samples>);

/// Calls that ended.
pub(super) struct Samples {
    pub(super) completed: u64,
    pub(super) failed: u64,
    /// Nanoseconds of those that ended well.
    sum: u128,
    latencies: Histogram,
}

const MOST_SHARDS: usize = 8;

impl Recorder {
    pub(super) fn new() -> Self {
        let threads = std::thread::available_parallelism().map_or(MOST_SHARDS, usize::from);
        let shards = threads.next_power_of_two().min(MOST_SHARDS);
        Self { shards: (0..shards).map(|_| SampleShard(Mutex::new(Samples::new()))).collect() }
    }

    /// Adds `count` calls that ended alike.
    pub(super) fn add(&self, ending: Ending, latency: Duration, count: u32) {
        if ending == Ending::Failed || latency <= Window::LONGEST_LATENCY {
            self.shard().add(ending, latency.as_nanos() as u64, count);
        }
    }

    /// How many calls ended.
    pub(super) fn completed(&self) -> u64 {
        self.shards.iter().map(|shard| lock_plain(&shard.0).completed).sum()
    }

    /// All samples, which are then gone from here.
    pub(super) fn take(&self) -> Samples {
        let mut all = Samples::new();
        self.shards.iter().for_each(|shard| all.take(&mut lock_plain(&shard.0)));
        all
    }

    /// The shard of this thread, or the next one if that is busy.
    fn shard(&self) -> MutexGuard<'_, Samples> {
        // A power of two.
        let (mask, first) = (self.shards.len() - 1, thread_number());
        for next in 0..2 {
            if let Some(samples) = try_lock_plain(&self.shards[(first + next) & mask].0) {
                return samples;
            }
        }
        lock_plain(&self.shards[first & mask].0)
    }
}

impl Samples {
    fn new() -> Self {
        Self { completed: 0, failed: 0, sum: 0, latencies: Histogram::new() }
    }

    #[inline]
    fn add(&mut self, ending: Ending, nanos: u64, count: u32) {
        self.completed = self.completed.saturating_add(u64::from(count));
        match ending {
            Ending::Ok => {
                self.sum = self.sum.saturating_add(u128::from(nanos) * u128::from(count));
                self.latencies.add(nanos, count);
            }
            Ending::Failed => self.failed = self.failed.saturating_add(u64::from(count)),
        }
    }

    fn take(&mut self, other: &mut Self) {
        self.completed = self.completed.saturating_add(std::mem::take(&mut other.completed));
        self.failed = self.failed.saturating_add(std::mem::take(&mut other.failed));
        self.sum = self.sum.saturating_add(std::mem::take(&mut other.sum));
        self.latencies.take(&mut other.latencies);
    }

    /// The mean latency of calls that ended well.
    pub(super) fn mean(&self) -> Option<Duration> {
        let mean = self.sum.checked_div(u128::from(self.completed - self.failed))?;
        Some(Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// The latency that nine of ten such calls do not exceed.
    pub(super) fn p90(&self) -> Option<Duration> {
        self.latencies.tenths(9).map(Duration::from_nanos)
    }
}

/// A number that spreads threads over shards.
fn thread_number() -> usize {
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    if NUMBER.get() == usize::MAX {
        // Relaxed: a number orders nothing.
        NUMBER.set(NEXT.fetch_add(1, Ordering::Relaxed) & (usize::MAX >> 1));
    }
    NUMBER.get()
}
