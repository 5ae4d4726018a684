use std::future::Future;
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;
use spillgate::algorithm::{Algorithm, Word};
use spillgate::{AlgorithmKind, Decision, Timestamp};

use crate::backend::{Entry, Exchange, Found, Model, Op, Result};
use crate::clock_sample::ClockSample;
use crate::effective_quota::EffectiveQuota;
use crate::lease::bucket::Bucket;
use crate::lease::held::Held;
use crate::lease::slice::Slice;
use crate::lease::slice_return::{SliceReturn, Tokens};
use crate::lease::{LeaseSource, Named, Taken};
use crate::stats::LeaseCounters;
use crate::{Name, Terms};

const NAME: Name = Name::from_bytes([7; 16]);
const NODES: usize = 3;

/// Redis as part of this process.
#[derive(Debug)]
struct Near(Model);

#[derive(Clone, Debug)]
struct TheCaller;

impl Named for TheCaller {
    fn name(&self) -> Name {
        NAME
    }
}

impl LeaseSource for Near {
    type Caller = TheCaller;

    fn local(&self) -> Timestamp {
        unreachable!("nodes have clocks of their own")
    }

    fn nodes(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(NODES as u32)
    }

    fn margin(&self) -> Duration {
        Duration::from_secs(1)
    }

    async fn take(
        self: &Arc<Self>,
        _: &TheCaller,
        _: &EffectiveQuota,
        _: u64,
        _: u64,
    ) -> Result<Taken> {
        unreachable!("slices are taken by hand")
    }

    async fn look(
        &self,
        _: &TheCaller,
        wanted: &EffectiveQuota,
    ) -> Result<Option<(Word, Timestamp)>> {
        let reply = self.0.run_now(&[wanted.entry(NAME, Word::from_bits(0), Op::Look)])?;
        let Found::Passed(word) = reply.answers[0] else { panic!("a look passes") };
        Ok(Some((word, reply.now)))
    }

    async fn exchange(&self, exchange: &Exchange) -> Result<bool> {
        Ok(self.0.exchange_now(exchange))
    }
}

/// Runs what waits for nothing.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("it waits"),
    }
}

/// Something that happens to a bucket and to the nodes that hold slices of it.
#[derive(Clone, Debug)]
enum Event {
    /// So many thousandths of a token are refilled.
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
        2 => (0_u64..20_000).prop_map(Event::Pass),
        3 => (node.clone(), 1_u64..40, 0_u64..2_000).prop_map(|(n, c, d)| Event::Take(n, c, d)),
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
    redis: Near,
    now: Timestamp,
    nodes: [Held; NODES],
    /// When and how much.
    admitted: Vec<(Timestamp, u64)>,
    /// What a node spent last, if nothing was decided since.
    last: Option<(usize, Decision)>,
}

impl SliceFleet {
    fn new() -> Self {
        Self::of("1000/s burst 40")
    }

    fn of(quota: &str) -> Self {
        let terms = Terms::new(AlgorithmKind::TokenBucket, quota.parse().unwrap());
        let effective = EffectiveQuota::of(terms).unwrap();
        let now = Timestamp::from_secs(1_700_000_000);
        Self {
            effective,
            bucket: Bucket::of(&effective).unwrap(),
            redis: Near(Model::new(now)),
            now,
            nodes: std::array::from_fn(|_| Held::default()),
            admitted: Vec::new(),
            last: None,
        }
    }

    fn pass(&mut self, thousandths: u64) {
        self.now = self.now + Duration::from_nanos(thousandths * self.bucket.interval / 1000);
        self.redis.0.set_now(self.now);
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
        self.redis.0.run_now(&[entry]).unwrap().answers.remove(0)
    }

    fn take(&mut self, node: usize, most: u64, delay: u64) {
        let local = self.local(node);
        let sample = ClockSample { sent: local, received: local, now: self.now };
        if let Found::Passed(word) = self.run(Op::Take { least: 1, most }) {
            let taken = Taken {
                sample,
                effective: self.effective,
                word,
                is_granted: true,
                is_moving: false,
            };
            let slice = Slice::of(&self.bucket, &taken, 1, most).unwrap();
            self.pass(delay);
            let local = self.local(node);
            self.nodes[node].add(&self.bucket, slice, local);
        }
    }

    fn happen(&mut self, event: &Event) {
        let last = self.last.take();
        match *event {
            Event::Pass(thousandths) => self.pass(thousandths),
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
            Event::GiveBack(node) => self.give_back(node),
            Event::Undo => {
                if let Some((node, decision)) = last {
                    let spent = decision.spent().unwrap();
                    assert!(self.nodes[node].undo(&self.bucket, &spent, spent.cost));
                    self.admitted.pop();
                }
            }
        }
    }

    /// Gives back what a node holds; what Redis does not take, it keeps.
    fn give_back(&mut self, node: usize) {
        let local = self.local(node);
        let slices = self.nodes[node].take(&self.bucket, local, |_| true);
        let mut back = SliceReturn {
            caller: TheCaller,
            effective: self.effective,
            bucket: self.bucket,
            slices,
            lost: Tokens::default(),
            of: local,
        };
        at_once(back.send(&self.redis, &LeaseCounters::default()));
        for slice in back.slices {
            self.nodes[node].add(&self.bucket, slice, local);
        }
    }

    /// How much is left in Redis.
    fn stored(&self) -> u64 {
        let Found::Passed(word) = self.run(Op::Look) else { panic!("a look passes") };
        self.bucket.algorithm.remaining(word, self.now)
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
        quota in prop::sample::select(vec!["1000/s burst 40", "10/s burst 40", "1/s burst 40"]),
        events in prop::collection::vec(event(), 1..200)
    ) {
        let mut fleet = SliceFleet::of(quota);
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
    fleet.pass(5_000);
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
    fleet.pass(19_000);
    assert_eq!(fleet.nodes[1].left(&fleet.bucket, fleet.local(1)), 20);
}

#[test]
fn what_is_given_back_is_there_for_others_if_nobody_came_between() {
    for is_between in [false, true] {
        let mut fleet = SliceFleet::new();
        fleet.take(0, 40, 0);
        if is_between {
            fleet.pass(1_000);
            fleet.happen(&Event::SpendStrictly(1));
        }
        fleet.happen(&Event::GiveBack(0));
        fleet.happen(&Event::GiveBack(0));
        let left = fleet.stored();
        assert_eq!(left, if is_between { 0 } else { 40 });
    }
}

#[test]
fn the_call_that_a_slice_was_taken_for_is_served_however_long_the_answer_took() {
    let mut fleet = SliceFleet::new();
    fleet.take(0, 5, 1_000_000);
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

#[test]
fn what_others_have_spent_behind_a_slice_is_exchanged_for_it() {
    // A token is refilled in ten seconds.
    let mut fleet = SliceFleet::of("1 per 10 s burst 40");
    fleet.happen(&Event::SpendStrictly(1));
    fleet.take(0, 10, 0);
    fleet.take(1, 10, 0);
    fleet.happen(&Event::Spend(0, 2));
    fleet.happen(&Event::Spend(1, 3));
    fleet.happen(&Event::SpendStrictly(4));
    assert_eq!(fleet.stored(), 15);
    fleet.pass(30);
    fleet.happen(&Event::GiveBack(0));
    // But for what was refilled since it was taken.
    fleet.pass(1);
    assert_eq!(fleet.stored(), 15 + 8);
    fleet.happen(&Event::GiveBack(1));
    fleet.pass(31);
    assert_eq!(fleet.stored(), 15 + 8 + 7);
    fleet.happen(&Event::SpendStrictly(30));
    assert!(fleet.is_within_quota());
}
