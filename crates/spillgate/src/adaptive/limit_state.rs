//! Where a limit is, and why.

use super::{AdaptiveStatus, StepReason};

/// A limit between its bounds, and what moved it last.
#[derive(Clone, Copy)]
pub(super) struct LimitState {
    pub(super) limit: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) signal: Option<f64>,
    pub(super) is_missing: bool,
    moved: StepReason,
    changes: u64,
}

impl LimitState {
    pub(super) fn new(start: f64, min: f64, max: f64) -> Self {
        Self {
            limit: start.clamp(min, max),
            min,
            max,
            signal: None,
            is_missing: false,
            moved: StepReason::Started,
            changes: 0,
        }
    }

    /// Moves the limit, between its bounds. What is not a number moves nothing.
    pub(super) fn move_to(&mut self, limit: f64, reason: StepReason) {
        let limit = if limit.is_nan() { self.limit } else { limit.clamp(self.min, self.max) };
        if limit != self.limit {
            self.limit = limit;
            self.moved = reason;
            self.changes += 1;
        }
    }

    /// Forgets what was looked at.
    pub(super) fn unsee(&mut self) {
        (self.signal, self.is_missing) = (None, false);
    }

    pub(super) fn status(self, refused: u64, in_flight: u32) -> AdaptiveStatus {
        AdaptiveStatus {
            limit: self.limit,
            min: self.min,
            max: self.max,
            signal: self.signal,
            reason: if self.is_missing { StepReason::NoSignal } else { self.moved },
            changes: self.changes,
            refused,
            in_flight,
        }
    }
}
