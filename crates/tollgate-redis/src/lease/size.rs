use std::time::Duration;

use tollgate::Timestamp;

use super::bucket::Bucket;

/// How much to take next, by what was asked for since the last take.
///
/// The first take is of what is asked alone, and so are all others while calls are far
/// apart: then there is nothing to hold, and nothing to give back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// When the last take was sent, by this node's clock.
    since: Timestamp,
    /// What it was to bring.
    last: u64,
    /// How far ahead of the engine's time the last slice began.
    lead: Duration,
    /// How long it was on its way.
    trip: Duration,
    /// What was asked for since, granted or not.
    asked: u64,
}

/// How long a slice should last. Long enough for a busy caller to need some ten calls a
/// second and node; short enough for what is held to follow demand from node to node.
const LASTS: Duration = Duration::from_millis(100);

impl Size {
    /// Nothing was taken yet.
    pub(super) fn new(local: Timestamp) -> Self {
        Self { since: local, last: 0, lead: Duration::ZERO, trip: Duration::ZERO, asked: 0 }
    }

    /// Counts what is asked for.
    #[inline]
    pub(super) fn ask(&mut self, cost: u64) {
        self.asked = self.asked.saturating_add(cost);
    }

    /// How much would last for a while if the demand stays as it is, but no more than twice
    /// the last take or what has been asked for already; at least the cost of the call that
    /// needs it.
    ///
    /// A slice must not only hold what will be asked for. Slots pass at the pace of refill,
    /// and those of a full bucket at once: then it has to be as long as it shall last. That
    /// is no waste, since what a full bucket does not give it loses. Slots of a bucket with
    /// much spent lie ahead, and pass later. What would pass before the slice is here is
    /// taken in addition.
    pub(super) fn next(&self, bucket: &Bucket, cost: u64, local: Timestamp) -> u64 {
        let elapsed = local.since(self.since).max(Duration::from_nanos(1));
        let demand = u128::from(self.asked) * LASTS.as_nanos() / elapsed.as_nanos();
        let demand = u64::try_from(demand).unwrap_or(u64::MAX);
        if demand <= cost {
            return cost;
        }
        let slots = |time: Duration| time.as_nanos() as u64 / bucket.interval;
        let lasting = slots(LASTS.saturating_sub(self.lead));
        let wanted = demand.max(lasting).min(self.asked.max(self.last.saturating_mul(2)));
        wanted.max(cost).saturating_add(slots(self.trip.saturating_sub(self.lead)))
    }

    /// Counts anew from a take of so much that was sent at `local`.
    pub(super) fn sent(&mut self, tokens: u64, local: Timestamp) {
        *self = Self { since: local, last: tokens, asked: 0, ..*self };
    }

    /// Notes how far ahead the slice began that the take brought at `local`.
    pub(super) fn landed(&mut self, lead: Duration, local: Timestamp) {
        (self.lead, self.trip) = (lead, local.since(self.since));
    }
}

#[cfg(test)]
mod tests {
    use tollgate::AlgorithmKind;

    use super::*;
    use crate::Terms;
    use crate::counted::{Counted, Whose};

    fn bucket(quota: &str) -> Bucket {
        let terms = Terms::new(AlgorithmKind::TokenBucket, quota.parse().unwrap());
        Bucket::of(&Counted::of(terms, Whose::Limit).unwrap()).unwrap()
    }

    /// The sizes of takes by a caller who asks for one token every so often, for as long as
    /// each is to last.
    fn sizes(bucket: &Bucket, gap: Duration, lead: Duration) -> Vec<u64> {
        let mut local = Timestamp::from_secs(1000);
        let mut size = Size::new(local);
        let mut taken = Vec::new();
        for _ in 0..20 {
            size.ask(1);
            let next = size.next(bucket, 1, local);
            size.sent(next, local);
            size.landed(lead, local);
            taken.push(next);
            let lasts = lead + Duration::from_nanos(bucket.span(next));
            let calls = next.min((lasts.as_nanos() / gap.as_nanos()) as u64).max(1);
            for _ in 1..calls {
                size.ask(1);
            }
            local = local + gap * calls as u32;
        }
        taken
    }

    #[test]
    fn calls_that_are_far_apart_take_no_more_than_they_cost() {
        let taken = sizes(&bucket("1000/s"), Duration::from_millis(150), Duration::ZERO);
        assert_eq!(taken, [1; 20]);
    }

    #[test]
    fn a_slice_doubles_until_it_lasts_as_long_as_it_should() {
        let taken = sizes(&bucket("1000/s"), Duration::from_millis(1), Duration::ZERO);
        assert_eq!(taken[..8], [1, 2, 4, 8, 16, 32, 64, 100]);
        assert_eq!(taken[19], 100);
    }

    #[test]
    fn a_slice_of_a_full_bucket_lasts_although_its_slots_pass_unused() {
        let taken = sizes(&bucket("10_000/s"), Duration::from_millis(2), Duration::ZERO);
        assert_eq!(taken[19], 1000);
    }

    #[test]
    fn a_slice_whose_slots_lie_ahead_holds_what_will_be_asked_for_and_no_more() {
        let taken = sizes(&bucket("10_000/s"), Duration::from_millis(2), Duration::from_secs(1));
        assert_eq!(taken[19], 50);
    }

    #[test]
    fn a_slice_shrinks_at_once_when_demand_does() {
        let bucket = bucket("1000/s");
        let start = Timestamp::from_secs(1000);
        let mut size = Size::new(start);
        size.sent(5000, start);
        size.landed(Duration::from_secs(1), start);
        size.ask(10);
        assert_eq!(size.next(&bucket, 1, start + Duration::from_millis(500)), 2);
        assert_eq!(size.next(&bucket, 1, start + Duration::from_secs(5)), 1);
    }

    #[test]
    fn what_is_being_waited_for_is_taken_at_once() {
        let start = Timestamp::from_secs(1000);
        let mut size = Size::new(start);
        size.sent(1, start);
        for _ in 0..300 {
            size.ask(2);
        }
        let later = start + Duration::from_millis(1);
        assert_eq!(size.next(&bucket("1_000_000/s"), 2, later), 600);
        size.landed(Duration::ZERO, later);
        assert_eq!(size.next(&bucket("1_000_000/s"), 2, later), 1600, "and what passes meanwhile");
    }
}
