use super::seen::Seen;
use super::{Controller, Step, StepReason, Window};

/// How much of a smoothed number is left after half a second: as much as of the load of a
/// processor ([`Cpu`](crate::adaptive::Cpu)), so that both are late by the same.
const DECAY: f64 = 0.95;

/// Keeps a signal, such as the load of the processor, near a target.
///
/// It learns what a call costs, signal / calls completed per second, from which follows how many
/// calls per second meet the target. A signal that is smoothed shows the effect of a limit
/// seconds later, and a controller that only compares it with its target would overshoot all
/// the time; calls are smoothed here like the signal, so that their quotient is not late.
///
/// A step multiplies the limit by at least 0.8 and at most 1.25, and halves it if the signal is above
/// its target although nobody was refused. While the signal is low the limit
/// grows to its maximum, used or not. Without a signal, or if it is not a number, the limit stays
/// ([`StepReason::NoSignal`]).
///
/// ```
/// use spillgate::adaptive::{AdaptiveLimit, Cpu, Load};
///
/// let limit = AdaptiveLimit::concurrency(Load::new(0.8), 1..=500).signal(Cpu::process()).build();
/// # drop(limit);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    target: f64,
    /// Calls completed per second, as late as the signal.
    late: Smoothed,
    /// The same, of the last seconds.
    recent: Smoothed,
}

/// A mean over time that forgets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Smoothed(Option<f64>);

impl Smoothed {
    fn add(&mut self, number: f64, decay: f64) -> f64 {
        let smoothed = self.0.map_or(number, |old| number + decay * (old - number));
        self.0 = Some(smoothed);
        smoothed
    }
}

impl Load {
    /// Keeps the signal near this, which is a positive number. Anything else holds the limit.
    #[must_use]
    pub fn new(target: f64) -> Self {
        Self { target, late: Smoothed::default(), recent: Smoothed::default() }
    }
}

impl Controller for Load {
    fn step(&mut self, limit: f64, window: &Window) -> Step {
        let seen = Seen::new(limit, window);
        // Without calls that end, as of a rate whose callers do not say how calls ended, the
        // limit itself is the best guess of how many there are.
        let rate = if seen.completed > 0.0 { seen.rate } else { seen.limit };
        let late = self.late.add(rate, DECAY.powf(seen.length / 0.5));
        let recent = self.recent.add(rate, 0.5_f64.powf(seen.length / 0.5));
        let signal = window.signal.filter(|signal| signal.is_finite());
        let Some(signal) = signal.filter(|_| self.target.is_finite() && self.target > 0.0) else {
            return Step::new(seen.limit, StepReason::NoSignal);
        };
        let wanted = self.target / signal.max(self.target / 1000.0) * late;
        let factor = (wanted / recent.max(1e-9)).sqrt().clamp(0.8, 1.25);
        // A limit that refused nobody is above what is asked for: a little less changes nothing.
        let factor = if factor < 0.98 && !seen.saturated { 0.5 } else { factor };
        if factor > 1.02 {
            Step::new(seen.limit * factor, StepReason::BelowTarget)
        } else if factor < 0.98 {
            Step::new(seen.limit * factor, StepReason::AboveTarget)
        } else {
            Step::new(seen.limit, StepReason::Steady)
        }
    }

    fn forget(&mut self, limit: f64) -> Step {
        *self = Self::new(self.target);
        Step::new(limit, StepReason::Unused)
    }
}
