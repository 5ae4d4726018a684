use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use spillgate::Limiter;

/// Lets something be told a few times, and then once a second.
pub(crate) struct Seldom {
    limiter: Option<Limiter<str>>,
    left_out: AtomicU64,
}

impl Seldom {
    /// Tells, with how often it was left out before.
    pub(crate) fn tell(&self, tell: impl FnOnce(u64)) {
        let may = self.limiter.as_ref().is_none_or(|limiter| limiter.check("").is_allowed());
        // Relaxed: a count orders nothing.
        if may {
            tell(self.left_out.swap(0, Ordering::Relaxed));
        } else {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Seldom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seldom").field("left_out", &self.left_out).finish_non_exhaustive()
    }
}

impl Default for Seldom {
    fn default() -> Self {
        // A quota that is right by itself; without a limiter everything is told.
        let limiter = Limiter::builder("1/s burst 5").capacity(1).build().ok();
        Self { limiter, left_out: AtomicU64::new(0) }
    }
}
