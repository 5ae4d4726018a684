//! What a limiter is asked to enforce, in terms that every peer supports.

use std::time::Duration;

/// `amount` every `period`, and up to `burst` at once.
#[derive(Clone, Copy)]
pub struct Terms {
    pub amount: u32,
    pub period: Duration,
    pub burst: u32,
}

impl Terms {
    /// Never denies: a single caller would have to be asked four billion times.
    pub const GENEROUS: Self = Self::per_second(1_000_000, 4_000_000_000);

    /// Denies everything once it is spent. The burst is not 1 because one peer
    /// does not limit such a quota at all (see the probes).
    pub const STINGY: Self = Self { amount: 1, period: Duration::from_secs(3600), burst: 2 };

    pub const fn per_second(amount: u32, burst: u32) -> Self {
        Self { amount, period: Duration::from_secs(1), burst }
    }

    /// The time in which one unit is refilled.
    pub fn interval(self) -> Duration {
        self.period / self.amount
    }

    /// What is refilled within `time`.
    pub fn refilled_in(self, time: Duration) -> f64 {
        f64::from(self.amount) * time.as_secs_f64() / self.period.as_secs_f64()
    }

    /// The most that may pass within `time`, which the limiter may have measured
    /// by another clock.
    pub fn most_in(self, time: Duration) -> u64 {
        /// Two clocks may differ by so much.
        const DRIFT: f64 = 0.0005;
        u64::from(self.burst) + (self.refilled_in(time) * (1.0 + DRIFT)).ceil() as u64
    }
}
