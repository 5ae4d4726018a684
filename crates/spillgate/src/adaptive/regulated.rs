use super::{LimitKind, Window};
use crate::Timestamp;

/// What a regulator moves.
pub(super) trait Regulated {
    /// What is limited.
    fn kind(&self) -> LimitKind;

    /// How many calls are in flight.
    fn in_flight(&self) -> u32;

    /// Brings a limit into force.
    fn apply(&self, limit: f64, now: Timestamp);

    /// Learns that a window begins without a step: the first, after a long time, or because time
    /// went back.
    fn begin_anew(&self, now: Timestamp);

    /// Learns what a window has seen, and the limit after its step.
    fn end_window(&self, window: &Window, limit: f64);
}
