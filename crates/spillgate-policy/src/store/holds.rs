//! Permits of limits on concurrency, in the memory of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use spillgate::{Clock, Concurrency, Decision, KeyedState, Permit, Timestamp};

use super::memory::{Held, Memory, MemoryLimits, counts_otherwise};
use super::{LimitSpec, PermitId, Permits, Spend, Usage};
use crate::{Error, Key};

/// The permits of one limit. It outlives policies: the next one with a limit of the same name
/// that counts the same things counts the same holders.
pub(super) struct LimitPermits {
    held: Concurrency<Key>,
    /// Permits that expired before they were released.
    expired: AtomicU64,
}

/// What became of an attempt to take permits.
struct Taken {
    decision: Decision,
    /// `None` if it is denied, or was only a peek.
    permit: Option<Permit>,
}

impl LimitPermits {
    pub(super) fn new(spec: &LimitSpec, hasher: KeyedState) -> Arc<Self> {
        // How many permits a key has is said when they are taken.
        let held = Concurrency::builder(u32::MAX).capacity(spec.capacity).hasher(hasher).build();
        Arc::new(Self { held, expired: AtomicU64::new(0) })
    }

    /// Makes room for as many keys as the limit of the next policy says.
    pub(super) fn resize(&self, spec: &LimitSpec) {
        self.held.set_capacity(spec.capacity);
    }

    /// Takes permits under a limit of so many, or beyond it in shadow mode.
    fn take(&self, spend: &Spend, limit: u32, now: Timestamp) -> Taken {
        let count = count(spend);
        if count == 0 {
            return Taken { decision: self.peek(spend, limit, now), permit: None };
        }
        match self.held.try_acquire_within(&spend.key, count, limit) {
            Ok(permit) => {
                let before = permit.in_flight().saturating_sub(count);
                let decision = Decision::of_hold(limit, before, count, now);
                Taken { decision, permit: Some(permit) }
            }
            Err(busy) => {
                let beyond = || self.held.acquire_beyond(&spend.key, count);
                let decision = Decision::of_busy(limit, &busy, count, now);
                Taken { decision, permit: spend.is_shadow.then(beyond) }
            }
        }
    }

    /// What [`take`](Self::take) would answer.
    fn peek(&self, spend: &Spend, limit: u32, now: Timestamp) -> Decision {
        Decision::peek_hold(limit, self.held.in_flight(&spend.key), count(spend), now)
    }

    /// True if nobody holds a permit.
    pub(super) fn is_idle(&self) -> bool {
        self.held.active_keys() == 0
    }

    pub(super) fn usage(&self) -> Usage {
        Usage {
            callers: self.held.active_keys() as u64,
            held: self.held.total_in_flight(),
            // Relaxed: a count orders nothing.
            expired: self.expired.load(Ordering::Relaxed),
            ..Usage::default()
        }
    }

    /// Notes that a permit expires before it was released.
    pub(super) fn count_expired(&self, permit: &Permit) {
        self.expired.fetch_add(permit.count().into(), Ordering::Relaxed);
    }
}

/// The permits of a request, in what the library counts.
fn count(spend: &Spend) -> u32 {
    u32::try_from(spend.cost).unwrap_or(u32::MAX)
}

impl<C: Clock + Clone> Memory<C> {
    /// The permits of a limit on concurrency: those that an earlier policy has counted, if it had
    /// such a limit or had removed it while they were held.
    pub(super) fn permits(
        &self,
        spec: &LimitSpec,
        old: Option<&MemoryLimits<C>>,
    ) -> Option<Arc<LimitPermits>> {
        spec.hold?;
        let earlier = old.and_then(|old| {
            let mut all = old.permits();
            all.find(|(old, _)| old.name == spec.name && !counts_otherwise(old, spec))
        });
        Some(match earlier {
            Some((_, earlier)) => Arc::clone(earlier),
            None => LimitPermits::new(spec, self.hasher),
        })
    }
}

impl<C> MemoryLimits<C> {
    /// The permits of limits on concurrency: those in force, then those that are gone.
    fn permits(&self) -> impl Iterator<Item = (&LimitSpec, &Arc<LimitPermits>)> {
        let held = self.held.iter().filter_map(|held| Some((&*held.spec, held.permits.as_ref()?)));
        held.chain(self.removed_permits.iter().map(|(spec, permits)| (&**spec, permits)))
    }

    /// Those that the next policy has no limit for, and that somebody holds.
    pub(super) fn removed_permits(
        &self,
        next: &[Held<C>],
    ) -> Vec<(Box<LimitSpec>, Arc<LimitPermits>)> {
        let stays = |permits: &Arc<LimitPermits>| {
            let mut next = next.iter().filter_map(|held| held.permits.as_ref());
            next.any(|next| Arc::ptr_eq(next, permits))
        };
        let gone = self.permits().filter(|(_, permits)| !permits.is_idle() && !stays(permits));
        gone.map(|(spec, permits)| (Box::new(spec.clone()), Arc::clone(permits))).collect()
    }
}

/// The limit of a spend, if it is on concurrency.
struct Holding<'l> {
    permits: &'l Arc<LimitPermits>,
    limit: u32,
}

impl<C: Clock> Held<C> {
    /// The permits of a limit on concurrency, and how many a key has: by its override, its tier,
    /// or the limit.
    fn holding(&self, key: &Key) -> Result<Holding<'_>, Error> {
        let Some(permits) = &self.permits else {
            let name = &self.spec.name;
            return Err(Error::store(format!("limit {name:?} is not on concurrency")));
        };
        let limit = self.limiter.peek_n(key, 0).limit();
        Ok(Holding { permits, limit: u32::try_from(limit).unwrap_or(u32::MAX) })
    }
}

impl<C: Clock + Clone> MemoryLimits<C> {
    /// See [`Store::hold`](super::Store::hold).
    pub(super) fn hold(
        &self,
        spends: &mut [Spend],
        permits: &mut Permits,
        now: Timestamp,
    ) -> Result<(), Error> {
        let before = permits.len();
        let mut is_denied = false;
        for spend in spends.iter_mut() {
            if is_denied {
                spend.decision = Some(self.peek_hold(spend, now)?);
                continue;
            }
            let taken = self.take(spend, now)?;
            is_denied = taken.permit.is_none() && taken.decision.is_denied();
            spend.decision = Some(taken.decision);
            permits.extend(taken.permit);
        }
        if is_denied {
            permits.truncate(before);
            // What was taken is returned: the decisions say what there is now.
            for spend in spends.iter_mut().filter(|spend| spend.is_allowed()) {
                spend.decision = Some(self.peek_hold(spend, now)?);
            }
        }
        Ok(())
    }

    fn take(&self, spend: &Spend, now: Timestamp) -> Result<Taken, Error> {
        let Holding { permits, limit } = self.held[spend.limit].holding(&spend.key)?;
        let taken = permits.take(spend, limit, now);
        // What has expired is looked for only before somebody is denied.
        if taken.decision.is_denied() && self.acquired.return_expired(now) {
            drop(taken);
            return Ok(permits.take(spend, limit, now));
        }
        Ok(taken)
    }

    /// What [`hold`](Self::hold) would answer.
    pub(super) fn peek_hold(&self, spend: &Spend, now: Timestamp) -> Result<Decision, Error> {
        self.acquired.return_expired(now);
        let Holding { permits, limit } = self.held[spend.limit].holding(&spend.key)?;
        Ok(permits.peek(spend, limit, now))
    }

    /// See [`Store::acquire`](super::Store::acquire).
    pub(super) fn acquire(
        &self,
        spend: &Spend,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<(Decision, Option<PermitId>), Error> {
        let Taken { decision, permit } = self.take(spend, now)?;
        let Some(permit) = permit else { return Ok((decision, None)) };
        let Holding { permits, .. } = self.held[spend.limit].holding(&spend.key)?;
        let id = self.acquired.keep(permit, permits, now, ttl)?;
        Ok((decision, Some(id)))
    }
}
