//! Permits of concurrency limits that requests hold.

use std::sync::Arc;

use spillgate::Decision;
use spillgate_policy::store::{Outage, Permits, Spend, Usage};
use spillgate_policy::{Error, Key};

use super::RedisStore;
use super::limits::{Limit, RedisLimits, limit_error, store_error};
use crate::backend::{Backend, BackendError, Fault};
use crate::flow::of_limit;
use crate::hold::{HeldLimit, HoldRequest, Taken};

impl<B: Backend> RedisStore<B> {
    /// Takes all permits, or none if an enforced limit denies them. In shadow mode neither a denial
    /// nor a failure counts, and the permits are held all the same.
    pub(super) async fn hold_all(
        &self,
        limits: &RedisLimits,
        spends: &mut [Spend],
        permits: &mut Permits,
    ) -> Result<(), Error> {
        let (mut taken, mut shadow_error) = (Permits::new(), None);
        for index in 0..spends.len() {
            let limit = limits.limit(spends[index].limit);
            let Some(request) = hold_request(limit, &spends[index]) else { continue };
            let taking = of_limit(limit.id(), self.holds.take(&request));
            let held = match taking.await {
                Ok(held) => Some(held),
                Err(why) if request.is_shadow => {
                    shadow_error.get_or_insert(why);
                    None
                }
                Err(why) => self.hold_in_outage(limit, &request, why).inspect_err(|_| {
                    spends.iter_mut().for_each(|spend| spend.decision = None);
                })?,
            };
            let is_denied = record(&mut spends[index], held, &request, &mut taken);
            if is_denied && !request.is_shadow {
                drop(taken);
                self.peek_others(limits, spends, index);
                return Ok(());
            }
        }
        permits.extend(taken);
        shadow_error.map_or(Ok(()), |why| Err(store_error(why)))
    }

    /// Decides again about those that are not the one that was denied: what was taken is returned,
    /// so their decisions say what there is now.
    fn peek_others(&self, limits: &RedisLimits, spends: &mut [Spend], denied: usize) {
        for (_, spend) in spends.iter_mut().enumerate().filter(|(index, _)| *index != denied) {
            spend.decision = self.peek_permits(limits.limit(spend.limit), spend);
        }
    }

    /// The same without a call to Redis, if that can be decided here and now.
    pub(super) fn hold_all_now(
        &self,
        limits: &RedisLimits,
        spends: &mut [Spend],
        permits: &mut Permits,
    ) -> bool {
        let mut taken = Permits::new();
        for index in 0..spends.len() {
            let limit = limits.limit(spends[index].limit);
            let Some(request) = hold_request(limit, &spends[index]) else { continue };
            let Some(held) = self.holds.try_take(&request) else {
                spends.iter_mut().for_each(|spend| spend.decision = None);
                return false;
            };
            let is_denied = record(&mut spends[index], Some(held), &request, &mut taken);
            if is_denied && !request.is_shadow {
                drop(taken);
                self.peek_others(limits, spends, index);
                return true;
            }
        }
        permits.extend(taken);
        true
    }

    /// Permits that Redis could not be asked for, by the `outage` of their limit. `None` if they
    /// are not decided about, and the request passes.
    fn hold_in_outage(
        &self,
        limit: &Limit,
        request: &HoldRequest,
        why: BackendError,
    ) -> Result<Option<Taken>, Error> {
        let counters = &self.core.counters;
        if why.fault() == Fault::Overloaded {
            return Err(store_error(why));
        }
        let HoldRequest { limit: held, name, count, permits, .. } = request;
        match limit.outage {
            Outage::Local => {
                counters.outage_local.add(1);
                // At least one: with more nodes than permits, all together may exceed the limit.
                let share = (*permits / self.core.nodes()).max(1).min(*permits);
                let local = self.core.local();
                Ok(Some(match held.in_flight.try_acquire_within(name, *count, share) {
                    Ok(permit) => {
                        let before = permit.in_flight().saturating_sub(*count);
                        let decision = Decision::of_hold(share, before, *count, local);
                        Taken { decision, permit: Some(permit) }
                    }
                    Err(busy) => {
                        let decision = Decision::of_busy(share, &busy, *count, local);
                        Taken { decision, permit: None }
                    }
                }))
            }
            Outage::Open => {
                counters.outage_open.add(1);
                Ok(None)
            }
            _ => {
                counters.outage_closed.add(1);
                Err(limit_error(limit.name(), &why))
            }
        }
    }

    /// How many permits a caller has left, as far as this node knows.
    pub(super) fn peek_permits(&self, limit: &Limit, spend: &Spend) -> Option<Decision> {
        let HoldRequest { limit, name, count, permits, .. } = hold_request(limit, spend)?;
        let in_flight = self.holds.in_flight(&limit, &name);
        Some(Decision::peek_hold(permits, in_flight, count, self.core.local()))
    }

    /// Sets or removes the number of permits of a caller, on this node: others are told by edits.
    pub(super) fn override_permits(limit: &Limit, key: &Key, permits: Option<u32>) -> bool {
        let held = limit.hold.as_ref();
        held.iter().for_each(|held| held.set_override(limit.caller(key), permits));
        held.is_some()
    }

    /// Permits in flight on this node, and those that expired.
    pub(super) fn permit_usage(limit: &Limit) -> Option<Usage> {
        let held: &HeldLimit = limit.hold.as_deref()?;
        let mut usage = Usage::default();
        usage.callers = held.in_flight.active_keys() as u64;
        usage.held = held.in_flight.total_in_flight();
        usage.expired = held.expired();
        Some(usage)
    }
}

/// The permits that a spend needs; `None` if its limit is not on concurrency.
pub(super) fn hold_request(limit: &Limit, spend: &Spend) -> Option<HoldRequest> {
    let held = limit.hold.as_ref()?;
    let name = limit.caller(&spend.key);
    let permits = held.own(&name).unwrap_or_else(|| limit.permits(&spend.key));
    let count = u32::try_from(spend.cost).unwrap_or(u32::MAX);
    let is_shadow = spend.is_shadow;
    Some(HoldRequest { limit: Arc::clone(held), name, count, permits, is_shadow })
}

/// Notes what a spend got. Returns whether it was denied.
fn record(
    spend: &mut Spend,
    held: Option<Taken>,
    request: &HoldRequest,
    taken: &mut Permits,
) -> bool {
    let Some(Taken { decision, permit }) = held else {
        // Not decided: it counts as in flight, so that it is known when Redis answers again.
        let HoldRequest { limit, name, count, .. } = request;
        taken.push(limit.in_flight.acquire_beyond(name, *count));
        return false;
    };
    spend.decision = Some(decision);
    taken.extend(permit);
    decision.is_denied()
}
