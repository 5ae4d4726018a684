//! What an adaptive limit decides, as other limits say it.

use std::time::Duration;

use spillgate::adaptive::{AdaptiveLimit, AdaptivePermit, Shed};
use spillgate::{Decision, ManualClock, Timestamp};

/// The permit of an adaptive limit.
pub(in crate::gate) type LivePermit = AdaptivePermit<ManualClock>;

/// A request goes ahead.
pub(in crate::gate) struct Taken {
    pub(in crate::gate) decision: Decision,
    pub(in crate::gate) permit: Option<LivePermit>,
}

/// A request does not go ahead.
pub(in crate::gate) struct Refusal {
    pub(in crate::gate) decision: Decision,
    pub(in crate::gate) retry_after: Duration,
}

impl From<Decision> for Taken {
    fn from(decision: Decision) -> Self {
        Self { decision, permit: None }
    }
}

/// The decision on a request that holds a permit.
pub(super) fn held(limit: &AdaptiveLimit<ManualClock>, now: Timestamp) -> Decision {
    let permits = limit.permits();
    // Since it was taken, others may have come, or the limit may have been lowered.
    let before = limit.in_flight().saturating_sub(1).min(permits - 1);
    Decision::of_hold(permits, before, 1, now)
}

/// The decision on a request that would hold one.
pub(super) fn would_hold(limit: &AdaptiveLimit<ManualClock>, now: Timestamp) -> Decision {
    let permits = limit.permits();
    Decision::peek_hold(permits, limit.in_flight().min(permits - 1), 1, now)
}

/// The decision on a request that does not go ahead, also if it is for its priority alone.
pub(super) fn busy(limit: &AdaptiveLimit<ManualClock>, shed: Shed, now: Timestamp) -> Refusal {
    let permits = limit.permits();
    let decision = Decision::of_hold(permits, limit.in_flight().max(permits), 1, now);
    Refusal { decision, retry_after: shed.retry_after }
}

/// A share counts nothing, so what it decides has no numbers that would mean something.
pub(super) fn let_through(now: Timestamp) -> Decision {
    Decision::peek_hold(1, 0, 1, now)
}

pub(super) fn not_let_through(shed: Shed, now: Timestamp) -> Refusal {
    Refusal { decision: Decision::of_hold(1, 1, 1, now), retry_after: shed.retry_after }
}

pub(super) fn decided(decision: Decision) -> Result<Decision, Refusal> {
    match decision.is_denied() {
        false => Ok(decision),
        true => {
            let retry_after = decision.retry_after().unwrap_or(LATER);
            Err(Refusal { decision, retry_after })
        }
    }
}

/// When to try again, if no waiting helps under the present limit.
const LATER: Duration = Duration::from_secs(1);
