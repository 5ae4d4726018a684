use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::LimitCore;
use crate::{Clock, SystemClock, Timestamp};

/// Held while a call is in flight. Dropped before the call's [ending](Self::record) is recorded,
/// the call was cancelled, and says nothing about the service.
///
/// It may outlive the limit that it came from.
#[must_use = "dropped, the call is no longer in flight"]
pub struct AdaptivePermit<C = SystemClock> {
    shared: Arc<LimitCore<C>>,
    since: Timestamp,
    is_recorded: bool,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ending {
    /// Well.
    Ok,
    /// Badly: the service failed, or was too slow.
    Failed,
}

impl<C> AdaptivePermit<C> {
    pub(super) fn new(shared: &Arc<LimitCore<C>>, since: Timestamp) -> Self {
        Self { shared: Arc::clone(shared), since, is_recorded: false }
    }
}

impl<C: Clock> AdaptivePermit<C> {
    /// Records how the call ended, and how long it took. The permit is held until it is dropped.
    /// Only the first record of a call counts.
    pub fn record(&mut self, ending: Ending) {
        self.record_at(ending, self.shared.clock.now());
    }

    /// [`record`](Self::record) at a given time. If that is before the call began, nobody knows how
    /// long it took, and nothing is recorded.
    pub fn record_at(&mut self, ending: Ending, now: Timestamp) {
        if now >= self.since {
            self.record_latency_at(ending, now.since(self.since), now);
        }
    }

    /// Records how the call ended with a latency measured otherwise, such as the time that it
    /// waited in a queue before.
    pub fn record_latency_at(&mut self, ending: Ending, latency: Duration, now: Timestamp) {
        self.shared.turn_if_due(now);
        if !std::mem::replace(&mut self.is_recorded, true) {
            self.shared.regulator.record(ending, latency, 1);
        }
    }
}

impl<C> Drop for AdaptivePermit<C> {
    fn drop(&mut self) {
        self.shared.in_flight.leave();
    }
}

impl<C> fmt::Debug for AdaptivePermit<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdaptivePermit")
            .field("since", &self.since)
            .field("is_recorded", &self.is_recorded)
            .finish_non_exhaustive()
    }
}

/// A call was refused, so that the service can serve the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shed {
    /// When to try again.
    pub retry_after: Duration,
}

impl Shed {
    pub(super) fn new() -> Self {
        // By then a step may have been taken. Nobody knows when a call in flight ends.
        Self { retry_after: Duration::from_secs(1) }
    }
}

impl fmt::Display for Shed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the service is at its limit")
    }
}

impl std::error::Error for Shed {}
