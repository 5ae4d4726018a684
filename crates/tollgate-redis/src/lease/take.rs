use std::num::NonZeroU32;
use std::time::Duration;

use tollgate::algorithm::Algorithm;
use tollgate::{Decision, Timestamp};

use super::bucket::Bucket;
use super::caller_lease::{Known, Lease};
use super::flight::{Flight, Landed, Order};
use super::slice::Slice;
use super::source::{Named, Taken};
use crate::engine::{EngineError, Exchange};

/// For how long nothing is taken ahead from an engine that failed.
const QUIET: Duration = Duration::from_millis(100);

/// How tokens come to a lease, and go back.
impl<C: Named + Clone> Lease<C> {
    /// Begins a take for a call that cannot be decided here. `None` if the bucket is none to
    /// take slices of, or too small for so many nodes.
    pub(super) fn begin(
        &mut self,
        cost: u64,
        nodes: NonZeroU32,
        local: Timestamp,
    ) -> Option<(Flight, Order<C>)> {
        let most = self.most(cost, nodes, local)?.max(cost);
        Some(self.order(cost, Some(cost), most, local))
    }

    /// Begins a take before what is held runs out, if calls come often enough.
    #[inline]
    pub(super) fn begin_ahead(
        &mut self,
        cost: u64,
        nodes: impl FnOnce() -> Option<NonZeroU32>,
        local: Timestamp,
    ) -> Option<Order<C>> {
        let is_due = self.held.is_half_gone(local) && local >= self.quiet_until;
        if !is_due || self.flight().is_some() {
            return None;
        }
        self.begin_due(cost, nodes()?, local).map(|(_, order)| order)
    }

    fn begin_due(
        &mut self,
        cost: u64,
        nodes: NonZeroU32,
        local: Timestamp,
    ) -> Option<(Flight, Order<C>)> {
        let (bucket, most) = (self.bucket?, self.most(cost, nodes, local)?);
        // A bucket that is nearly empty is left to those who have nothing: a few tokens at a
        // time would cost a call each.
        let least = most / 4 + 1;
        if most <= cost || self.available(&bucket, local) < least {
            return None;
        }
        Some(self.order(least, None, most, local))
    }

    /// How much to take: as much as calls ask for, and as this node may hold beside what it has.
    fn most(&mut self, cost: u64, nodes: NonZeroU32, local: Timestamp) -> Option<u64> {
        let bucket = self.bucket?;
        let room = bucket.most_held(nodes)?.saturating_sub(self.held.left(&bucket, local));
        Some(self.size.next(&bucket, cost, local).min(room))
    }

    /// How much the engine has, as far as is known.
    fn available(&self, bucket: &Bucket, local: Timestamp) -> u64 {
        self.known.map_or(u64::MAX, |known| {
            bucket.algorithm.remaining(known.word, known.seen.latest(local))
        })
    }

    fn order(
        &mut self,
        least: u64,
        cost: Option<u64>,
        most: u64,
        local: Timestamp,
    ) -> (Flight, Order<C>) {
        self.size.sent(most, local);
        let (flight, landing) = Flight::begin();
        self.flight = Some(flight.clone());
        let (caller, counted) = (self.caller.clone(), self.counted);
        (flight, Order { caller, counted, least, cost, most, landing })
    }

    /// True if this is what the order was for.
    pub(super) fn expects(&self, order: &Order<C>) -> bool {
        self.flight.as_ref().is_some_and(|flight| flight.is_of(&order.landing))
    }

    /// Adds what a take has brought, and decides the call that it was for.
    pub(super) fn land(
        &mut self,
        order: &Order<C>,
        taken: Result<Taken, EngineError>,
        local: Timestamp,
    ) -> Landed {
        self.flight = None;
        let taken = match taken {
            Ok(taken) => taken,
            Err(error) => {
                self.quiet_until = local + QUIET;
                return Landed::Failed(error);
            }
        };
        if !taken.counted.is_like(&self.counted) {
            self.adopt(taken.counted, local);
            return Landed::Again;
        }
        self.bucket.map_or(Landed::Again, |bucket| self.add(&bucket, order, &taken, local))
    }

    fn add(
        &mut self,
        bucket: &Bucket,
        order: &Order<C>,
        taken: &Taken,
        local: Timestamp,
    ) -> Landed {
        let slice = Slice::of(bucket, taken, order.most).filter(|_| taken.is_granted);
        let word = slice.map_or(taken.word, |slice| slice.word());
        self.known = Some(Known { word, seen: taken.seen });
        let decided = match (slice, order.cost) {
            (Some(slice), cost) => {
                self.size.landed(slice.lead(), local);
                self.held.add(slice);
                cost.and_then(|cost| self.held.spend_as_granted(bucket, cost))
            }
            (None, cost) => {
                cost.map(|cost| Decision::of(bucket.algorithm, word, taken.seen.now, cost).0)
            }
        };
        decided.map_or(Landed::Again, Landed::Decided)
    }

    /// Lets go of everything that is held, and says how it is given back, if there is
    /// anything left of it.
    pub(super) fn give_back(&mut self, margin: Duration, local: Timestamp) -> Option<Exchange> {
        let left = self.held.left(self.bucket.as_ref()?, local);
        let last = self.held.take_last().filter(|_| left > 0)?;
        self.unlearn();
        last.give_back(self.caller.name(), self.counted.terms, margin)
    }
}
