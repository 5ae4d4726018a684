use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Whether an upstream is likely to answer.
#[derive(Debug)]
pub(super) struct Health {
    /// Times are counted from here.
    origin: Instant,
    /// Connections in a row that could not be made.
    failures: AtomicU32,
    /// Until when it is avoided, in milliseconds; 0 if it is not.
    avoided_until: AtomicU64,
    /// It did not say that it is well when it was asked last.
    is_unwell: AtomicBool,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            origin: Instant::now(),
            failures: AtomicU32::new(0),
            avoided_until: AtomicU64::new(0),
            is_unwell: AtomicBool::new(false),
        }
    }
}

/// How long an upstream is avoided that cannot be reached, and how that grows.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

// Relaxed throughout: whoever sees it late tries in vain, and tries another.
impl Health {
    /// A connection was made.
    pub(super) fn connected(&self) {
        if self.failures.load(Ordering::Relaxed) > 0 {
            self.failures.store(0, Ordering::Relaxed);
            self.avoided_until.store(0, Ordering::Relaxed);
        }
    }

    /// No connection could be made.
    pub(super) fn failed(&self) {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).min(10);
        let avoided = (FIRST * (1 << failures)).min(LONGEST);
        self.avoided_until.store(self.now() + millis(avoided).max(1), Ordering::Relaxed);
    }

    /// It was asked whether it is well. Tells whether that is new.
    pub(super) fn asked(&self, is_well: bool) -> bool {
        self.is_unwell.swap(!is_well, Ordering::Relaxed) == is_well
    }

    /// True unless it says that it is not well.
    pub(super) fn is_well(&self) -> bool {
        !self.is_unwell.load(Ordering::Relaxed)
    }

    /// True if it could not be reached lately.
    pub(super) fn is_avoided(&self) -> bool {
        match self.avoided_until.load(Ordering::Relaxed) {
            0 => false,
            until => self.now() < until,
        }
    }

    fn now(&self) -> u64 {
        millis(self.origin.elapsed())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_upstream_that_cannot_be_reached_is_avoided_for_longer_and_longer() {
        let health = Health::default();
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            health.failed();
            tokio::time::advance(Duration::from_secs(seconds) - Duration::from_millis(10)).await;
            assert!(health.is_avoided(), "{seconds}");
            tokio::time::advance(Duration::from_millis(20)).await;
            assert!(!health.is_avoided(), "{seconds}");
        }
        health.failed();
        health.connected();
        assert!(!health.is_avoided());
        health.failed();
        tokio::time::advance(Duration::from_millis(1010)).await;
        assert!(!health.is_avoided(), "it begins anew");
    }
}
