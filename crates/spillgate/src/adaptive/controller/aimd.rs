use super::seen::Seen;
use super::{Controller, Step, StepReason, Window};

/// Adds one while at least half is used, and multiplies by 0.9 when calls fail.
///
/// For the side that calls: as TCP does, it needs no latency, only answers that say "too much". Each
/// window with more than one failed call in a hundred lowers the limit once. Limits above a hundred
/// are raised by one in a hundred.
///
/// ```
/// use spillgate::adaptive::{Aimd, Controller, StepReason, Window};
///
/// let mut window = Window::default();
/// window.completed = 100;
/// window.failed = 5;
/// let step = Aimd::default().step(50.0, &window);
/// assert_eq!((step.limit, step.reason), (45.0, StepReason::Failures));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aimd {}

impl Controller for Aimd {
    fn step(&mut self, limit: f64, window: &Window) -> Step {
        let seen = Seen::new(limit, window);
        let failing = window.failed as f64 / seen.completed.max(1.0);
        let step = if failing > 0.01 {
            Step::new(seen.limit * 0.9, StepReason::Failures)
        } else if seen.is_used() {
            Step::new(seen.limit + (seen.limit / 100.0).max(1.0), StepReason::Recovered)
        } else {
            Step::new(seen.limit, StepReason::Unused)
        };
        step.looking_at(failing)
    }
}
