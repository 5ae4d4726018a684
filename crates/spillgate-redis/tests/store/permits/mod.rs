//! Permits that nodes share: never more than the limit, and none is lost.

mod outage;
mod programs;
mod sharing;

use std::time::Duration;

use super::fake::Fake;
use spillgate_policy::Key;
use spillgate_policy::store::{HoldSpec, LimitSpec, Outage, PermitId, Permits, Spend, Store};
use spillgate_redis::{RedisLimits, RedisStore, Settings};

const TTL: Duration = Duration::from_secs(30);

/// A node and its limit.
struct HoldNode {
    store: RedisStore<Fake>,
    limits: RedisLimits,
}

impl HoldNode {
    fn new(redis: &Fake, spec: &LimitSpec) -> Self {
        let settings = Settings::default().nodes(2.try_into().unwrap()).clock(redis.clock());
        let store = RedisStore::new(redis.clone(), &settings).unwrap();
        let limits = store.open(std::slice::from_ref(spec)).unwrap();
        Self { store, limits }
    }

    /// Holds so many permits; `None` if that is denied.
    async fn hold(&self, key: &str, count: u64) -> Option<Permits> {
        let (mut spends, mut permits) = ([spend(key, count)], Permits::new());
        self.store.hold(&self.limits, &mut spends, &mut permits).await.unwrap();
        let decision = spends[0].decision.unwrap();
        assert_eq!(decision.is_allowed(), !permits.is_empty());
        decision.is_allowed().then_some(permits)
    }

    /// The same without waiting; the outer `None` if it cannot be decided here.
    fn hold_now(&self, key: &str) -> Option<Option<Permits>> {
        let (mut spends, mut permits) = ([spend(key, 1)], Permits::new());
        self.store.hold_now(&self.limits, &mut spends, &mut permits)?.unwrap();
        Some(spends[0].decision.unwrap().is_allowed().then_some(permits))
    }

    /// How many single permits it gets until it is denied.
    async fn hold_all(&self, key: &str) -> Vec<Permits> {
        let mut held = Vec::new();
        while let Some(permits) = self.hold(key, 1).await {
            held.push(permits);
        }
        held
    }

    async fn acquire(&self, key: &str, count: u64, ttl: Duration) -> Option<PermitId> {
        let acquired = self.store.acquire(&self.limits, &spend(key, count), ttl).await.unwrap();
        assert_eq!(acquired.0.is_allowed(), acquired.1.is_some());
        acquired.1
    }

    fn expired(&self) -> u64 {
        self.store.usage(&self.limits, 0).unwrap().expired
    }

    fn held(&self) -> u64 {
        self.store.usage(&self.limits, 0).unwrap().held
    }
}

fn spend(key: &str, count: u64) -> Spend {
    Spend::new(0, Key::from_bytes(key.as_bytes()), count)
}

fn limit(permits: u64) -> LimitSpec {
    let quota = format!("burst {permits}").parse().unwrap();
    LimitSpec::new("uploads", quota).holding(HoldSpec::new(TTL))
}

fn limit_with(permits: u64, outage: Outage) -> LimitSpec {
    let mut spec = limit(permits);
    spec.outage = outage;
    spec
}

fn nodes(redis: &Fake, spec: &LimitSpec) -> [HoldNode; 2] {
    [HoldNode::new(redis, spec), HoldNode::new(redis, spec)]
}
