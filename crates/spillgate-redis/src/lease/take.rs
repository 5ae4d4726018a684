use std::num::NonZeroU32;
use std::time::Duration;

use spillgate::Timestamp;

use super::bucket::Bucket;
use super::bucket_word::BucketWord;
use super::caller_lease::Lease;
use super::leases::Step;
use super::single_flight::{PendingTake, TakeOutcome, TakeRequest};
use super::slice::Slice;
use super::slice_return::{SliceReturn, Tokens};
use super::source::{Named, Taken};
use crate::backend::Result;

/// How long nothing is taken ahead after a failure of Redis.
const QUIET: Duration = Duration::from_millis(100);

/// How long nothing is taken ahead after a take.
const AHEAD: Duration = Duration::from_millis(50);

/// How long nothing is taken of a bucket whose quota has moved.
const MOVING: Duration = Duration::from_secs(1);

/// As many times `least` as available, up to `most`.
#[derive(Clone, Copy)]
struct Amount {
    least: u64,
    most: u64,
    nodes: NonZeroU32,
}

/// How tokens come to a lease, and go back.
impl<C: Named + Clone> Lease<C> {
    /// The next step of a call that finds nothing here.
    pub(super) fn next_step(&mut self, cost: u64, nodes: NonZeroU32, local: Timestamp) -> Step<C> {
        if let Some(pending) = self.pending().cloned() {
            self.wait(cost);
            return Step::Wait(pending);
        }
        let begun = self.begin(cost, nodes, local);
        begun.map_or(Step::AskStrictly, |(pending, request)| Step::Take(pending, request))
    }

    /// Begins a take for a call. `None` if the bucket cannot be leased, or is too small for so many
    /// nodes.
    fn begin(
        &mut self,
        cost: u64,
        nodes: NonZeroU32,
        local: Timestamp,
    ) -> Option<(PendingTake, TakeRequest<C>)> {
        let bucket = self.bucket.filter(|_| local >= self.strict_until)?;
        let share = bucket.most_held(nodes)?;
        // What is spent at once is not held: by this call, and by those that wait for it.
        let others = self.waiting.saturating_add(self.woken).max(self.waited);
        let at_once = cost.saturating_add(others);
        let wanted = self.size.next(&bucket, cost);
        let most = wanted.max(at_once).min(share.saturating_add(at_once));
        let amount = Amount { least: cost, most, nodes };
        Some(self.request(Some(cost), amount, local))
    }

    /// Begins a take before what is held runs out, if calls come often enough.
    #[inline]
    pub(super) fn begin_ahead(
        &mut self,
        cost: u64,
        nodes: impl FnOnce() -> Option<NonZeroU32>,
        local: Timestamp,
    ) -> Option<TakeRequest<C>> {
        let is_due = self.held.is_half_gone(local) && self.size.since_take(local) >= AHEAD;
        if !is_due || local < self.quiet_until || self.pending().is_some() {
            return None;
        }
        self.begin_due(cost, nodes()?, local).map(|(_, request)| request)
    }

    fn begin_due(
        &mut self,
        cost: u64,
        nodes: NonZeroU32,
        local: Timestamp,
    ) -> Option<(PendingTake, TakeRequest<C>)> {
        let bucket = self.bucket.filter(|_| local >= self.strict_until)?;
        let room = bucket.most_held(nodes)?.saturating_sub(self.held.left(&bucket, local));
        let most = self.size.next(&bucket, cost).min(room);
        // A nearly empty bucket is left to those who have nothing: a few tokens at a time would
        // cost a call each.
        let worth_it = most.min(bucket.pace(nodes).batch).max(cost + 1);
        let available = self.known.map_or(u64::MAX, |known| known.available(&bucket, local));
        if most < worth_it || available < worth_it {
            return None;
        }
        Some(self.request(None, Amount { least: cost, most, nodes }, local))
    }

    fn request(
        &mut self,
        cost: Option<u64>,
        amount: Amount,
        local: Timestamp,
    ) -> (PendingTake, TakeRequest<C>) {
        let Amount { least, most, nodes } = amount;
        self.size.sent(most, local);
        let (pending, notifier) = PendingTake::begin();
        self.pending = Some(pending.clone());
        let (caller, effective) = (self.caller.clone(), self.effective);
        (pending, TakeRequest { caller, effective, least, cost, most, nodes, notifier })
    }

    /// True if this lease made the request.
    pub(super) fn expects(&self, request: &TakeRequest<C>) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.is_of(&request.notifier))
    }

    /// Adds what a take has brought, and decides the call that it was for.
    pub(super) fn complete(
        &mut self,
        request: &TakeRequest<C>,
        taken: Result<Taken>,
        local: Timestamp,
    ) -> TakeOutcome {
        self.pending = None;
        self.woken = std::mem::take(&mut self.waiting);
        if request.cost.is_some() {
            self.waited = self.woken;
        }
        let taken = match taken {
            Ok(taken) => taken,
            Err(error) => {
                self.quiet_until = local + QUIET;
                return TakeOutcome::Failed(error);
            }
        };
        if taken.is_moving {
            self.strict_until = local + MOVING;
            return TakeOutcome::Again;
        }
        if !taken.effective.is_like(&self.effective) {
            self.adopt(taken.effective, local);
            return TakeOutcome::Again;
        }
        self.bucket.map_or(TakeOutcome::Again, |bucket| self.add(&bucket, request, &taken, local))
    }

    fn add(
        &mut self,
        bucket: &Bucket,
        request: &TakeRequest<C>,
        taken: &Taken,
        local: Timestamp,
    ) -> TakeOutcome {
        let slice = Slice::of(bucket, taken, request.least, request.most);
        let slice = slice.filter(|_| taken.is_granted);
        let word = slice.map_or(taken.word, |slice| slice.word());
        let pace = bucket.pace(request.nodes);
        let known = match slice {
            Some(_) => BucketWord::left(bucket, word, taken.sample, pace, request.least),
            None => BucketWord::found(word, taken.sample, pace),
        };
        let is_alone = request.nodes.get() == 1;
        let known = if is_alone { known } else { known.spread(pace.gap / 2) };
        self.known = Some(known);
        let decided = match (slice, request.cost) {
            (Some(slice), cost) => {
                self.size.completed(slice.lead(), local);
                let place = self.held.add(bucket, slice, local);
                cost.and_then(|cost| self.held.spend_as_granted(place, bucket, cost))
            }
            (None, cost) => cost.map(|cost| known.decide(bucket, cost, taken.sample.now)),
        };
        decided.map_or(TakeOutcome::Again, TakeOutcome::Decided)
    }

    /// Removes all slices, to give them back.
    pub(super) fn give_back(&mut self, local: Timestamp) -> Option<SliceReturn<C>> {
        self.give_back_if(local, |_| true)
    }

    /// Removes the slices that are to be given back since nobody has called for long, or since they
    /// are old.
    pub(super) fn give_back_due(
        &mut self,
        is_idle: bool,
        local: Timestamp,
    ) -> Option<SliceReturn<C>> {
        self.give_back_if(local, |slice| !slice.is_kept() && (is_idle || slice.is_old(local)))
    }

    fn give_back_if(
        &mut self,
        local: Timestamp,
        is_due: impl Fn(&Slice) -> bool,
    ) -> Option<SliceReturn<C>> {
        let bucket = self.bucket?;
        let slices = self.held.take(&bucket, local, is_due);
        let lost = self.held.take_lost();
        if slices.is_empty() && lost == 0 {
            return None;
        }
        if !slices.is_empty() {
            self.unlearn();
        }
        let (caller, effective, of) = (self.caller.clone(), self.effective, self.began);
        let lost = Tokens::whole(lost);
        Some(SliceReturn { caller, effective, bucket, slices, lost, of })
    }

    /// Keeps slices that Redis did not take back, if they are of this bucket. Returns whether they
    /// are.
    pub(super) fn keep(&mut self, back: &SliceReturn<C>, local: Timestamp) -> bool {
        let is_own = self.began == back.of && self.effective.is_like(&back.effective);
        if is_own {
            for slice in &back.slices {
                self.held.add(&back.bucket, *slice, local);
            }
        }
        is_own
    }
}
