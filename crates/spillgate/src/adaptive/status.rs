use super::StepReason;

/// Where an adaptive limit is now, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct AdaptiveStatus {
    /// The limit: permits, calls per second, or a share of all calls.
    pub limit: f64,
    /// The lowest that it can be.
    pub min: f64,
    /// The highest that it can be.
    pub max: f64,
    /// What the controller looked at last: seconds, a share, or what the signal says; `None` if
    /// nothing was seen yet, or the signal is missing.
    pub signal: Option<f64>,
    /// Why the limit was moved last, or that the signal is missing.
    pub reason: StepReason,
    /// How often it was moved.
    pub changes: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// Calls in flight.
    pub in_flight: u32,
}
