use std::sync::Arc;

use spillgate::algorithm::SpendRecord;
use spillgate::{Decision, KeyedState, Timestamp};

use super::caller_lease::Spent;
use super::flight::{Flight, Landed, Order};
use super::inner::Inner;
use super::source::Source;
use super::stats::LeaseStats;
use super::table::Place;
use crate::counted::Counted;
use crate::engine::EngineError;

/// The slices of buckets that this node holds, by caller.
///
/// Nothing here waits for the engine but [`decide`](Self::decide) and
/// [`shutdown`](Self::shutdown).
#[derive(Debug)]
pub(crate) struct Leases<S: Source>(Arc<Inner<S>>);

/// How often a call looks for tokens here, each time after waiting for a take, before it
/// asks the engine for its own.
const ATTEMPTS: usize = 4;

impl<S: Source> Leases<S> {
    /// No leases, with room for so many.
    pub(crate) fn new(source: Arc<S>, hasher: KeyedState, capacity: usize) -> Self {
        Self(Arc::new(Inner::new(source, hasher, capacity)))
    }

    /// Where the lease of a caller is. The number tells the limit from others.
    #[inline]
    pub(crate) fn place(&self, limit: u64, key: &[u8]) -> Place {
        self.0.table.place(limit, key)
    }

    /// Spends a cost if it can be decided here and now. `asked` is what the policy
    /// counts the caller by.
    ///
    /// When half of a slice is gone, the next is taken in the background.
    #[inline]
    pub(crate) fn spend(
        &self,
        place: Place,
        asked: &Counted,
        cost: u64,
        local: Timestamp,
    ) -> Spent {
        let mut shard = self.0.table.shard(place);
        let Some(lease) = shard.lease(place).filter(|lease| lease.is_of(asked)) else {
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
        if let Some(order) = ahead {
            self.0.send(place, order);
        }
        spent
    }

    /// What [`spend`](Self::spend) would answer, without spending; `None` if the engine has
    /// to be asked.
    pub(crate) fn peek(
        &self,
        place: Place,
        asked: &Counted,
        cost: u64,
        local: Timestamp,
    ) -> Option<Decision> {
        let mut shard = self.0.table.shard(place);
        shard.lease(place).filter(|lease| lease.is_of(asked))?.peek(cost, local)
    }

    /// Spends a cost, out of a slice that is taken for it if need be.
    ///
    /// Calls that find nothing wait for one take, rather than each asking for its own.
    /// `None` if the caller cannot be leased, so that the call has to ask for itself.
    ///
    /// # Errors
    ///
    /// If the engine does not answer.
    pub(crate) async fn decide(
        &self,
        place: Place,
        asked: &Counted,
        caller: &S::Caller,
        cost: u64,
    ) -> Result<Option<Decision>, EngineError> {
        self.0.start();
        for attempt in 0..ATTEMPTS {
            let step = self.0.step(place, asked, caller, cost, attempt == 0);
            let (flight, is_mine) = match step {
                Step::Answer(decision) => return Ok(Some(decision)),
                Step::AskStrictly => return Ok(None),
                Step::Wait(flight) => (flight, false),
                Step::Take(flight, order) => {
                    self.0.send(place, order);
                    (flight, true)
                }
            };
            match flight.landed().await {
                Landed::Decided(decision) if is_mine => return Ok(Some(decision)),
                Landed::Failed(error) => return Err(error),
                Landed::Decided(_) | Landed::Again => {}
            }
        }
        Ok(None)
    }

    /// Takes back a cost that was allowed, if nothing was spent since. Tells whether it did.
    pub(crate) fn undo(&self, place: Place, spent: &SpendRecord) -> bool {
        self.give_back(place, spent, spent.cost)
    }

    /// Takes back so much of a cost that was allowed, if nothing was spent since. Tells whether
    /// it did.
    pub(crate) fn give_back(&self, place: Place, spent: &SpendRecord, unused: u64) -> bool {
        self.0.table.shard(place).lease(place).is_some_and(|lease| lease.undo(spent, unused))
    }

    /// Notes that a call was a reservation, which another node may settle. As many calls of the
    /// caller ask the engine: slices beyond what is settled could not be given back.
    pub(crate) fn reserve(&self, place: Place) {
        self.0.table.shard(place).reserve(place);
    }

    /// Believes the engine's last word of a caller no more, as something was given back.
    pub(crate) fn unlearn(&self, place: Place) {
        if let Some(lease) = self.0.table.shard(place).lease(place) {
            lease.unlearn();
        }
    }

    /// Forgets a caller, and loses what is held of its bucket.
    pub(crate) fn forget(&self, place: Place) {
        self.0.table.shard(place).remove(place);
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
    /// It asks the engine for itself.
    AskStrictly,
    /// It waits for a take that is under way.
    Wait(Flight),
    /// It takes, and waits for that.
    Take(Flight, Order<C>),
}
