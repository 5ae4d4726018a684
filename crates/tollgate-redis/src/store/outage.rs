//! Deciding while the engine cannot be asked.

use smallvec::SmallVec;
use tollgate_policy::store::{Charge, Outage, Store};
use tollgate_policy::{Error, Key};

use super::RedisStore;
use super::ask::Asked;
use super::decide::Call;
use super::limits::{RedisLimits, refused};
use super::local::local_charge;
use crate::engine::Engine;

impl<E: Engine> RedisStore<E> {
    /// Decides about what the engine could not be asked for. Tells whether the call passes;
    /// if it does not, what was spent at the engine is taken back, if it can be: for that
    /// the call does not wait, since the engine may not answer.
    ///
    /// # Errors
    ///
    /// If one of the limits is closed.
    pub(super) async fn pass_outage(&self, call: &mut Call<'_>) -> Result<bool, Error> {
        let Some(why) = &call.failure else { return Ok(true) };
        let unheard = |asked: &&Asked| !asked.is_shadow && asked.heard.is_none();
        let failed: SmallVec<[&Asked; 2]> =
            call.asked.iter().filter(unheard).chain(&call.failed).collect();
        let counters = &self.core.counters;
        let is_closed = |asked: &&&Asked| asked.caller.limit.outage == Outage::Closed;
        let closed = failed.iter().find(is_closed);
        if let Some(error) = closed.map(|closed| refused(closed.caller.limit.name(), why)) {
            drop(failed);
            counters.outage_closed.add(1);
            self.core.undo_later(&call.asked);
            self.undo_leases(call);
            call.charges.iter_mut().for_each(|charge| charge.decision = None);
            return Err(error);
        }
        let mut own = SmallVec::<[Charge; 2]>::new();
        let mut places = SmallVec::<[usize; 2]>::new();
        let nodes = self.core.assumed_nodes();
        for asked in &failed {
            let charge = &call.charges[asked.charge];
            if let Some(local) = local_charge(call.limits, charge, nodes) {
                self.follow_override(call.limits, asked, &charge.key).await?;
                own.push(local);
                places.push(asked.charge);
            }
        }
        counters.outage_local.add(own.len());
        counters.outage_open.add(failed.len() - own.len());
        let local = &call.limits.local;
        local.memory.decide(&local.among(nodes), &mut own).await?;
        for (place, decided) in places.into_iter().zip(&own) {
            call.charges[place].decision = decided.decision;
        }
        let is_denied = |charge: &Charge| charge.decision.is_some_and(|it| it.is_denied());
        let passes = !own.iter().any(is_denied);
        if !passes {
            self.core.undo_later(&call.asked);
        }
        Ok(passes)
    }

    /// Gives a caller the share of what it was last known to be given at run time.
    async fn follow_override(
        &self,
        limits: &RedisLimits,
        asked: &Asked,
        key: &Key,
    ) -> Result<(), Error> {
        let limit = &asked.caller.limit;
        let (Some(place), Some(given)) = (limit.local, self.core.given.last(asked.caller.name))
        else {
            return Ok(());
        };
        // If that was taken away, what the policy gives it counts again.
        let counted = given.or_else(|| limit.configured(key).copied());
        let quota = counted.map(|counted| counted.quota);
        limits.local.set_override(place, key, quota, self.core.assumed_nodes()).await
    }
}
