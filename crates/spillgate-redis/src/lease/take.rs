use std::num::NonZeroU32;
use std::time::Duration;

use spillgate::Timestamp;

use super::bucket::Bucket;
use super::bucket_word::BucketWord;
use super::caller_lease::Lease;
use super::flight::{Flight, Landed, Order};
use super::leases::Step;
use super::slice::Slice;
use super::source::{Named, Taken};
use crate::counted::Counted;
use crate::engine::{EngineError, Exchange};

/// For how long nothing is taken ahead from an engine that failed.
const QUIET: Duration = Duration::from_millis(100);

/// For how long after a take nothing is taken ahead.
const AHEAD: Duration = Duration::from_millis(50);

/// When something is given back again of what is idle. Others may have given back what lies
/// behind it.
const AGAIN: Duration = Duration::from_secs(1);

/// What a take is to bring: as many times the least as there is, up to the most.
#[derive(Clone, Copy)]
struct Amount {
    least: u64,
    most: u64,
    nodes: NonZeroU32,
}

/// How tokens come to a lease, and go back.
impl<C: Named + Clone> Lease<C> {
    /// What a call does that finds nothing here.
    pub(super) fn next_step(&mut self, cost: u64, nodes: NonZeroU32, local: Timestamp) -> Step<C> {
        if let Some(flight) = self.flight().cloned() {
            self.wait(cost);
            return Step::Wait(flight);
        }
        let begun = self.begin(cost, nodes, local);
        begun.map_or(Step::AskStrictly, |(flight, order)| Step::Take(flight, order))
    }

    /// Begins a take for a call that cannot be decided here. `None` if the bucket is none to
    /// take slices of, or too small for so many nodes.
    fn begin(
        &mut self,
        cost: u64,
        nodes: NonZeroU32,
        local: Timestamp,
    ) -> Option<(Flight, Order<C>)> {
        let bucket = self.bucket?;
        let share = bucket.most_held(nodes)?;
        // What is spent at once is not held: by this call, and by those that will have come
        // when the answer does.
        let others = self.waiting.saturating_add(self.woken).max(self.waited);
        let at_once = cost.saturating_add(others);
        let wanted = self.size.next(&bucket, cost);
        let most = wanted.max(at_once).min(share.saturating_add(at_once));
        let amount = Amount { least: cost, most, nodes };
        Some(self.order(Some(cost), amount, local))
    }

    /// Begins a take before what is held runs out, if calls come often enough.
    #[inline]
    pub(super) fn begin_ahead(
        &mut self,
        cost: u64,
        nodes: impl FnOnce() -> Option<NonZeroU32>,
        local: Timestamp,
    ) -> Option<Order<C>> {
        let is_due = self.held.is_half_gone(local) && self.size.since_take(local) >= AHEAD;
        if !is_due || local < self.quiet_until || self.flight().is_some() {
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
        let bucket = self.bucket?;
        let room = bucket.most_held(nodes)?.saturating_sub(self.held.left(&bucket, local));
        let most = self.size.next(&bucket, cost).min(room);
        // A bucket that is nearly empty is left to those who have nothing: a few tokens at a
        // time would cost a call each.
        let worth_it = most.min(bucket.pace(nodes).batch).max(cost + 1);
        let available = self.known.map_or(u64::MAX, |known| known.available(&bucket, local));
        if most < worth_it || available < worth_it {
            return None;
        }
        Some(self.order(None, Amount { least: cost, most, nodes }, local))
    }

    fn order(&mut self, cost: Option<u64>, amount: Amount, local: Timestamp) -> (Flight, Order<C>) {
        let Amount { least, most, nodes } = amount;
        self.size.sent(most, local);
        let (flight, landing) = Flight::begin();
        self.flight = Some(flight.clone());
        let (caller, counted) = (self.caller.clone(), self.counted);
        (flight, Order { caller, counted, least, cost, most, nodes, landing })
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
        self.woken = std::mem::take(&mut self.waiting);
        if order.cost.is_some() {
            self.waited = self.woken;
        }
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
        let slice = Slice::of(bucket, taken, order.least, order.most);
        let slice = slice.filter(|_| taken.is_granted);
        let word = slice.map_or(taken.word, |slice| slice.word());
        let pace = bucket.pace(order.nodes);
        let known = match slice {
            Some(_) => BucketWord::left(bucket, word, taken.seen, pace, order.least),
            None => BucketWord::found(word, taken.seen, pace),
        };
        let is_alone = order.nodes.get() == 1;
        let known = if is_alone { known } else { known.spread(pace.gap / 2) };
        self.known = Some(known);
        let decided = match (slice, order.cost) {
            (Some(slice), cost) => {
                self.size.landed(slice.lead(), local);
                let place = self.held.add(slice);
                cost.and_then(|cost| self.held.spend_as_granted(place, bucket, cost))
            }
            (None, cost) => cost.map(|cost| known.decide(bucket, cost, taken.seen.now)),
        };
        decided.map_or(Landed::Again, Landed::Decided)
    }

    /// Lets go of the last slice, and says how it is given back, if there is anything left of
    /// it.
    pub(super) fn give_back(&mut self, margin: Duration, local: Timestamp) -> Option<Back> {
        let slice = self.held.take_last(self.bucket.as_ref()?, local)?;
        self.back_after = local + AGAIN;
        self.unlearn();
        let exchange = slice.give_back(self.caller.name(), self.counted.terms, margin)?;
        Some(Back { exchange, slice, counted: self.counted, of: self.began })
    }

    /// Goes on holding a slice that the engine did not take back, if it is one of this bucket.
    /// Tells whether it is.
    pub(super) fn keep(&mut self, back: &Back) -> bool {
        let is_own = self.began == back.of && self.counted.is_like(&back.counted);
        if is_own {
            self.held.add(back.slice);
        }
        is_own
    }
}

/// A slice on its way back.
pub(super) struct Back {
    pub(super) exchange: Exchange,
    slice: Slice,
    counted: Counted,
    /// When the lease began that held it: one that took its place has nothing to do with it.
    of: Timestamp,
}
