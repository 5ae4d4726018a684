use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Clock;
use crate::Timestamp;

/// A clock that the test moves, for tests and simulations without sleeping.
///
/// Clones share one time.
///
/// ```
/// use std::time::Duration;
/// use spillgate::{Limiter, ManualClock};
///
/// let clock = ManualClock::default();
/// let limiter = Limiter::<str>::builder("1/s").clock(clock.clone()).build()?;
/// assert!(limiter.check("alice").is_allowed());
/// assert!(limiter.check("alice").is_denied());
/// clock.advance(Duration::from_secs(1));
/// assert!(limiter.check("alice").is_allowed());
/// # Ok::<(), spillgate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    nanos: Arc<AtomicU64>,
}

// Relaxed throughout: the time is one number, and orders nothing else.
impl ManualClock {
    /// A clock that reads `start`.
    #[must_use]
    pub fn new(start: Timestamp) -> Self {
        Self { nanos: Arc::new(AtomicU64::new(start.as_nanos())) }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let moved = |nanos| Some((Timestamp::from_nanos(nanos) + by).as_nanos());
        // The closure never refuses, so there is always a new value.
        let _ = self.nanos.fetch_update(Ordering::Relaxed, Ordering::Relaxed, moved);
    }

    /// Sets the clock to `now`, which may be in the past.
    pub fn set(&self, now: Timestamp) {
        self.nanos.store(now.as_nanos(), Ordering::Relaxed);
    }
}

/// Starts well after the epoch, as real clocks do.
impl Default for ManualClock {
    fn default() -> Self {
        Self::new(Timestamp::from_secs(1_700_000_000))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
}
