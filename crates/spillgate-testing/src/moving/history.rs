use std::fmt;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use spillgate::{AlgorithmKind, Quota, Start, Timestamp};

use super::{Caller, Quotas};

/// What happens to one limit, in order.
#[derive(Clone, Debug)]
pub struct MovingHistory {
    /// The quotas that it begins with.
    pub quotas: Quotas,
    /// When it begins.
    pub start: Timestamp,
    /// What happens, and when.
    pub changes: Vec<(Timestamp, Change)>,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Change {
    /// See [`check`](super::Moving::check).
    Check(Caller, Amount),
    /// See [`reserve`](super::Moving::reserve).
    Reserve(Caller, Amount),
    /// A call that is made again, if it is denied, when its caller was told to.
    ComeBack(Caller, Amount),
    /// See [`settle`](super::Moving::settle): of the call so many changes ago.
    Settle(usize, u64),
    /// See [`debit`](super::Moving::debit).
    Debit(&'static str, u64),
    /// See [`refund`](super::Moving::refund).
    Refund(&'static str, u64),
    /// See [`reset`](super::Moving::reset).
    Reset(&'static str),
    /// See [`set_override`](super::Moving::set_override): for some time, or for ever.
    Override(&'static str, Option<(Quota, Option<Duration>)>),
    /// See [`reload`](super::Moving::reload).
    Reload(Quotas),
    /// See [`restart`](super::Moving::restart).
    Restart,
}

/// A cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So much.
    Of(u64),
    /// All that is left to a caller without a tier.
    AllLeft,
}

pub(super) const KEYS: [&str; 2] = ["ann", "bob"];
const TIERS: [&str; 2] = ["gold", "silver"];

/// Histories under limits of one kind.
pub(super) fn histories(kind: AlgorithmKind) -> impl Strategy<Value = MovingHistory> {
    let starts = (1_700_000_000..1_800_000_000_u64).prop_map(Timestamp::from_secs);
    // Few quotas each, so that they come again.
    let few = vec(quota(kind), 2..5);
    let tiers = proptest::option::weighted(0.4, Just(()));
    (few, tiers, starts).prop_flat_map(move |(few, tiers, start)| {
        let sets = sets(&few, tiers.is_some());
        let steps = vec((pauses(), changes(few, sets.clone())), 1..40);
        (select(sets), steps).prop_map(move |(quotas, steps)| {
            let mut now = start;
            let changes = steps.into_iter().map(|(pause, change)| {
                // Words are rounded up by steps of less than this: nothing falls on a boundary.
                now = now + pause + Duration::from_micros(1_003);
                (now, change)
            });
            MovingHistory { quotas, start, changes: changes.collect() }
        })
    })
}

/// What a limit may be changed to, with the same tiers.
fn sets(few: &[Quota], has_tiers: bool) -> Vec<Quotas> {
    let mut sets = Vec::new();
    for base in few {
        for tiers in few.windows(2) {
            let tiers: Vec<_> = TIERS.into_iter().zip(tiers.iter().copied()).collect();
            if has_tiers {
                sets.push(Quotas { base: *base, tiers });
            }
        }
    }
    if sets.is_empty() {
        sets.extend(few.iter().map(|base| Quotas { base: *base, tiers: Vec::new() }));
    }
    sets
}

fn pauses() -> impl Strategy<Value = Duration> {
    prop_oneof![
        4 => Just(Duration::ZERO),
        2 => (0..2_000_000_000_u64).prop_map(Duration::from_nanos),
        3 => (0..1_000_u64).prop_map(Duration::from_secs),
        1 => (0..100_000_u64).prop_map(Duration::from_secs),
    ]
}

fn changes(few: Vec<Quota>, sets: Vec<Quotas>) -> impl Strategy<Value = Change> {
    let callers = (select(&KEYS[..]), proptest::option::of(select(&TIERS[..])))
        .prop_map(|(key, tier)| Caller { key, tier });
    let keys = select(&KEYS[..]);
    let numbers = || prop_oneof![3 => 1..12_u64, 1 => 1..1_000_u64];
    let amounts = || prop_oneof![2 => numbers().prop_map(Amount::Of), 1 => Just(Amount::AllLeft)];
    let ends = proptest::option::of((1..1_000_u64).prop_map(Duration::from_secs));
    prop_oneof![
        12 => (callers.clone(), amounts()).prop_map(|(caller, cost)| Change::Check(caller, cost)),
        4 => (callers.clone(), amounts())
            .prop_map(|(caller, cost)| Change::Reserve(caller, cost)),
        2 => (callers, amounts()).prop_map(|(caller, cost)| Change::ComeBack(caller, cost)),
        4 => (0..8_usize, prop_oneof![2 => Just(0), 2 => 0..12_u64, 1 => 0..1_000_u64])
            .prop_map(|(ago, actual)| Change::Settle(ago, actual)),
        1 => (keys.clone(), numbers()).prop_map(|(key, amount)| Change::Debit(key, amount)),
        1 => (keys.clone(), numbers()).prop_map(|(key, amount)| Change::Refund(key, amount)),
        1 => keys.clone().prop_map(Change::Reset),
        4 => (keys, proptest::option::of((select(few), ends)))
            .prop_map(|(key, own)| Change::Override(key, own)),
        3 => select(sets).prop_map(Change::Reload),
        1 => Just(Change::Restart),
    ]
}

/// Quotas that people write, and some whose bursts and rates are far apart.
fn quota(kind: AlgorithmKind) -> impl Strategy<Value = Quota> {
    const QUOTAS: [&str; 20] = [
        "5/s",
        "10/min",
        "10/min burst 30",
        "1000/min",
        "1000/h",
        "5/day",
        "7/day",
        "10/day",
        "100/day",
        "50/day burst 9",
        "6/min burst 100",
        "36/h burst 10",
        "2/s burst 20",
        "3/min burst 50",
        "30/min burst 1000",
        "100 per 1000 s",
        "10 per 1000 s",
        "20 per 10 s",
        "1000 per 2000 s",
        "100/s",
    ];
    select(&QUOTAS[..]).prop_filter_map("countable", move |text| {
        let quota: Quota = text.parse().ok()?;
        // With refills larger than the burst, a word cannot represent the depth of a debt.
        let is_exact = kind != AlgorithmKind::IntervalBucket || quota.burst() >= quota.amount();
        let is_counted = kind.with_quota(&quota, Start::Full, Timestamp::ZERO).is_ok();
        (is_exact && is_counted).then_some(quota)
    })
}

impl fmt::Display for MovingHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} from {}", self.quotas, self.start)?;
        for (index, (now, change)) in self.changes.iter().enumerate() {
            writeln!(f, "  {:>2}. at {now} {change:?}", index + 1)?;
        }
        Ok(())
    }
}
