use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::Signal;
use crate::Timestamp;

/// How late a tokio runtime is, in seconds: for how long a task that is ready waits for a thread.
///
/// A task sleeps for 50 ms again and again, and sees how late it wakes up. The signal is the longest
/// such delay since the last reading, and one that has not ended counts already. An idle runtime
/// is late by a millisecond, the resolution of its timer. Dropped, the task ends.
///
/// ```
/// use spillgate::adaptive::{AdaptiveLimit, EventLoopDelay, Load};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let delay = EventLoopDelay::start().expect("inside of a runtime");
/// let limit = AdaptiveLimit::concurrency(Load::new(0.020), 5..=500).signal(delay).build();
/// # drop(limit);
/// # }
/// ```
pub struct EventLoopDelay {
    ticks: Arc<Ticks>,
    task: JoinHandle<()>,
}

/// When the next tick is due, and how late the last ones were, in nanoseconds.
struct Ticks {
    began: Instant,
    due: AtomicU64,
    longest: AtomicU64,
}

const TICK: Duration = Duration::from_millis(50);

impl EventLoopDelay {
    /// Measures the runtime that this is called in; `None` outside of one. The runtime needs its
    /// timer ([`enable_time`](tokio::runtime::Builder::enable_time)): without one, there is no
    /// signal.
    #[must_use]
    pub fn start() -> Option<Self> {
        let runtime = Handle::try_current().ok()?;
        let due = AtomicU64::new(TICK.as_nanos() as u64);
        let ticks = Ticks { began: Instant::now(), due, longest: AtomicU64::new(0) };
        let ticks = Arc::new(ticks);
        let task = runtime.spawn(tick(Arc::clone(&ticks)));
        Some(Self { ticks, task })
    }
}

async fn tick(ticks: Arc<Ticks>) {
    loop {
        let due = Duration::from_nanos(ticks.due.load(Ordering::Relaxed));
        sleep_until(ticks.began + due).await;
        ticks.longest.fetch_max(ticks.late(), Ordering::Relaxed);
        ticks.due.store(ticks.elapsed() + TICK.as_nanos() as u64, Ordering::Relaxed);
    }
}

// Relaxed: a reading that comes between two of these is one of the tick before.
impl Ticks {
    fn elapsed(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// How late the next tick is.
    fn late(&self) -> u64 {
        self.elapsed().saturating_sub(self.due.load(Ordering::Relaxed))
    }
}

impl Signal for EventLoopDelay {
    fn read(&mut self, _now: Timestamp) -> Option<f64> {
        if self.task.is_finished() {
            return None;
        }
        let longest = self.ticks.longest.swap(0, Ordering::Relaxed).max(self.ticks.late());
        Some(Duration::from_nanos(longest).as_secs_f64())
    }
}

impl Drop for EventLoopDelay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for EventLoopDelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLoopDelay").finish_non_exhaustive()
    }
}
