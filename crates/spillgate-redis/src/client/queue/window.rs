use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// How many calls are under way at once at most.
///
/// Calls beyond what keeps a server busy only wait there, where nobody can put them in order, and
/// where waiting counts as the server being slow. So there are as many as a fast server answers
/// in the time of an empty round trip, but at least some hundred; and fewer, as long as answers
/// take more than a part of the time-out.
#[derive(Debug)]
pub(super) struct Window {
    size: AtomicU32,
    /// The most that were asked for.
    most: u32,
    /// Answers that take longer are slow.
    slow: Duration,
    /// The shortest round trip so far: nanoseconds.
    shortest: AtomicU64,
    /// Answers since the size has changed.
    answers: AtomicU32,
    begin: Instant,
    /// When it was last made smaller: nanoseconds since the beginning.
    shrunk: AtomicU64,
}

/// Enough for a server nearby: some milliseconds of its work.
const USUAL: u32 = 256;

/// Even a slow server has so many to work on.
const FEWEST: u32 = 64;

/// How many calls a fast server answers in a second.
const FAST: u64 = 100_000;

// Relaxed throughout: sizes that are a little late do no harm.
impl Window {
    /// Of at most so many calls, to be answered within a time-out.
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

    /// How many calls may be under way.
    pub(super) fn size(&self) -> u32 {
        self.size.load(Ordering::Relaxed)
    }

    /// Notes how long an answer took, and whether there are calls that wait for a place.
    pub(super) fn answered(&self, after: Duration, is_full: bool) {
        let nanos = after.as_nanos() as u64;
        // A store only where it changes something, so that calls do not fight for the line.
        if nanos < self.shortest.load(Ordering::Relaxed) {
            self.shortest.fetch_min(nanos, Ordering::Relaxed);
        }
        if after > self.slow {
            self.shrink(nanos);
        } else if is_full {
            self.grow();
        }
    }

    /// Makes it smaller, but once for all calls that were under way together.
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

    /// Makes it larger once all calls that were under way together are answered in time.
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
