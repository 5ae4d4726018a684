use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The congestion window: the most calls in flight.
///
/// Calls beyond what keeps a server busy would only queue there, where they cannot be ordered, and
/// where waiting looks like a slow server. So the window is what a fast server answers in an idle
/// round trip, but at least some hundred; it shrinks while replies take a good part of the timeout.
#[derive(Debug)]
pub(super) struct Window {
    size: AtomicU32,
    /// The configured maximum.
    most: u32,
    /// Replies that take longer are slow.
    slow: Duration,
    /// The shortest round trip so far, in nanoseconds.
    shortest: AtomicU64,
    /// Replies since the last change.
    answers: AtomicU32,
    begin: Instant,
    /// When it last shrank: nanoseconds since `begin`.
    shrunk: AtomicU64,
}

/// Enough for a server nearby: some milliseconds of work.
const USUAL: u32 = 256;

/// The minimum, even for a slow server.
const FEWEST: u32 = 64;

/// Calls per second of a fast server.
const FAST: u64 = 100_000;

// Relaxed throughout: a slightly stale size does no harm.
impl Window {
    /// Of at most so many calls, with this timeout.
    pub(super) fn new(most: usize, time_out: Duration) -> Self {
        let most = u32::try_from(most).unwrap_or(u32::MAX).max(1);
        Self {
            size: AtomicU32::new(USUAL.min(most)),
            most,
            slow: time_out / 4,
            shortest: AtomicU64::new(u64::MAX),
            answers: AtomicU32::new(0),
            begin: Instant::now(),
            shrunk: AtomicU64::new(0),
        }
    }

    /// How many calls may be in flight.
    pub(super) fn size(&self) -> u32 {
        self.size.load(Ordering::Relaxed)
    }

    /// Notes a reply time, and whether calls are queued.
    pub(super) fn answered(&self, after: Duration, is_full: bool) {
        let nanos = after.as_nanos() as u64;
        // Writes only changes, to avoid contention on the cache line.
        if nanos < self.shortest.load(Ordering::Relaxed) {
            self.shortest.fetch_min(nanos, Ordering::Relaxed);
        }
        if after > self.slow {
            self.shrink(nanos);
        } else if is_full {
            self.grow();
        }
    }

    /// Shrinks, once per round trip.
    fn shrink(&self, nanos: u64) {
        let (size, now) = (self.size(), self.begin.elapsed().as_nanos() as u64);
        let before = self.shrunk.load(Ordering::Relaxed);
        let is_first = now.saturating_sub(before) > nanos
            && self
                .shrunk
                .compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if is_first {
            let size = (size / 2).max(FEWEST).min(self.most);
            self.size.store(size, Ordering::Relaxed);
            self.answers.store(0, Ordering::Relaxed);
        }
    }

    /// Grows once a whole window was answered in time.
    fn grow(&self) {
        let size = self.size();
        if self.answers.fetch_add(1, Ordering::Relaxed) < size {
            return;
        }
        self.answers.store(0, Ordering::Relaxed);
        let shortest = self.shortest.load(Ordering::Relaxed);
        let under_way = shortest.saturating_mul(FAST) / 1_000_000_000;
        let most = u32::try_from(under_way).unwrap_or(u32::MAX).max(USUAL).min(self.most);
        if size < most {
            self.size.store((size + size / 16 + 1).min(most), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME_OUT: Duration = Duration::from_millis(200);

    fn many(window: &Window, after: Duration) {
        (0..100_000).for_each(|_| window.answered(after, true));
    }

    #[test]
    fn it_is_as_large_as_the_way_is_long() {
        let window = Window::new(4096, TIME_OUT);
        many(&window, Duration::from_micros(100));
        assert_eq!(window.size(), USUAL);
        let far = Window::new(4096, TIME_OUT);
        many(&far, Duration::from_millis(20));
        assert_eq!(far.size(), 2000);
        many(&far, Duration::from_millis(40));
        assert_eq!(far.size(), 2000, "a round trip that waits for others is no longer way");
        let few = Window::new(10, TIME_OUT);
        many(&few, Duration::from_millis(20));
        assert_eq!(few.size(), 10);
    }

    #[test]
    fn it_does_not_grow_unless_calls_wait() {
        let far = Window::new(4096, TIME_OUT);
        (0..100_000).for_each(|_| far.answered(Duration::from_millis(20), false));
        assert_eq!(far.size(), USUAL);
    }

    #[tokio::test(start_paused = true)]
    async fn it_shrinks_once_a_round_trip_while_answers_are_slow_and_recovers() {
        let window = Window::new(4096, TIME_OUT);
        window.answered(Duration::from_millis(1), true);
        let slow = Duration::from_millis(60);
        let mut sizes = Vec::new();
        for _ in 0..4 {
            tokio::time::advance(slow + Duration::from_millis(1)).await;
            (0..200).for_each(|_| window.answered(slow, true));
            sizes.push(window.size());
        }
        assert_eq!(sizes, [128, FEWEST, FEWEST, FEWEST]);
        many(&window, Duration::from_millis(1));
        assert_eq!(window.size(), USUAL);
    }
}
