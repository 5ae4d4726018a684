use std::time::Duration;

use super::pace::Pace;
use super::seen::{InTransit, Mark, Seen};
use super::{Controller, Step, StepReason, Window};

/// For how many windows the limit is not lowered again after a decrease was undone: at first, and
/// at most.
const HOLD: (u32, u32) = (10, 80);

/// Keeps a latency near a target.
///
/// Each window multiplies the limit by the square root of target / latency, within 0.7 and 1.4;
/// it is held within 3 % of the target, and while less than half of it is used.
///
/// If the service itself is slower than the target, a lower limit cannot help. A decrease must not
/// cost a share of the completed calls that is above a sixth of its own: otherwise it is undone
/// ([`StepReason::Undone`]) and the next one waits for 10 windows, then 20, 40 and 80. So the limit
/// stays where the service is used fully, with the shortest latency that allows.
///
/// A rate is lowered below what the service completes until the latency is at the target, and
/// raised slowly after that.
///
/// ```
/// use std::time::Duration;
/// use spillgate::adaptive::{AdaptiveLimit, Target};
///
/// let limit = AdaptiveLimit::concurrency(Target::new(Duration::from_millis(40)), 1..=500).build();
/// # drop(limit);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    target: Duration,
    /// Where the present run of decreases was last seen to do no harm.
    harmless: Option<Mark>,
    hold: u32,
    hold_next: u32,
    in_transit: InTransit,
    pace: Pace,
}

impl Target {
    /// Keeps the latency that nine of ten calls do not exceed near this.
    #[must_use]
    pub fn new(target: Duration) -> Self {
        let in_transit = InTransit::default();
        Self {
            target,
            harmless: None,
            hold: 0,
            hold_next: HOLD.0,
            in_transit,
            pace: Pace::default(),
        }
    }

    fn follow(&mut self, seen: &Seen, gain: f64) -> Step {
        self.hold = self.hold.saturating_sub(1);
        if !seen.is_used() {
            self.harmless = None;
            return Step::new(seen.limit, StepReason::Unused);
        }
        if gain > 1.03 {
            self.harmless = None;
            self.hold_next = HOLD.0;
            return Step::new(seen.limit * gain, StepReason::BelowTarget);
        }
        if let Some(step) = self.undo(seen) {
            return step;
        }
        if gain > 0.97 || self.hold > 0 {
            return Step::new(seen.limit, StepReason::Steady);
        }
        if self.harmless.is_none() {
            self.harmless = Some(Mark { limit: seen.limit, rate: seen.rate });
        }
        Step::new(seen.limit * gain, StepReason::AboveTarget)
    }

    /// Goes back to where the run of decreases did no harm, if it has done some since.
    fn undo(&mut self, seen: &Seen) -> Option<Step> {
        let harmless = self.harmless?;
        let lowered = 1.0 - seen.limit / harmless.limit.max(1e-9);
        if lowered < 0.2 {
            return None;
        }
        let lost = 1.0 - seen.rate / harmless.rate.max(1e-9);
        if !seen.saturated || lost <= (lowered / 6.0).max(seen.noise(0.03)) {
            self.harmless = Some(Mark { limit: seen.limit, rate: seen.rate });
            return None;
        }
        self.harmless = None;
        self.hold = self.hold_next;
        self.hold_next = (self.hold_next * 2).min(HOLD.1);
        Some(Step::new(1.1 * harmless.limit, StepReason::Undone))
    }
}

impl Controller for Target {
    fn step(&mut self, limit: f64, window: &Window) -> Step {
        let seen = Seen::new(limit, window);
        let Some(latency) = seen.latency(window.p90_latency) else {
            return Step::new(seen.limit, StepReason::Unused);
        };
        self.step_by(&seen, latency).looking_at(latency)
    }
}

impl Target {
    fn step_by(&mut self, seen: &Seen, latency: f64) -> Step {
        if !self.in_transit.has_passed(seen) {
            return Step::new(seen.limit, StepReason::Steady);
        }
        if seen.is_rate() {
            return self.pace.step(seen, latency, self.target.as_secs_f64());
        }
        let gain = (self.target.as_secs_f64() / latency).sqrt().clamp(0.7, 1.4);
        let step = self.follow(seen, gain);
        if step.limit != seen.limit {
            self.in_transit.moved(seen);
        }
        step
    }
}
