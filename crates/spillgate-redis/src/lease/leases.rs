use std::sync::Arc;

use spillgate::algorithm::SpendRecord;
use spillgate::{Decision, KeyedState, Timestamp};

use super::caller_lease::Spent;
use super::core::LeaseCore;
use super::single_flight::{PendingTake, TakeOutcome, TakeRequest};
use super::source::LeaseSource;
use super::table::LeaseId;
use crate::backend::Result;
use crate::effective_quota::EffectiveQuota;
use crate::stats::LeaseStats;

/// The leases of this node.
///
/// Only [`decide`](Self::decide) and [`shutdown`](Self::shutdown) wait for Redis.
#[derive(Debug)]
pub(crate) struct Leases<S: LeaseSource>(Arc<LeaseCore<S>>);

/// How often a call looks for tokens, each time after a take, before it asks Redis on its own.
const ATTEMPTS: usize = 4;

impl<S: LeaseSource> Leases<S> {
    /// Room for so many leases.
    pub(crate) fn new(source: Arc<S>, hasher: KeyedState, capacity: usize) -> Self {
        Self(Arc::new(LeaseCore::new(source, hasher, capacity)))
    }

    /// The id of a caller's lease. The number identifies the limit.
    #[inline]
    pub(crate) fn id(&self, limit: u64, key: &[u8]) -> LeaseId {
        self.0.table.id(limit, key)
    }

    /// Spends a cost if it can be decided here and now. `asked` is the quota by the policy.
    ///
    /// When half of a slice is gone, the next is taken in the background.
    #[inline]
    pub(crate) fn spend(
        &self,
        id: LeaseId,
        asked: &EffectiveQuota,
        cost: u64,
        local: Timestamp,
    ) -> Spent {
        let mut shard = self.0.table.shard(id);
        let Some(lease) = shard.lease(id).filter(|lease| lease.is_of(asked)) else {
            return Spent::Empty;
        };
        let spent = lease.spend(cost, local);
        let mut ahead = None;
        match spent {
            Spent::Allowed(_) => {
                lease.count(cost, local);
                ahead = lease.begin_ahead(cost, || self.0.nodes(), local);
                shard.allowed += 1;
            }
            Spent::Denied(_) => {
                lease.count(cost, local);
                shard.denied += 1;
            }
            Spent::Empty => {}
        }
        drop(shard);
        if let Some(request) = ahead {
            self.0.send(id, request);
        }
        spent
    }

    /// The decision of [`spend`](Self::spend), without spending; `None` if Redis must be asked.
    pub(crate) fn peek(
        &self,
        id: LeaseId,
        asked: &EffectiveQuota,
        cost: u64,
        local: Timestamp,
    ) -> Option<Decision> {
        let mut shard = self.0.table.shard(id);
        shard.lease(id).filter(|lease| lease.is_of(asked))?.peek(cost, local)
    }

    /// Spends a cost, out of a new slice if need be.
    ///
    /// Concurrent calls wait for one take (single flight). `None` if the caller cannot be leased,
    /// and the call must ask Redis.
    ///
    /// # Errors
    ///
    /// If Redis does not answer.
    pub(crate) async fn decide(
        &self,
        id: LeaseId,
        asked: &EffectiveQuota,
        caller: &S::Caller,
        cost: u64,
    ) -> Result<Option<Decision>> {
        self.0.start();
        for attempt in 0..ATTEMPTS {
            let step = self.0.step(id, asked, caller, cost, attempt == 0);
            let (pending, is_mine) = match step {
                Step::Answer(decision) => return Ok(Some(decision)),
                Step::AskStrictly => return Ok(None),
                Step::Wait(pending) => (pending, false),
                Step::Take(pending, request) => {
                    self.0.send(id, request);
                    (pending, true)
                }
            };
            match pending.outcome().await {
                TakeOutcome::Decided(decision) if is_mine => return Ok(Some(decision)),
                TakeOutcome::Failed(error) => return Err(error),
                TakeOutcome::Decided(_) | TakeOutcome::Again => {}
            }
        }
        Ok(None)
    }

    /// Takes back a cost, if nothing was spent since. Returns whether it did.
    pub(crate) fn undo(&self, id: LeaseId, spent: &SpendRecord) -> bool {
        self.give_back(id, spent, spent.cost)
    }

    /// Takes back part of a cost, if nothing was spent since. Returns whether it did.
    pub(crate) fn give_back(&self, id: LeaseId, spent: &SpendRecord, unused: u64) -> bool {
        self.0.table.shard(id).lease(id).is_some_and(|lease| lease.undo(spent, unused))
    }

    /// Notes that a call was a reservation, which another node may settle. As many calls of the
    /// caller ask Redis: slices beyond what is settled could not be given back.
    pub(crate) fn reserve(&self, id: LeaseId) {
        self.0.table.shard(id).recent.reserve(id.0);
    }

    /// Distrusts the last known word, since something was given back.
    pub(crate) fn unlearn(&self, id: LeaseId) {
        if let Some(lease) = self.0.table.shard(id).lease(id) {
            lease.unlearn();
        }
    }

    /// Removes a lease, and gives back what it holds.
    pub(crate) async fn return_one(&self, id: LeaseId) {
        let lease = self.0.table.shard(id).remove(id);
        if let Some(back) = lease.and_then(|mut lease| lease.give_back(self.0.source.local())) {
            self.0.give_back(id, back).await;
        }
    }

    /// Removes a lease, and loses what it holds: the bucket is full again.
    pub(crate) fn forget(&self, id: LeaseId) {
        self.0.table.shard(id).remove(id);
    }

    /// Gives everything back, and takes nothing from then on.
    pub(crate) async fn shutdown(&self) {
        self.0.close().await;
    }

    pub(crate) fn stats(&self) -> LeaseStats {
        self.0.stats()
    }
}

/// The next step of a call.
pub(super) enum Step<C> {
    /// It is decided.
    Answer(Decision),
    /// It asks Redis on its own.
    AskStrictly,
    /// It waits for the take in flight.
    Wait(PendingTake),
    /// It takes, and waits for that.
    Take(PendingTake, TakeRequest<C>),
}
