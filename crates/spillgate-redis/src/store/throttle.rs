//! Buckets whose quota comes with each call.

use std::sync::Arc;
use std::time::Duration;

use spillgate::{AlgorithmKind, Decision, Quota};
use spillgate_policy::Error;
use spillgate_policy::store::CallQuota;

use super::RedisStore;
use super::core::Caller;
use super::limits::Limit;
use super::pending::PendingSpend;
use super::share::share_of;
use crate::Secret;
use crate::backend::{Backend, BackendError, Fault};
use crate::effective_quota::EffectiveQuota;
use crate::flow::of_limit;

/// How such buckets are kept: all that Redis has of one is the time at which it is full
/// again, whatever the quota of the next call.
pub(super) struct Throttled(Arc<Limit>);

/// What a node has of a bucket while Redis cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Its share of the quota.
    pub quota: Quota,
    /// For how long the bucket is not full yet, by what Redis last told of it.
    pub owed: Duration,
}

impl Throttled {
    pub(super) fn new(secret: &Secret) -> Result<Self, Error> {
        Ok(Self(Arc::new(Limit::throttled(secret)?)))
    }

    fn caller(&self, key: &[u8], quota: Quota) -> Result<Caller, BackendError> {
        let call = CallQuota::new(quota);
        let call = call.map_err(|why| BackendError::new(Fault::Nonsense, why.to_string()))?;
        let by_policy = EffectiveQuota { quota, algorithm: call.bucket().into(), ..self.0.base };
        let name = self.0.caller_of(key);
        Ok(Caller { limit: Arc::clone(&self.0), name, tier: None, by_policy, by_override: None })
    }
}

impl<B: Backend> RedisStore<B> {
    /// Spends a cost of a token bucket that belongs to no limit, and has its quota from this
    /// call. A call with another quota finds the time at which the bucket is full again, not
    /// a number of tokens. Cost 0 only looks.
    ///
    /// # Errors
    ///
    /// If Redis could not be asked. Go by this node's [share](Self::share) then, unless it
    /// is [asked too much](Fault::Overloaded). Or if the quota never refills.
    pub async fn throttle(
        &self,
        key: &[u8],
        quota: Quota,
        cost: u64,
    ) -> Result<Decision, BackendError> {
        let mut asked = PendingSpend {
            spend: 0,
            batch: 0,
            lease: None,
            caller: self.throttled.caller(key, quota)?,
            cost,
            is_shadow: false,
            in_flight: None,
            reply: None,
        };
        let (words, counters) = (&self.core.words, &self.core.counters);
        let (name, effective) = (asked.caller.name, asked.caller.by_policy);
        if cost > 0 {
            match words.begin(name, &effective, cost, self.core.local()) {
                Ok(in_flight) => asked.in_flight = in_flight,
                Err(denied) => {
                    counters.by_memory.add(1);
                    return Ok(denied);
                }
            }
        }
        let spending = self.core.spend(std::slice::from_mut(&mut asked));
        let spent = of_limit(self.throttled.0.id(), spending).await;
        let decided = spent.map(|_| asked.reply.zip(asked.decision()));
        let Some((reply, decision)) = decided.inspect_err(|why| {
            words.invalidate(name);
            if why.fault() != Fault::Overloaded {
                counters.outage_local.add(1);
            }
        })?
        else {
            return Err(BackendError::new(Fault::Nonsense, "Redis answered nothing"));
        };
        counters.by_redis.add(1);
        let left = asked.spent().map_or(reply.word, |(_, spent)| spent);
        words.record(name, &effective, left, reply.sample, decision.is_denied());
        Ok(decision)
    }

    /// What this node has of a bucket while Redis cannot be asked. What that lets through is
    /// to be [told](Self::throttled_here).
    ///
    /// # Errors
    ///
    /// If the quota never refills.
    pub fn share(&self, key: &[u8], quota: Quota) -> Result<Share, BackendError> {
        let caller = self.throttled.caller(key, quota)?;
        let last = self.core.words.last(caller.name);
        let owed = last.map_or(Duration::ZERO, |last| {
            last.idle_after(&caller.by_policy.algorithm, self.core.local())
        });
        let share = share_of(AlgorithmKind::TokenBucket, quota, self.core.assumed_nodes());
        Ok(Share { quota: share, owed })
    }

    /// Has a bucket charged at Redis, once that is back, for what was decided by this node's
    /// [share](Self::share).
    pub fn throttled_here(&self, key: &[u8], quota: Quota, decision: &Decision) {
        if let Ok(caller) = self.throttled.caller(key, quota) {
            self.record_debt(&caller, decision);
        }
    }
}
