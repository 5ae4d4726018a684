use super::seen::Seen;
use super::{Step, StepReason};

/// The latency of fewer calls is chance.
const ENOUGH: f64 = 100.0;

/// Moves a rate by latency.
///
/// A limit on calls in flight holds a queue at its length. One on calls per second that is too high
/// lets it grow without end, and one that is a little too low empties it: the rate has to go
/// below what the service completes for as long as it takes, and then comes back slowly.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pace {
    /// Where the rate was lowered last, if it was in the window before.
    lowered: Option<Lowered>,
    /// The latency that a lower rate could not make shorter.
    floor: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Lowered {
    from: f64,
    latency: f64,
}

impl Pace {
    /// The next rate, to keep a latency below a goal.
    pub(super) fn step(&mut self, seen: &Seen, latency: f64, goal: f64) -> Step {
        let lowered = self.lowered.take();
        if latency <= goal {
            self.floor = 0.0;
        }
        let goal = goal.max(1.2 * self.floor);
        if latency <= 1.03 * goal {
            return match seen.saturated {
                true => Step::new(1.05 * seen.limit, StepReason::BelowTarget),
                false => Step::new(seen.limit, StepReason::Unused),
            };
        }
        if !seen.saturated {
            return self.catch_up(seen);
        }
        // No more is completed than comes, so there is no queue that could become shorter.
        let is_steady = seen.rate <= 1.01 * seen.limit;
        if let Some(lowered) = lowered.filter(|it| is_steady && latency > 0.9 * it.latency) {
            self.floor = latency;
            return Step::new(lowered.from, StepReason::SlowerService);
        }
        self.lowered = Some(Lowered { from: seen.limit, latency });
        // Half of what is too long is gone after a window.
        let less = ((latency - goal) / (2.0 * seen.length)).clamp(0.05, 0.5);
        Step::new(seen.limit.min(seen.rate) * (1.0 - less), StepReason::AboveTarget)
    }

    /// Brings a rate that refuses nobody to where it soon would, if more comes than is completed. It
    /// stays above that: a pause of the service is no reason to refuse calls.
    fn catch_up(&mut self, seen: &Seen) -> Step {
        match seen.completed >= ENOUGH && 1.5 * seen.rate < seen.limit {
            true => Step::new(1.5 * seen.rate, StepReason::AboveTarget),
            false => Step::new(seen.limit, StepReason::Unused),
        }
    }
}
