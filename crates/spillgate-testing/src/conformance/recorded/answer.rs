use std::time::Duration;

use spillgate::Verdict;

use crate::Observed;

/// The expected answer in a table.
pub(super) struct Answer {
    verdict: Verdict,
    left: u64,
    reset: Option<Duration>,
    wait: Duration,
}

/// Allowed: so much is left, and all of it is back after `reset`.
pub(super) const fn allowed(left: u64, reset: Duration) -> Answer {
    Answer { verdict: Verdict::Allowed, left, reset: Some(reset), wait: Duration::ZERO }
}

/// Denied for so long; so much is left, and all of it is back after `reset`.
pub(super) const fn denied(retry_after: Duration, left: u64, reset: Duration) -> Answer {
    let verdict = Verdict::Denied { retry_after };
    Answer { verdict, left, reset: Some(reset), wait: Duration::ZERO }
}

/// Denied for good; so much is left, and all of it is back after `reset`.
pub(super) const fn never(left: u64, reset: Duration) -> Answer {
    Answer { verdict: Verdict::Never, left, reset: Some(reset), wait: Duration::ZERO }
}

impl Answer {
    /// The same, with a wait before the call proceeds.
    pub(super) const fn waiting(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// The same, under a quota that never refills.
    pub(super) const fn for_good(self) -> Self {
        Self { reset: None, ..self }
    }

    pub(super) fn observed(&self, limit: u64) -> Observed {
        Observed {
            verdict: self.verdict,
            limit,
            remaining: self.left,
            retry_after: match self.verdict {
                Verdict::Allowed => Some(Duration::ZERO),
                Verdict::Denied { retry_after } => Some(retry_after),
                _ => None,
            },
            reset_after: self.reset,
            wait: self.wait,
        }
    }
}

pub(super) const NOW: Duration = Duration::ZERO;

pub(super) const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(super) const fn ns(nanoseconds: u64) -> Duration {
    Duration::from_nanos(nanoseconds)
}
