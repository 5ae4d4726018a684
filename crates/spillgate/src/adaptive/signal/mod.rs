//! What a controller can look at beside calls.

mod cgroup;
mod cpu;
#[cfg(feature = "tokio")]
mod event_loop;
mod proc;

pub use self::cpu::Cpu;
#[cfg(feature = "tokio")]
pub use self::event_loop::EventLoopDelay;
use crate::Timestamp;

/// A number that says how loaded something is: a closure, or the load of the processor.
///
/// `None`, and what is not a number, holds the limit where it is until the signal is back.
///
/// ```
/// use spillgate::adaptive::{AdaptiveLimit, Load, StepReason};
/// use spillgate::{ManualClock, adaptive::Priority};
/// use std::time::Duration;
///
/// let clock = ManualClock::default();
/// let limit = AdaptiveLimit::concurrency(Load::new(0.8), 1..=100)
///     .signal(|| None)
///     .clock(clock.clone())
///     .build();
/// for _ in 0..2 {
///     let _ = limit.try_acquire(Priority::default());
///     clock.advance(Duration::from_millis(500));
/// }
/// let _ = limit.try_acquire(Priority::default());
/// assert_eq!(limit.status().reason, StepReason::NoSignal);
/// ```
pub trait Signal: Send {
    /// What it says at `now`, the time of the call that asks; `None` if that cannot be known. Called
    /// every 500 ms, or less often if there are no calls, and not by two threads at once. The first
    /// answer is ignored, so that a signal may compare two readings.
    fn read(&mut self, now: Timestamp) -> Option<f64>;
}

impl<F: FnMut() -> Option<f64> + Send> Signal for F {
    fn read(&mut self, _now: Timestamp) -> Option<f64> {
        self()
    }
}
