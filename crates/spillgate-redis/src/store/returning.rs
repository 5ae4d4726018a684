use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use spillgate::Timestamp;

use crate::backend::{BackendError, Fault};

/// Where Redis was away until a moment ago, by slot.
///
/// Not all nodes can ask it again at once, and what they have admitted by themselves is not charged
/// before. So a node goes on to admit no more than its share, although Redis answers, until all
/// have had time to charge it.
#[derive(Debug, Default)]
pub(super) struct Returning {
    /// When Redis could not be asked last, in nanoseconds; 0 if never. Calls read only this while all
    /// is well.
    latest: AtomicU64,
    slots: Mutex<HashMap<u16, Timestamp>>,
}

/// Longer than nodes take to connect again, one attempt after the other, and to charge.
pub(super) const RETURN: Duration = Duration::from_secs(1);

impl Returning {
    /// Notes that a slot could not be asked for. A single call that was not answered is no outage:
    /// what was decided without it is a few requests.
    pub(super) fn note(&self, why: &BackendError, slot: u16, local: Timestamp) {
        let is_away = match why.fault() {
            Fault::TimedOut => !why.is_unanswered(),
            Fault::Unreachable | Fault::Unready | Fault::Refused | Fault::Misconfigured => true,
            _ => false,
        };
        if is_away {
            self.slots().insert(slot, local);
            // Relaxed: a call that sees it late was made at the same time.
            self.latest.store(local.as_nanos(), Ordering::Relaxed);
        }
    }

    /// True if Redis was away anywhere.
    pub(super) fn is_any(&self, local: Timestamp) -> bool {
        let latest = self.latest.load(Ordering::Relaxed);
        latest > 0 && is_lately(Timestamp::from_nanos(latest), local)
    }

    /// True if a slot was away.
    pub(super) fn has(&self, slot: u16, local: Timestamp) -> bool {
        let mut slots = self.slots();
        slots.retain(|_, last| is_lately(*last, local));
        slots.contains_key(&slot)
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<u16, Timestamp>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_lately(last: Timestamp, local: Timestamp) -> bool {
    local.since(last) < RETURN
}
