use std::time::Duration;

use proptest::prelude::*;
use spillgate::algorithm::{Algorithm, Word};
use spillgate::{AlgorithmKind, Decision, Timestamp};

use crate::backend::{Entry, Found, Model, Op};
use crate::clock_sample::ClockSample;
use crate::effective_quota::{EffectiveQuota, QuotaOwner};
use crate::lease::Taken;
use crate::lease::bucket::Bucket;
use crate::lease::held::Held;
use crate::lease::slice::Slice;
use crate::{Name, Terms};

const NAME: Name = Name::from_bytes([7; 16]);
const NODES: usize = 3;

/// Something that happens to a bucket and to the nodes that hold slices of it.
#[derive(Clone, Debug)]
enum Event {
    Pass(u64),
    /// A node takes up to so much, and learns of it when so much time has passed.
    Take(usize, u64, u64),
    Spend(usize, u64),
    SpendStrictly(u64),
    GiveBack(usize),
    /// What was spent last is taken back, if nothing has happened since.
    Undo,
}

fn event() -> impl Strategy<Value = Event> {
    let node = 0..NODES;
    prop_oneof![
        2 => (0_u64..20_000_000).prop_map(Event::Pass),
        3 => (node.clone(), 1_u64..40, 0_u64..2_000_000).prop_map(|(n, c, d)| Event::Take(n, c, d)),
        6 => (node.clone(), 1_u64..12).prop_map(|(node, cost)| Event::Spend(node, cost)),
        1 => (1_u64..4).prop_map(Event::SpendStrictly),
        1 => node.prop_map(Event::GiveBack),
        1 => Just(Event::Undo),
    ]
}

/// One bucket in Redis, nodes that hold slices of it, and all that was admitted.
struct SliceFleet {
    effective: EffectiveQuota,
    bucket: Bucket,
    model: Model,
    now: Timestamp,
    nodes: [Held; NODES],
    /// When and how much.
    admitted: Vec<(Timestamp, u64)>,
    /// What a node spent last, if nothing was decided since.
    last: Option<(usize, Decision)>,
}

impl SliceFleet {
    fn new() -> Self {
        let quota = "1000/s burst 40".parse().unwrap();
        let terms = Terms::new(AlgorithmKind::TokenBucket, quota);
        let effective = EffectiveQuota::of(terms, QuotaOwner::Limit).unwrap();
        let now = Timestamp::from_secs(1_700_000_000);
        Self {
            effective,
            bucket: Bucket::of(&effective).unwrap(),
            model: Model::new(now),
            now,
            nodes: std::array::from_fn(|_| Held::default()),
            admitted: Vec::new(),
            last: None,
        }
    }

    fn pass(&mut self, nanos: u64) {
        self.now = self.now + Duration::from_nanos(nanos);
        self.model.set_now(self.now);
    }

    /// A node's clock runs at a pace of its own, and began at a time of its own.
    fn local(&self, node: usize) -> Timestamp {
        let elapsed = self.now.since(Timestamp::from_secs(1_699_999_999)).as_nanos() as u64;
        let pace = [999_500, 1_000_000, 1_000_500][node];
        Timestamp::from_nanos((u128::from(elapsed) * pace / 1_000_000) as u64)
    }

    fn run(&self, op: Op) -> Found {
        let fresh = Word::from_bits(0);
        let EffectiveQuota { terms, algorithm, .. } = self.effective;
        let entry = Entry { name: NAME, terms, algorithm, fresh, op };
        self.model.run_now(&[entry]).unwrap().answers[0]
    }

    fn take(&mut self, node: usize, most: u64, delay: u64) {
        let local = self.local(node);
        let sample = ClockSample { sent: local, received: local, now: self.now };
        if let Found::Passed(word) = self.run(Op::Take { least: 1, most }) {
            let taken = Taken { sample, effective: self.effective, word, is_granted: true };
            let slice = Slice::of(&self.bucket, &taken, 1, most).unwrap();
            self.pass(delay);
            self.nodes[node].add(slice);
        }
    }

    fn happen(&mut self, event: &Event) {
        let last = self.last.take();
        match *event {
            Event::Pass(nanos) => self.pass(nanos),
            Event::Take(node, most, delay) => self.take(node, most, delay),
            Event::Spend(node, cost) => {
                let local = self.local(node);
                if let Some(decision) = self.nodes[node].spend(&self.bucket, cost, local) {
                    assert!(decision.is_allowed());
                    self.admitted.push((self.now, cost));
                    self.last = Some((node, decision));
                }
            }
            Event::SpendStrictly(cost) => {
                if let Found::Passed(_) = self.run(Op::Spend { cost, is_shadow: false }) {
                    self.admitted.push((self.now, cost));
                }
            }
            Event::GiveBack(node) => {
                let local = self.local(node);
                let slice = self.nodes[node].take_last(&self.bucket, local);
                let margin = Duration::from_secs(1);
                if let Some(back) =
                    slice.and_then(|slice| slice.give_back(NAME, self.effective.terms, margin))
                {
                    self.model.exchange_now(&back);
                }
            }
            Event::Undo => {
                if let Some((node, decision)) = last {
                    let spent = decision.spent().unwrap();
                    assert!(self.nodes[node].undo(&self.bucket, &spent, spent.cost));
                    self.admitted.pop();
                }
            }
        }
    }

    /// A bucket of the same quota, in one place, must have admitted all that was.
    fn is_within_quota(&self) -> bool {
        let mut word = Word::from_bits(0);
        self.admitted.iter().all(|&(now, cost)| {
            let spent = self.bucket.algorithm.spend(word, now, cost);
            word = spent.unwrap_or(word);
            spent.is_some()
        })
    }
}

proptest! {
    #[test]
    fn slices_never_admit_more_than_one_bucket_would(
        events in prop::collection::vec(event(), 1..200)
    ) {
        let mut fleet = SliceFleet::new();
        for event in &events {
            fleet.happen(event);
        }
        prop_assert!(fleet.is_within_quota(), "{:?}", fleet.admitted);
    }
}

#[test]
fn a_slice_that_is_spent_in_time_is_spent_whole_and_one_that_is_not_has_melted() {
    let mut fleet = SliceFleet::new();
    fleet.take(1, 20, 0);
    fleet.pass(5_000_000);
    // Slots of a full bucket begin to pass at once. The clocks may differ by 5 µs by now,
    // which costs one more.
    let local = fleet.local(1);
    assert_eq!(fleet.nodes[1].left(&fleet.bucket, local), 14);
    fleet.take(1, 20, 0);
    assert_eq!(
        fleet.nodes[1].left(&fleet.bucket, local),
        35,
        "the two are one, and time was seen anew"
    );
    for _ in 0..35 {
        fleet.happen(&Event::Spend(1, 1));
    }
    assert_eq!(fleet.admitted.len(), 35);
    fleet.happen(&Event::Spend(1, 1));
    assert_eq!(fleet.admitted.len(), 35);
}

#[test]
fn slices_of_a_bucket_with_much_spent_do_not_melt_yet() {
    let mut fleet = SliceFleet::new();
    fleet.happen(&Event::SpendStrictly(20));
    fleet.take(1, 20, 0);
    fleet.pass(19_000_000);
    assert_eq!(fleet.nodes[1].left(&fleet.bucket, fleet.local(1)), 20);
}

#[test]
fn what_is_given_back_is_there_for_others_if_nobody_came_between() {
    for is_between in [false, true] {
        let mut fleet = SliceFleet::new();
        fleet.take(0, 40, 0);
        if is_between {
            fleet.pass(1_000_000);
            fleet.happen(&Event::SpendStrictly(1));
        }
        fleet.happen(&Event::GiveBack(0));
        fleet.happen(&Event::GiveBack(0));
        let Found::Passed(word) = fleet.run(Op::Look) else { panic!("a look passes") };
        let left = fleet.bucket.algorithm.remaining(word, fleet.now);
        assert_eq!(left, if is_between { 0 } else { 40 });
    }
}

#[test]
fn the_call_that_a_slice_was_taken_for_is_served_however_long_the_answer_took() {
    let mut fleet = SliceFleet::new();
    fleet.take(0, 5, 1_000_000_000);
    let decision = fleet.nodes[0].spend_as_granted(0, &fleet.bucket, 2).unwrap();
    assert_eq!((decision.is_allowed(), decision.remaining()), (true, 38));
    assert_eq!(fleet.nodes[0].left(&fleet.bucket, fleet.local(0)), 0);
}

#[test]
fn only_the_last_cost_is_taken_back_and_only_once() {
    let mut fleet = SliceFleet::new();
    fleet.happen(&Event::SpendStrictly(10));
    fleet.take(1, 10, 0);
    let local = fleet.local(1);
    let (bucket, held) = (fleet.bucket, &mut fleet.nodes[1]);
    let mut spend = |cost| held.spend(&bucket, cost, local).unwrap().spent().unwrap();
    let (first, second) = (spend(3), spend(4));
    assert!(!held.undo(&bucket, &first, 3));
    assert!(held.undo(&bucket, &second, 4));
    assert!(!held.undo(&bucket, &second, 4));
    assert_eq!(held.left(&bucket, local), 7);
}
