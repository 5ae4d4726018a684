use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;
use spillgate::{AlgorithmKind, Clock, Decision, Quota};
use spillgate_policy::store::{CallQuota, LimitSpec, Memory, MemoryLimits, Outage, Spend, Store};
use spillgate_policy::{Error, Key};

use super::limits::RedisLimits;
use super::share::{share_of, share_of_limit};

/// The tables of this node for outages: its share of each limit with `outage = "local"`. They are
/// kept between outages, so that a flapping connection does not forgive each time.
pub(super) struct LocalTables {
    pub(super) memory: Memory<Arc<dyn Clock>>,
    /// As in the policy.
    specs: Vec<LimitSpec>,
    divided: Mutex<Divided>,
}

/// What a call has spent out of shares. It is taken back unless it is [kept](Self::keep).
pub(super) struct SpentShares {
    pub(super) tables: Arc<MemoryLimits<Arc<dyn Clock>>>,
    pub(super) spends: SmallVec<[Spend; 2]>,
    /// For which spends of the call.
    pub(super) places: SmallVec<[usize; 2]>,
}

/// The shares of one of `nodes`.
#[derive(Clone)]
struct Divided {
    nodes: NonZeroU32,
    limits: Arc<MemoryLimits<Arc<dyn Clock>>>,
}

impl LocalTables {
    /// Opens the tables.
    pub(super) fn open(
        limits: &[LimitSpec],
        clock: &Arc<dyn Clock>,
        nodes: NonZeroU32,
    ) -> Result<Self, Error> {
        let (memory, specs) = (Memory::new(Arc::clone(clock)), locals(limits));
        let limits = Arc::new(memory.open(&shares(&specs, nodes))?);
        Ok(Self { memory, specs, divided: Mutex::new(Divided { nodes, limits }) })
    }

    /// The same for the next policy; counters are kept.
    pub(super) fn reopen(&self, limits: &[LimitSpec]) -> Result<Self, Error> {
        let (old, specs) = (self.divided(), locals(limits));
        let limits = Arc::new(self.memory.reopen(&old.limits, &shares(&specs, old.nodes))?);
        let divided = Mutex::new(Divided { nodes: old.nodes, limits });
        Ok(Self { memory: self.memory.clone(), specs, divided })
    }

    /// Sets or removes the share of an override.
    pub(super) async fn set_override(
        &self,
        limit: usize,
        key: &Key,
        quota: Option<Quota>,
        nodes: NonZeroU32,
    ) -> Result<(), Error> {
        let share = quota.map(|quota| share_of(self.specs[limit].algorithm, quota, nodes));
        self.memory.set_override(&self.for_nodes(nodes), limit, key, share, None).await
    }

    /// The tables for a number of nodes. Counters are kept.
    pub(super) fn for_nodes(&self, nodes: NonZeroU32) -> Arc<MemoryLimits<Arc<dyn Clock>>> {
        let mut divided = self.divided.lock().unwrap_or_else(PoisonError::into_inner);
        if divided.nodes != nodes {
            // Quotas that cannot be divided stay as they are.
            if let Ok(limits) = self.memory.reopen(&divided.limits, &shares(&self.specs, nodes)) {
                *divided = Divided { nodes, limits: Arc::new(limits) };
            }
        }
        Arc::clone(&divided.limits)
    }

    fn divided(&self) -> Divided {
        self.divided.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl SpentShares {
    /// The decision by a share, if there was one.
    pub(super) fn decision(&self, place: usize) -> Option<Decision> {
        let spent = self.places.iter().zip(&self.spends).find(|(own, _)| **own == place);
        spent.and_then(|(_, spend)| spend.decision)
    }

    pub(super) fn keep(mut self) {
        self.spends.clear();
    }
}

impl Drop for SpentShares {
    fn drop(&mut self) {
        for spend in self.spends.drain(..).rev() {
            self.tables.cancel(spend);
        }
    }
}

fn locals(limits: &[LimitSpec]) -> Vec<LimitSpec> {
    limits.iter().filter(|limit| has_local_table(limit)).cloned().collect()
}

/// True if this node counts by its share during an outage. Permits are counted in any case.
pub(super) fn has_local_table(limit: &LimitSpec) -> bool {
    limit.outage == Outage::Local && limit.hold.is_none()
}

fn shares(limits: &[LimitSpec], nodes: NonZeroU32) -> Vec<LimitSpec> {
    limits.iter().map(|limit| share_of_limit(limit, nodes)).collect()
}

/// A spend under this node's share, if the limit has `outage = "local"`.
pub(super) fn share_spend(limits: &RedisLimits, spend: &Spend, nodes: NonZeroU32) -> Option<Spend> {
    let place = limits.limit(spend.limit).local?;
    let local = Spend::new(place, spend.key.clone(), spend.cost);
    Some(match spend.quota.as_ref() {
        None => local,
        Some(call) => {
            let share = share_of(AlgorithmKind::TokenBucket, call.quota(), nodes);
            local.with_quota(CallQuota::new(share).unwrap_or(*call))
        }
    })
}
