use std::sync::Arc;

use spillgate::algorithm::SpendRecord;
use spillgate::{Decision, KeyedState, Timestamp};

use super::core::LeaseCore;
use super::lease::Spent;
use super::single_flight::{PendingTake, TakeOutcome, TakeRequest};
use super::source::LeaseSource;
use super::table::LeaseId;
use crate::backend::BackendError;
use crate::effective_quota::EffectiveQuota;
use crate::stats::LeaseStats;

/// The slices of buckets that this node holds, by caller.
///
/// Nothing here waits for Redis but [`decide`](Self::decide) and
/// [`shutdown`](Self::shutdown).
#[derive(Debug)]
pub(crate) struct Leases<S: LeaseSource>(Arc<LeaseCore<S>>);

/// How often a call looks for tokens here, each time after waiting for a take, before it
/// asks Redis for its own.
const ATTEMPTS: usize = 4;

impl<S: LeaseSource> Leases<S> {
    /// No leases, with room for so many.
    pub(crate) fn new(source: Arc<S>, hasher: KeyedState, capacity: usize) -> Self {
        Self(Arc::new(LeaseCore::new(source, hasher, capacity)))
    }

    /// Where the lease of a caller is. The number tells the limit from others.
    #[inline]
    pub(crate) fn id(&self, limit: u64, key: &[u8]) -> LeaseId {
        self.0.table.id(limit, key)
    }

    /// Spends a cost if it can be decided here and now. `asked` is what the policy
    /// counts the caller by.
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

    /// What [`spend`](Self::spend) would answer, without spending; `None` if Redis has
    /// to be asked.
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

    /// Spends a cost, out of a slice that is taken for it if need be.
    ///
    /// Calls that find nothing wait for one take, rather than each asking for its own.
    /// `None` if the caller cannot be leased, so that the call has to ask for itself.
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
    ) -> Result<Option<Decision>, BackendError> {
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

    /// Takes back a cost that was allowed, if nothing was spent since. Tells whether it did.
    pub(crate) fn undo(&self, id: LeaseId, spent: &SpendRecord) -> bool {
        self.give_back(id, spent, spent.cost)
    }

    /// Takes back so much of a cost that was allowed, if nothing was spent since. Tells whether
    /// it did.
    pub(crate) fn give_back(&self, id: LeaseId, spent: &SpendRecord, unused: u64) -> bool {
        self.0.table.shard(id).lease(id).is_some_and(|lease| lease.undo(spent, unused))
    }

    /// Notes that a call was a reservation, which another node may settle. As many calls of the
    /// caller ask Redis: slices beyond what is settled could not be given back.
    pub(crate) fn reserve(&self, id: LeaseId) {
        self.0.table.shard(id).reserve(id);
    }

    /// Believes Redis's last word of a caller no more, as something was given back.
    pub(crate) fn unlearn(&self, id: LeaseId) {
        if let Some(lease) = self.0.table.shard(id).lease(id) {
            lease.unlearn();
        }
    }

    /// Forgets a caller, and loses what is held of its bucket.
    pub(crate) fn forget(&self, id: LeaseId) {
        self.0.table.shard(id).remove(id);
    }

    /// Gives everything back, and holds nothing from then on.
    pub(crate) async fn shutdown(&self) {
        self.0.close().await;
    }

    /// What the leases have done so far.
    pub(crate) fn stats(&self) -> LeaseStats {
        self.0.stats()
    }
}

/// What a call does next.
pub(super) enum Step<C> {
    /// It is decided.
    Answer(Decision),
    /// It asks Redis for itself.
    AskStrictly,
    /// It waits for a take that is under way.
    Wait(PendingTake),
    /// It takes, and waits for that.
    Take(PendingTake, TakeRequest<C>),
}
