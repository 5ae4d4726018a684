use std::fmt;
use std::time::Duration;

use spillgate::{Decision, Timestamp, Verdict};

/// Anything that decides under one limit: a store, a limiter, a server.
pub trait Subject {
    /// Spends `cost` if allowed.
    fn check(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed;

    /// What [`check`](Self::check) would decide, without spending.
    fn peek(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed;

    /// Spends `amount` unconditionally.
    fn debit(&mut self, key: &str, amount: u64, now: Timestamp);

    /// Refunds `amount`, but never more than is spent.
    fn refund(&mut self, key: &str, amount: u64, now: Timestamp);

    /// Forgets what a caller has spent.
    fn reset(&mut self, key: &str, now: Timestamp);
}

impl<S: Subject + ?Sized> Subject for Box<S> {
    fn check(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        (**self).check(key, cost, now)
    }

    fn peek(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        (**self).peek(key, cost, now)
    }

    fn debit(&mut self, key: &str, amount: u64, now: Timestamp) {
        (**self).debit(key, amount, now);
    }

    fn refund(&mut self, key: &str, amount: u64, now: Timestamp) {
        (**self).refund(key, amount, now);
    }

    fn reset(&mut self, key: &str, now: Timestamp) {
        (**self).reset(key, now);
    }
}

/// Every field of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Allowed, denied or never.
    pub verdict: Verdict,
    /// The most that can be spent at once.
    pub limit: u64,
    /// How much can be spent now.
    pub remaining: u64,
    /// The time until the same call would be allowed.
    pub retry_after: Option<Duration>,
    /// The time until nothing is spent any more.
    pub reset_after: Option<Duration>,
    /// How long an allowed call should wait.
    pub wait: Duration,
}

impl Observed {
    /// True if the call may proceed.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allowed
    }
}

impl From<Decision> for Observed {
    fn from(decision: Decision) -> Self {
        Self {
            verdict: decision.verdict(),
            limit: decision.limit(),
            remaining: decision.remaining(),
            retry_after: decision.retry_after(),
            reset_after: decision.idle_after(),
            wait: decision.wait(),
        }
    }
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.verdict {
            Verdict::Allowed => f.write_str("allowed"),
            Verdict::Denied { retry_after } => write!(f, "denied for {retry_after:?}"),
            _ => f.write_str("never"),
        }?;
        write!(f, ", {} of {} left", self.remaining, self.limit)?;
        write!(f, ", retry {:?}, reset {:?}", self.retry_after, self.reset_after)?;
        write!(f, ", wait {:?}", self.wait)
    }
}
