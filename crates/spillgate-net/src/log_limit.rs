use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use spillgate::Limiter;

/// Bounds log lines that clients can cause: a burst of five, then one per second.
pub struct LogLimit {
    limiter: Option<Limiter<str>>,
    suppressed: AtomicU64,
}

impl LogLimit {
    /// Calls `log` with the number of lines suppressed before, unless this one is, too.
    pub fn log(&self, log: impl FnOnce(u64)) {
        let may = self.limiter.as_ref().is_none_or(|limiter| limiter.check("").is_allowed());
        // Relaxed: a count orders nothing.
        if may {
            log(self.suppressed.swap(0, Ordering::Relaxed));
        } else {
            self.suppressed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for LogLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogLimit").field("suppressed", &self.suppressed).finish_non_exhaustive()
    }
}

impl Default for LogLimit {
    fn default() -> Self {
        // The quota is valid; without a limiter everything would be logged.
        let limiter = Limiter::builder("1/s burst 5").capacity(1).build().ok();
        Self { limiter, suppressed: AtomicU64::new(0) }
    }
}
