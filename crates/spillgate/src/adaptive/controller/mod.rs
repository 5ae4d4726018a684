//! What moves a limit.

mod aimd;
mod auto;
mod errors;
mod load;
mod pace;
mod seen;
mod target;

use std::fmt;

pub use self::aimd::Aimd;
pub use self::auto::Auto;
pub use self::errors::Errors;
pub use self::load::Load;
pub use self::target::Target;
use super::{LimitKind, Window};

/// Moves a limit, window by window: a pure function of what it has seen.
///
/// | | for | looks at | settles |
/// |---|---|---|---|
/// | [`Auto`] | a service of which nothing is known | mean latency, completed calls | at the knee and room for a short queue |
/// | [`Target`] | a service whose latency is agreed | the latency of nine in ten calls | at the target, or at the knee if that is slower |
/// | [`Errors`] | a service that may fail | failed calls | at the share of calls that succeed |
/// | [`Aimd`] | the calling side | failed calls | just below where calls fail |
/// | [`Load`] | a processor, or any signal | the signal, completed calls | at the target |
///
/// The tests simulate services of which this holds, with random arrivals, exponential and nearly
/// constant work, and several seeds:
///
/// | | `Auto` | `Target` |
/// |---|---|---|
/// | at half the capacity nothing is refused; at 1 call per second, never in an hour | ✓ | ✓ |
/// | at 2 times: ≥ 95 % of the capacity, p99 ≤ 3 × that without load, limit steady | ✓ | ✓ |
/// | load × 6 and back: nothing is refused 10 windows later | ✓ | ✓ |
/// | service 5 times slower and back: ≥ 90 % of what it can do then, ≥ 95 % 20 windows later | ✓ | ✓ |
/// | 50 minutes at 1.5 times: no drift | ✓ | ✓ |
/// | a start at 20 times what is right, overloaded: found within 30 windows | ✓ | ✓ |
/// | cancelled calls do not move the limit | ✓ | ✓ |
/// | one processor for all calls, 5 times: ≥ 90 %, p99 ≤ 3 × | ✓ | by its target |
///
/// [`Load`] is within 10 % of its target 20 seconds after a step of the load, with a signal that is
/// 10 seconds late. [`Errors`] refuses nothing below its threshold, and forgets in 30 seconds.
///
/// ```
/// use spillgate::adaptive::{Controller, Step, StepReason, Window};
///
/// /// Halves the limit when one call in ten fails, and raises it by one otherwise.
/// #[derive(Debug)]
/// struct Cautious;
///
/// impl Controller for Cautious {
///     fn step(&mut self, limit: f64, window: &Window) -> Step {
///         match window.failed * 10 > window.completed {
///             true => Step::new(limit / 2.0, StepReason::Failures),
///             false => Step::new(limit + 1.0, StepReason::Recovered),
///         }
///     }
/// }
/// ```
pub trait Controller: fmt::Debug + Send {
    /// The next limit, before it is brought between minimum and maximum, given the present one and
    /// what was seen under it.
    fn step(&mut self, limit: f64, window: &Window) -> Step;

    /// The next limit after a time in which there were too few calls to learn from: for more than a
    /// minute no step was taken, and what was seen before is no longer of now. Left where it is, unless
    /// the controller says otherwise.
    fn forget(&mut self, limit: f64) -> Step {
        Step::new(limit, StepReason::Unused)
    }
}

/// What a controller decided.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Step {
    /// The next limit.
    pub limit: f64,
    /// Why.
    pub reason: StepReason,
    /// The number that it looked at, if that is neither the signal nor the mean latency.
    pub looked_at: Option<f64>,
}

/// Why a limit was moved, or left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StepReason {
    /// Nothing was seen yet.
    Started,
    /// Held: less than half of the limit was in use, so nothing was learnt.
    Unused,
    /// Held: it is where it should be.
    Steady,
    /// Raised: next to nothing waits in the service.
    ShortQueue,
    /// Lowered: too much waits in the service.
    LongQueue,
    /// Raised again: a lower limit only cost calls, so the service itself became slower.
    SlowerService,
    /// Lowered for a window: to see whether less of a queue completes as many calls.
    Probe,
    /// Moved to what the probe has shown.
    Probed,
    /// Raised: the signal is below its target.
    BelowTarget,
    /// Lowered: the signal is above its target.
    AboveTarget,
    /// Raised again: lowering it cost more than it gained.
    Undone,
    /// Lowered: calls failed.
    Failures,
    /// Raised: calls succeed again.
    Recovered,
    /// Held: the signal is missing.
    NoSignal,
}

impl Step {
    /// A limit and why.
    #[must_use]
    pub fn new(limit: f64, reason: StepReason) -> Self {
        Self { limit, reason, looked_at: None }
    }

    /// The same with the number that the controller looked at, for status and metrics.
    #[must_use]
    pub fn looking_at(self, number: f64) -> Self {
        Self { looked_at: Some(number), ..self }
    }
}

impl StepReason {
    /// For logs and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Unused => "unused",
            Self::Steady => "steady",
            Self::ShortQueue => "short-queue",
            Self::LongQueue => "long-queue",
            Self::SlowerService => "slower-service",
            Self::Probe => "probe",
            Self::Probed => "probed",
            Self::BelowTarget => "below-target",
            Self::AboveTarget => "above-target",
            Self::Undone => "undone",
            Self::Failures => "failures",
            Self::Recovered => "recovered",
            Self::NoSignal => "no-signal",
        }
    }
}
