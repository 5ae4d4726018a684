//! Adaptive limits, for programs elsewhere.

use std::sync::Arc;
use std::time::Duration;

use super::asked::Asked;
use super::decide::expect_cost;
use super::decision::Taken;
use super::live::LiveLimit;
use crate::Error;
use crate::gate::{Active, Answer, Gate, Outcome};
use crate::store::{PermitId, Spend, Store, Usage};

impl<S: Store> Gate<S> {
    /// Takes a permit for a program elsewhere, if an adaptive limit has one.
    pub(in crate::gate) fn acquire_live(
        &self,
        active: &Active<S::Limits>,
        live: &Arc<LiveLimit>,
        mut spend: Spend,
        ttl: Duration,
        outcome: &mut Outcome<'_>,
    ) -> Result<Option<PermitId>, Error> {
        expect_cost(&active.policy, &spend)?;
        let (now, asked) = (self.store.now(), Asked::by_name(&active.policy));
        active.adaptive.acquired.return_expired(now);
        let taken = match spend.is_shadow {
            true => Ok(live.take_beyond(&spend, asked.priority(), now)),
            false => live.take(&spend, asked.priority(), now),
        };
        match taken {
            Ok(Taken { decision, permit }) => {
                spend.decision = Some(decision);
                outcome.spends.push(spend);
                outcome.answer = Answer::Allowed;
                let keep = |permit| active.adaptive.acquired.keep(live, permit, now, ttl);
                permit.map(keep).transpose()
            }
            Err(refusal) => {
                let place = spend.limit;
                spend.decision = Some(refusal.decision);
                outcome.spends.push(spend);
                outcome.refuse_by_load(place, &asked, &refusal);
                Ok(None)
            }
        }
    }

    /// The usage of a limit; `None` if its callers are kept elsewhere, or nobody counts them.
    pub(in crate::gate) fn usage_of(
        &self,
        active: &Active<S::Limits>,
        place: usize,
    ) -> Option<Usage> {
        let Some(live) = active.adaptive.get(place) else {
            return self.store.usage(&active.limits, place);
        };
        active.policy.rules[place].has_permits().then(|| {
            active.adaptive.acquired.return_expired(self.store.now());
            let held = u64::from(live.in_flight());
            let callers = u64::from(held > 0);
            Usage { callers, held, expired: live.expired(), ..Usage::default() }
        })
    }
}
