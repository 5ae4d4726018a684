use std::time::Duration;

use spillgate::Timestamp;

use super::bucket::Bucket;

/// How much to take next, by recent demand.
///
/// While calls are far apart, a take brings only their cost: nothing is held, and nothing to be
/// given back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// When the current period began, by this node's clock.
    since: Timestamp,
    /// Demand in this period, granted or not.
    asked: u64,
    /// Demand in the previous period. It halves per idle period, so that recurring bursts are
    /// anticipated.
    before: u64,
    /// When the last take was sent.
    sent: Timestamp,
    /// Its amount.
    last: u64,
    /// How far ahead of Redis time the last slice began.
    lead: Duration,
    /// The round trip of the last take.
    trip: Duration,
}

/// How long a slice should last: long enough that a busy caller needs about ten calls per second
/// and node; short enough that what is held follows demand from node to node.
pub(super) const LASTS: Duration = Duration::from_millis(100);

impl Size {
    /// No demand yet.
    pub(super) fn new(local: Timestamp) -> Self {
        Self {
            since: local,
            asked: 0,
            before: 0,
            sent: local,
            last: 0,
            lead: Duration::ZERO,
            trip: Duration::ZERO,
        }
    }

    /// Counts demand.
    #[inline]
    pub(super) fn ask(&mut self, cost: u64, local: Timestamp) {
        if local.since(self.since) >= LASTS {
            self.begin_anew(local);
        }
        self.asked = self.asked.saturating_add(cost);
    }

    fn begin_anew(&mut self, local: Timestamp) {
        let times = local.since(self.since).as_nanos() / LASTS.as_nanos();
        let fades = u32::try_from(times - 1).unwrap_or(u32::MAX);
        let before = self.asked.max(self.before / 2);
        self.before = before.checked_shr(fades).unwrap_or(0);
        (self.since, self.asked) = (local, 0);
    }

    /// An amount that lasts for a while at the current demand; at least the cost of the call, which
    /// has been [counted](Self::ask).
    ///
    /// A slice must hold more than the demand: slots pass at the pace of refill, and those of a
    /// full bucket at once, so it must be as long as it should last. That wastes nothing, since a
    /// full bucket would overflow. Slots of a drained bucket lie ahead, and pass later. What would
    /// pass during the round trip is added.
    pub(super) fn next(&self, bucket: &Bucket, cost: u64) -> u64 {
        let demand = self.asked.max(self.before);
        if demand <= cost {
            return cost;
        }
        let slots = |time: Duration| time.as_nanos() as u64 / bucket.interval;
        // Gradually: other nodes may need tokens, too.
        let lasting = slots(LASTS.saturating_sub(self.lead));
        let lasting = lasting.min(demand.max(self.last).saturating_mul(4));
        demand.max(lasting).saturating_add(slots(self.trip.saturating_sub(self.lead)))
    }

    /// Time since the last take.
    pub(super) fn since_take(&self, local: Timestamp) -> Duration {
        local.since(self.sent)
    }

    /// Notes that a take was sent.
    pub(super) fn sent(&mut self, tokens: u64, local: Timestamp) {
        (self.sent, self.last) = (local, tokens);
    }

    /// Notes how far ahead the taken slice began.
    pub(super) fn completed(&mut self, lead: Duration, local: Timestamp) {
        (self.lead, self.trip) = (lead, local.since(self.sent));
    }
}

#[cfg(test)]
mod tests {
    use spillgate::AlgorithmKind;

    use super::*;
    use crate::Terms;
    use crate::effective_quota::EffectiveQuota;

    const START: Timestamp = Timestamp::from_secs(1000);

    fn bucket(quota: &str) -> Bucket {
        let terms = Terms::new(AlgorithmKind::TokenBucket, quota.parse().unwrap());
        Bucket::of(&EffectiveQuota::of(terms).unwrap()).unwrap()
    }

    /// The sizes of takes by a caller who asks for one token every so often, for as long as
    /// each is to last.
    fn sizes(bucket: &Bucket, gap: Duration, lead: Duration) -> Vec<u64> {
        let mut local = START;
        let mut size = Size::new(local);
        let mut taken = Vec::new();
        for _ in 0..20 {
            size.ask(1, local);
            let next = size.next(bucket, 1);
            size.sent(next, local);
            size.completed(lead, local);
            taken.push(next);
            let lasts = lead + Duration::from_nanos(bucket.span(next));
            let calls = next.min((lasts.as_nanos() / gap.as_nanos()) as u64).max(1);
            for _ in 1..calls {
                local = local + gap;
                size.ask(1, local);
            }
            local = local + gap;
        }
        taken
    }

    #[test]
    fn calls_that_are_far_apart_take_no_more_than_they_cost() {
        let taken = sizes(&bucket("1000/s"), Duration::from_millis(150), Duration::ZERO);
        assert_eq!(taken, [1; 20]);
    }

    #[test]
    fn a_slice_grows_until_it_lasts_as_long_as_it_should() {
        let taken = sizes(&bucket("1000/s"), Duration::from_millis(1), Duration::ZERO);
        assert_eq!(taken[..2], [1, 8]);
        assert!(taken[5..].iter().all(|taken| (90..=101).contains(taken)), "{taken:?}");
    }

    #[test]
    fn a_slice_of_a_full_bucket_lasts_although_its_slots_pass_unused() {
        let taken = sizes(&bucket("10_000/s"), Duration::from_millis(2), Duration::ZERO);
        assert_eq!(taken[19], 1000);
    }

    #[test]
    fn a_slice_whose_slots_lie_ahead_holds_what_will_be_asked_for_and_no_more() {
        let taken = sizes(&bucket("10_000/s"), Duration::from_millis(2), Duration::from_secs(1));
        assert!((45..=51).contains(&taken[19]), "{taken:?}");
    }

    #[test]
    fn a_slice_shrinks_when_demand_does() {
        let bucket = bucket("1000/s");
        let mut size = Size::new(START);
        size.completed(Duration::from_secs(1), START);
        size.ask(800, START);
        let mut after = |millis, cost| {
            let local = START + Duration::from_millis(millis);
            size.ask(cost, local);
            size.next(&bucket, cost)
        };
        assert_eq!(after(100, 1), 800);
        assert_eq!(after(200, 1), 400);
        assert_eq!(after(500, 1), 50);
        assert_eq!(after(5000, 1), 1);
    }

    #[test]
    fn a_burst_that_comes_again_is_taken_at_once() {
        let bucket = bucket("1000/s");
        let mut size = Size::new(START);
        size.completed(Duration::from_secs(1), START);
        for _ in 0..60 {
            size.ask(1, START);
        }
        let later = START + Duration::from_millis(150);
        size.ask(1, later);
        assert_eq!(size.next(&bucket, 1), 60);
    }

    #[test]
    fn what_is_being_waited_for_is_taken_at_once() {
        let mut size = Size::new(START);
        size.sent(1, START);
        let later = START + Duration::from_millis(1);
        for _ in 0..300 {
            size.ask(2, later);
        }
        let bucket = bucket("1_000_000/s");
        assert_eq!(size.next(&bucket, 2), 600 * 4);
        size.completed(Duration::ZERO, later);
        assert_eq!(size.next(&bucket, 2), 600 * 4 + 1000, "and what passes meanwhile");
    }
}
