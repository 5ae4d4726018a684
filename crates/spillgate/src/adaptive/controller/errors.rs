use std::collections::VecDeque;

use super::seen::Seen;
use super::{Controller, Step, StepReason, Window};

/// For how long calls are remembered, in seconds.
const REMEMBERED: f64 = 30.0;

/// Fewer calls than this in that time say nothing.
const ENOUGH: f64 = 20.0;

/// The most that is refused: the rest sees when the service is well again.
const MOST: f64 = 0.8;

/// Lets fewer calls through to a service that fails. The limit is a share: 1 lets everyone through.
///
/// Of the `n` calls of the last 30 seconds that were let through, `ok` succeeded. Refused is
/// `(max(0, n − ok / threshold) / (n + 1)) ^ (1 / aggression)` of all calls, and 80 % at most.
/// Nothing is refused with fewer than 20 calls in that time. Calls that were refused here do not
/// count, so that the limit cannot keep itself low.
///
/// ```
/// use std::time::Duration;
/// use spillgate::adaptive::{Controller, Errors, Window};
///
/// let mut window = Window::default();
/// window.length = Duration::from_secs(1);
/// window.completed = 99;
/// window.failed = 99;
/// let step = Errors::default().step(1.0, &window);
/// assert!((step.limit - 0.2).abs() < 1e-9);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Errors {
    threshold: f64,
    aggression: f64,
    /// The latest last.
    calls: VecDeque<Calls>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Calls {
    seconds: f64,
    completed: f64,
    ok: f64,
}

impl Default for Errors {
    fn default() -> Self {
        Self { threshold: 0.95, aggression: 1.0, calls: VecDeque::new() }
    }
}

impl Errors {
    /// The share of calls that should succeed, above 0 and at most 1. Default: 0.95.
    #[must_use]
    pub fn threshold(self, threshold: f64) -> Self {
        let threshold = if threshold.is_nan() { 0.95 } else { threshold.clamp(0.01, 1.0) };
        Self { threshold, ..self }
    }

    /// How fast it reacts: above 1 earlier. Default: 1; from 0.1 to 10.
    #[must_use]
    pub fn aggression(self, aggression: f64) -> Self {
        let aggression = if aggression.is_nan() { 1.0 } else { aggression.clamp(0.1, 10.0) };
        Self { aggression, ..self }
    }

    fn remember(&mut self, seconds: f64, completed: f64, failed: f64) {
        self.calls.push_back(Calls { seconds, completed, ok: (completed - failed).max(0.0) });
        let mut remembered: f64 = self.calls.iter().map(|calls| calls.seconds).sum();
        while self.calls.len() > 1 && remembered > REMEMBERED {
            remembered -= self.calls.pop_front().map_or(0.0, |calls| calls.seconds);
        }
    }

    /// The share of remembered calls that failed.
    fn failing(&self) -> f64 {
        let completed: f64 = self.calls.iter().map(|calls| calls.completed).sum();
        let ok: f64 = self.calls.iter().map(|calls| calls.ok).sum();
        (completed - ok).max(0.0) / completed.max(1.0)
    }

    /// The share of calls to refuse; `None` if there are too few to tell.
    fn refuse(&self) -> Option<f64> {
        let completed: f64 = self.calls.iter().map(|calls| calls.completed).sum();
        let ok: f64 = self.calls.iter().map(|calls| calls.ok).sum();
        let seconds: f64 = self.calls.iter().map(|calls| calls.seconds).sum();
        // One window may be longer than what is remembered.
        let enough = ENOUGH * (seconds / REMEMBERED).max(1.0);
        let excess = (completed - ok / self.threshold).max(0.0) / (completed + 1.0);
        (completed >= enough).then(|| excess.powf(1.0 / self.aggression).min(MOST))
    }
}

impl Controller for Errors {
    fn step(&mut self, limit: f64, window: &Window) -> Step {
        let seen = Seen::new(limit, window);
        self.remember(seen.length, seen.completed, window.failed as f64);
        let refuse = self.refuse();
        let share = 1.0 - refuse.unwrap_or(0.0);
        let reason = match refuse {
            _ if share > seen.limit => StepReason::Recovered,
            _ if share < seen.limit => StepReason::Failures,
            None => StepReason::Unused,
            Some(_) => StepReason::Steady,
        };
        Step::new(share, reason).looking_at(self.failing())
    }

    fn forget(&mut self, _limit: f64) -> Step {
        self.calls.clear();
        Step::new(1.0, StepReason::Recovered)
    }
}
