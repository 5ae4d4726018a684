use std::fmt;
use std::time::Duration;

use spillgate::algorithm::TokenBucket;
use spillgate::{Clock, SystemClock, Timestamp};

use crate::headers::RateLimitInfo;
use crate::retry::{RetryBudget, backoff};
use crate::status::Counters;

/// What all budgets of a client have in common.
pub(crate) struct Settings {
    pub(crate) quota: Option<TokenBucket>,
    pub(crate) max_wait: Duration,
    pub(crate) max_block: Duration,
    pub(crate) max_queue: usize,
    pub(crate) max_budgets: usize,
    pub(crate) retry_ratio: f64,
    pub(crate) clock: Box<dyn Clock>,
    pub(crate) random: Box<dyn Fn() -> f64 + Send + Sync>,
    pub(crate) counters: Counters,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            quota: None,
            max_wait: Duration::from_secs(60),
            max_block: Duration::from_secs(60 * 60),
            max_queue: 10_000,
            max_budgets: 1_000,
            retry_ratio: 0.2,
            clock: Box::new(SystemClock),
            random: Box::new(fastrand::f64),
            counters: Counters::default(),
        }
    }
}

impl Settings {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A number from 0 up to 1.
    pub(crate) fn random(&self) -> f64 {
        (self.random)().clamp(0.0, 1.0)
    }

    pub(crate) fn retries(&self) -> RetryBudget {
        RetryBudget::new(self.retry_ratio)
    }

    /// How long nobody sends after the last of so many refusals in a row: what the far side asks for, and
    /// more each time if that does not help. A tenth of it is random, so that the processes of a fleet do
    /// not come back at once.
    pub(super) fn block(&self, info: &RateLimitInfo, refusals: u32) -> Duration {
        const UNKNOWN: Duration = Duration::from_secs(1);
        const REPEATED: Duration = Duration::from_millis(50);
        let announced = info.retry_after.or_else(|| info.is_exhausted().then_some(Duration::ZERO));
        let repeated = refusals.saturating_sub(1);
        let wait = match announced {
            Some(time) if repeated == 0 => time,
            Some(time) => time.max(backoff(REPEATED, repeated)),
            None => backoff(UNKNOWN, repeated),
        };
        let wait = wait.min(self.max_block);
        wait.saturating_add(wait.mul_f64(0.1 * self.random())).min(self.max_block)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("max_wait", &self.max_wait)
            .field("max_block", &self.max_block)
            .field("max_queue", &self.max_queue)
            .field("max_budgets", &self.max_budgets)
            .finish_non_exhaustive()
    }
}
