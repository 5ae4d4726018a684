use std::time::Duration;

use super::{LimitKind, Window};

/// A window in numbers that can be computed with, whatever it said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// The limit under which it was seen, and whole permits of it.
    pub(super) limit: f64,
    pub(super) held: f64,
    /// In seconds.
    pub(super) length: f64,
    pub(super) completed: f64,
    /// Calls completed per second.
    pub(super) rate: f64,
    pub(super) in_flight: f64,
    kind: LimitKind,
    /// Whether the limit refused calls: more was asked for than it lets through.
    pub(super) saturated: bool,
    /// How many calls were asked for, for each that was completed.
    pub(super) overload: f64,
}

impl Seen {
    pub(super) fn new(limit: f64, window: &Window) -> Self {
        // Permits beyond this, or times below it, are no permits and no times.
        let limit = if limit.is_finite() { limit.clamp(0.0, 1e12) } else { 1.0 };
        let length = window.length.as_secs_f64().max(1e-6);
        let completed = window.completed as f64;
        Self {
            limit,
            held: limit.floor().max(1.0),
            length,
            completed,
            rate: completed / length,
            in_flight: window.most_in_flight.into(),
            kind: window.kind,
            saturated: window.refused > 0,
            overload: 1.0 + window.refused as f64 / completed.max(1.0),
        }
    }

    /// A latency in seconds, if that and the window can be true.
    pub(super) fn latency(&self, latency: Option<Duration>) -> Option<f64> {
        let is_window = self.length >= 0.001 && self.completed >= 1.0;
        let seconds = latency.map(|latency| latency.as_secs_f64());
        seconds.filter(|seconds| is_window && *seconds > 0.0 && *seconds < 1e5)
    }

    /// Whether enough was in progress to learn from: half of what the limit allows.
    pub(super) fn is_used(&self) -> bool {
        self.saturated || self.in_flight * 2.0 >= self.limit
    }

    /// Whether the limit is one on calls per second, of which nobody counts how many are in flight.
    pub(super) fn is_rate(&self) -> bool {
        self.kind == LimitKind::Rate
    }

    /// By how much rate and mean latency of this window may differ from the truth by chance, and at
    /// least so much.
    pub(super) fn noise(&self, least: f64) -> f64 {
        (2.0 / self.completed.max(1.0)).sqrt().clamp(least, 0.25)
    }
}

/// A limit, and how many calls were completed per second under it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mark {
    pub(super) limit: f64,
    pub(super) rate: f64,
}

/// Calls that were in flight when the limit was moved, and tell of the limit before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct InTransit {
    calls: f64,
    windows: u32,
}

impl InTransit {
    /// For how many windows they are waited for. A latency of more than a minute is no longer one
    /// that a limit could follow.
    const LONGEST: u32 = 60;

    /// The limit was moved after this window.
    pub(super) fn moved(&mut self, seen: &Seen) {
        *self = Self { calls: seen.in_flight, windows: 0 };
    }

    /// Whether a window is mostly about the present limit, and counts down if not. With a latency
    /// above a window's length it takes several windows until one is.
    pub(super) fn has_passed(&mut self, seen: &Seen) -> bool {
        let passed = self.calls * 4.0 <= seen.completed || self.windows >= Self::LONGEST;
        self.calls = (self.calls - seen.completed).max(0.0);
        self.windows = self.windows.saturating_add(1);
        passed
    }

    /// Whether they raise the mean latency of a window by more than a tenth of `base`. They took as
    /// long as calls did before, under a limit that was perhaps much higher.
    pub(super) fn blurs(self, seen: &Seen, before: &Mark, base: f64) -> bool {
        let latency = before.limit / before.rate.max(1e-9);
        self.windows < Self::LONGEST && self.calls * latency > 0.1 * base * seen.completed
    }
}
