//! Permits that programs elsewhere hold, with an expiry.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use spillgate::{Permit, Timestamp};

use super::PermitId;
use super::holds::LimitPermits;
use crate::Error;

/// Permits that programs elsewhere hold, by their ids.
#[derive(Default)]
pub(super) struct AcquiredPermits {
    held: Mutex<Acquired>,
    /// When the first of them expires, in nanoseconds; [`NEVER`] if there are none. So that a
    /// denial need not take the lock.
    earliest: AtomicU64,
}

/// Of nothing that expires.
const NEVER: u64 = 0;

/// How many may be held at once: about 200 bytes each.
const MOST_ACQUIRED: usize = 1_000_000;

#[derive(Default)]
struct Acquired {
    by_id: HashMap<[u8; 32], AcquiredPermit>,
    /// The first to expire comes first.
    by_expiry: BTreeSet<(Timestamp, [u8; 32])>,
}

struct AcquiredPermit {
    permit: Permit,
    expiry: Timestamp,
    of: Arc<LimitPermits>,
}

impl AcquiredPermits {
    /// Keeps a permit until it is released, or expires `ttl` from now.
    pub(super) fn keep(
        &self,
        permit: Permit,
        of: &Arc<LimitPermits>,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<PermitId, Error> {
        let expiry = now + ttl;
        let mut id = [0; 32];
        getrandom::fill(&mut id).map_err(|why| Error::store(format!("no random bytes: {why}")))?;
        let mut held = self.lock();
        if held.by_id.len() >= MOST_ACQUIRED {
            // Nothing else may have looked for them: neither a denial nor a scrape.
            self.expire(&mut held, now);
        }
        if held.by_id.len() >= MOST_ACQUIRED {
            return Err(Error::full(format!(
                "{MOST_ACQUIRED} acquired permits are held; release some, or let them expire"
            )));
        }
        held.by_id.insert(id, AcquiredPermit { permit, expiry, of: Arc::clone(of) });
        held.by_expiry.insert((expiry, id));
        self.note_earliest(&held);
        Ok(PermitId(id))
    }

    /// Lets a permit expire later, or earlier. False if it is not held any more.
    pub(super) fn renew(&self, id: PermitId, now: Timestamp, ttl: Duration) -> bool {
        let mut held = self.lock();
        self.expire(&mut held, now);
        let Some(kept) = held.by_id.get_mut(&id.0) else { return false };
        let before = std::mem::replace(&mut kept.expiry, now + ttl);
        held.by_expiry.remove(&(before, id.0));
        held.by_expiry.insert((now + ttl, id.0));
        self.note_earliest(&held);
        true
    }

    /// Gives a permit back. False if it is not held any more.
    pub(super) fn release(&self, id: PermitId, now: Timestamp) -> bool {
        let mut held = self.lock();
        self.expire(&mut held, now);
        let Some(kept) = held.by_id.remove(&id.0) else { return false };
        held.by_expiry.remove(&(kept.expiry, id.0));
        self.note_earliest(&held);
        true
    }

    /// Returns what has expired. True if there was something.
    pub(super) fn return_expired(&self, now: Timestamp) -> bool {
        // Acquire: pairs with the release of whoever kept the permit that expires first.
        let earliest = self.earliest.load(Ordering::Acquire);
        if earliest == NEVER || earliest > now.as_nanos() {
            return false;
        }
        let mut held = self.lock();
        self.expire(&mut held, now)
    }

    fn expire(&self, held: &mut Acquired, now: Timestamp) -> bool {
        let mut any = false;
        while let Some((expiry, id)) = held.by_expiry.first().copied() {
            if expiry > now {
                break;
            }
            any = true;
            held.by_expiry.remove(&(expiry, id));
            let Some(kept) = held.by_id.remove(&id) else { continue };
            kept.of.count_expired(&kept.permit);
        }
        self.note_earliest(held);
        any
    }

    fn note_earliest(&self, held: &Acquired) {
        let earliest = held.by_expiry.first().map_or(NEVER, |(expiry, _)| expiry.as_nanos().max(1));
        self.earliest.store(earliest, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Acquired> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
