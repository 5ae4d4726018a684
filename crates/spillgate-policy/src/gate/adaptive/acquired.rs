//! Permits of adaptive limits which programs elsewhere hold, with an expiry.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use spillgate::Timestamp;
use spillgate::adaptive::Ending;

use super::decision::LivePermit;
use super::live::LiveLimit;
use crate::Error;
use crate::store::PermitId;

/// How many may be held at once: about 300 bytes each.
const MOST_ACQUIRED: usize = 1_000_000;

/// Permits that programs elsewhere hold, by their ids.
#[derive(Default)]
pub(in crate::gate) struct AcquiredCalls {
    held: Mutex<Calls>,
    /// How many there are. Relaxed: it only saves the lock while there are none.
    count: AtomicUsize,
}

#[derive(Default)]
struct Calls {
    by_id: HashMap<[u8; 32], Call>,
    /// The first to expire comes first.
    by_expiry: BTreeSet<(Timestamp, [u8; 32])>,
}

struct Call {
    limit: Arc<LiveLimit>,
    permit: LivePermit,
    since: Timestamp,
    expiry: Timestamp,
}

impl AcquiredCalls {
    /// Keeps a permit until it is released, or expires `ttl` from now.
    pub(super) fn keep(
        &self,
        limit: &Arc<LiveLimit>,
        permit: LivePermit,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<PermitId, Error> {
        let (limit, expiry) = (Arc::clone(limit), now + ttl);
        let mut id = [0; 32];
        getrandom::fill(&mut id).map_err(|why| Error::store(format!("no random bytes: {why}")))?;
        let mut held = self.lock();
        self.expire(&mut held, now);
        if held.by_id.len() >= MOST_ACQUIRED {
            return Err(Error::full(format!(
                "{MOST_ACQUIRED} acquired permits are held; release some, or let them expire"
            )));
        }
        held.by_id.insert(id, Call { limit, permit, since: now, expiry });
        held.by_expiry.insert((expiry, id));
        self.note_count(&held);
        Ok(PermitId(id))
    }

    /// Lets a permit expire later, or earlier. False if it is not held any more.
    pub(in crate::gate) fn renew(&self, id: PermitId, now: Timestamp, ttl: Duration) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut held = self.lock();
        self.expire(&mut held, now);
        let Some(call) = held.by_id.get_mut(&id.0) else { return false };
        let before = std::mem::replace(&mut call.expiry, now + ttl);
        held.by_expiry.remove(&(before, id.0));
        held.by_expiry.insert((now + ttl, id.0));
        true
    }

    /// Gives a permit back, and notes how its call ended, if that is said. False if it is not held
    /// any more.
    pub(super) fn release(&self, id: PermitId, ending: Option<Ending>, now: Timestamp) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut held = self.lock();
        self.expire(&mut held, now);
        let Some(call) = held.by_id.remove(&id.0) else { return false };
        held.by_expiry.remove(&(call.expiry, id.0));
        self.note_count(&held);
        drop(held);
        // If time went back, nobody knows how long it took.
        if let Some(ending) = ending.filter(|_| now >= call.since) {
            call.limit.record_held(ending, now.since(call.since), now);
        }
        drop(call.permit);
        true
    }

    /// Returns what has expired. True if there was something.
    pub(super) fn return_expired(&self, now: Timestamp) -> bool {
        !self.is_empty() && self.expire(&mut self.lock(), now)
    }

    /// What has expired says nothing about the service, so it is no sample.
    fn expire(&self, held: &mut Calls, now: Timestamp) -> bool {
        let mut any = false;
        while let Some((expiry, id)) = held.by_expiry.first().copied() {
            if expiry > now {
                break;
            }
            any = true;
            held.by_expiry.remove(&(expiry, id));
            held.by_id.remove(&id).into_iter().for_each(|call| call.limit.count_expired());
        }
        self.note_count(held);
        any
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    fn note_count(&self, held: &Calls) {
        self.count.store(held.by_id.len(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
