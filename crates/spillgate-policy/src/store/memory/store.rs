//! The store: opened and reopened for each policy.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use smallvec::SmallVec;
use spillgate::{Clock, Decision, Quota, Settled, Timestamp};

use super::{Held, Kept, Memory, MemoryLimits, pin, refused};
use crate::store::{
    BanRule, BanStart, LimitSpec, PermitId, Permits, Spend, Store, StrikeCall, Usage,
};
use crate::{Error, Key};

impl<C: Clock + Clone + 'static> Store for Memory<C> {
    type Limits = MemoryLimits<C>;

    fn is_in_process(&self) -> bool {
        true
    }

    fn open(&self, limits: &[LimitSpec]) -> Result<Self::Limits, Error> {
        let open = |spec| {
            let permits = self.permits(spec, None);
            Held::new(spec, Kept { permits, ..self.build(spec, None)? }, None)
        };
        let held = limits.iter().map(open).collect::<Result<_, _>>()?;
        Ok(MemoryLimits {
            held,
            removed: Mutex::default(),
            acquired: Arc::default(),
            removed_permits: Vec::new(),
            strikes: Arc::default(),
        })
    }

    fn reopen(
        &self,
        old_limits: &Self::Limits,
        limits: &[LimitSpec],
    ) -> Result<Self::Limits, Error> {
        // What can fail comes first, before a limiter that is in use is changed.
        let mut limiters = Vec::with_capacity(limits.len());
        let named: HashMap<_, _> =
            old_limits.held.iter().map(|held| (held.spec.name.as_str(), held)).collect();
        for spec in limits {
            let old = named.get(spec.name.as_str()).copied();
            let old = old.filter(|held| !held.counts_otherwise(spec));
            let limiter = match old {
                Some(old) if old.is_built_like(spec) => {
                    Kept { limiter: Arc::clone(&old.limiter), permits: None }
                }
                old => self.build(spec, old)?,
            };
            let limiter = Kept { permits: self.permits(spec, Some(old_limits)), ..limiter };
            limiters.push((spec, limiter, old.map(|old| &*old.spec)));
        }
        let now = self.clock.now();
        let mut removed = old_limits.removed().clone();
        let stays: HashSet<_> = limiters
            .iter()
            .filter_map(|(spec, _, earlier)| earlier.map(|_| spec.name.as_str()))
            .collect();
        let is_gone = |held: &&Held<C>| !stays.contains(held.spec.name.as_str());
        // Permits are not spent: they come back by themselves.
        let words = |held: &&Held<C>| held.permits.is_none();
        for gone in old_limits.held.iter().filter(is_gone).filter(words) {
            removed.keep(gone.save(), now, now);
        }
        let reopen = |(spec, limiter, earlier): (_, _, Option<_>)| {
            let held = Held::new(spec, limiter, earlier)?;
            let has_words = earlier.is_none() && spec.hold.is_none();
            let back = if has_words { removed.take(spec, now) } else { None };
            back.iter().for_each(|saved| held.restore(saved, now));
            Ok(held)
        };
        let held: Vec<_> = limiters.into_iter().map(reopen).collect::<Result<_, Error>>()?;
        held.iter().for_each(|held| held.permits.iter().for_each(|it| it.resize(&held.spec)));
        Ok(MemoryLimits {
            removed_permits: old_limits.removed_permits(&held),
            acquired: Arc::clone(&old_limits.acquired),
            removed: Mutex::new(removed),
            strikes: Arc::clone(&old_limits.strikes),
            held,
        })
    }

    async fn decide(&self, limits: &Self::Limits, spends: &mut [Spend]) -> Result<(), Error> {
        limits.decide(spends, self.clock.now());
        Ok(())
    }

    #[inline]
    fn decide_now(&self, limits: &Self::Limits, spends: &mut [Spend]) -> Option<Result<(), Error>> {
        limits.decide(spends, self.clock.now());
        Some(Ok(()))
    }

    fn prefetch(&self, limits: &Self::Limits, limit: usize, keys: impl Iterator<Item = Key>) {
        let limiter = &limits.held[limit].limiter;
        // All are known before the first is loaded, so that no load waits for a hash.
        let clients: SmallVec<[_; 16]> = keys.map(|key| limiter.fingerprint(&key)).collect();
        clients.iter().for_each(|client| limiter.table().prefetch(*client));
    }

    async fn peek(&self, limits: &Self::Limits, spend: &Spend) -> Result<Decision, Error> {
        let now = self.clock.now();
        match limits.held[spend.limit].permits {
            Some(_) => limits.peek_hold(spend, now),
            None => Ok(limits.peek(spend, spend.cost)),
        }
    }

    async fn settle(
        &self,
        limits: &Self::Limits,
        spend: &Spend,
        actual: u64,
    ) -> Result<Settled, Error> {
        let (limiter, key, bucket) = (limits.limiter(spend), &spend.key, spend.bucket());
        if let Some(spent) = spend.decision.and_then(|decision| decision.spent()) {
            return Ok(limiter.settle(limiter.reservation(key, bucket, spent), actual));
        }
        let missing = actual.saturating_sub(spend.cost);
        let unused = spend.cost.saturating_sub(actual);
        match bucket {
            None if missing > 0 => return Ok(limiter.debit_n(key, missing)),
            None => limiter.refund_n(key, unused),
            Some(bucket) if missing > 0 => return Ok(limiter.debit_with(key, bucket, missing)),
            Some(bucket) => limiter.refund_with(key, bucket, unused),
        }
        Ok(Settled { left: limits.peek(spend, 0), uncharged: 0 })
    }

    fn cancel(&self, limits: &Self::Limits, spend: Spend) {
        limits.cancel(spend);
    }

    async fn reset(&self, limits: &Self::Limits, limit: usize, key: &Key) -> Result<(), Error> {
        limits.held[limit].limiter.reset(key);
        Ok(())
    }

    async fn set_override(
        &self,
        limits: &Self::Limits,
        limit: usize,
        key: &Key,
        quota: Option<Quota>,
        until: Option<Timestamp>,
    ) -> Result<(), Error> {
        let Held { spec, limiter, .. } = &limits.held[limit];
        match quota {
            Some(quota) => pin(limiter, key, quota, until).map_err(|why| refused(spec, &why)),
            None => {
                limiter.remove_override(key);
                Ok(())
            }
        }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn hold(
        &self,
        limits: &Self::Limits,
        spends: &mut [Spend],
        permits: &mut Permits,
    ) -> Result<(), Error> {
        limits.hold(spends, permits, self.clock.now())
    }

    fn hold_now(
        &self,
        limits: &Self::Limits,
        spends: &mut [Spend],
        permits: &mut Permits,
    ) -> Option<Result<(), Error>> {
        Some(limits.hold(spends, permits, self.clock.now()))
    }

    async fn acquire(
        &self,
        limits: &Self::Limits,
        spend: &Spend,
        ttl: Duration,
    ) -> Result<(Decision, Option<PermitId>), Error> {
        limits.acquire(spend, ttl, self.clock.now())
    }

    async fn renew(
        &self,
        limits: &Self::Limits,
        id: PermitId,
        ttl: Duration,
    ) -> Result<bool, Error> {
        Ok(limits.acquired.renew(id, self.clock.now(), ttl))
    }

    async fn release(&self, limits: &Self::Limits, id: PermitId) -> Result<bool, Error> {
        Ok(limits.acquired.release(id, self.clock.now()))
    }

    async fn strike(
        &self,
        limits: &Self::Limits,
        limit: usize,
        key: &Key,
        rule: &BanRule,
        call: StrikeCall,
    ) -> Result<Option<BanStart>, Error> {
        let caller = limits.offender(limit, key, &self.hasher);
        Ok(limits.strikes.strike(caller, rule, call, self.clock.now()))
    }

    async fn forgive(&self, limits: &Self::Limits, limit: usize, key: &Key) -> Result<(), Error> {
        limits.strikes.forgive(limits.offender(limit, key, &self.hasher));
        Ok(())
    }

    fn usage(&self, limits: &Self::Limits, limit: usize) -> Option<Usage> {
        limits.removed().forget(self.clock.now());
        let Held { limiter, permits, .. } = &limits.held[limit];
        if let Some(permits) = permits {
            limits.acquired.return_expired(self.clock.now());
            return Some(permits.usage());
        }
        let callers = limiter.active_callers() as u64;
        Some(Usage { callers, evictions: limiter.evictions(), ..Usage::default() })
    }
}
