use std::fmt;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use spillgate::{AlgorithmKind, Quota, Start, Timestamp};

use super::model::Model;
use super::{Caller, Moving, Quotas};

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
    /// See [`Moving::check`].
    Check(Caller, u64),
    /// See [`Moving::reserve`].
    Reserve(Caller, u64),
    /// See [`Moving::settle`]: of the call so many changes ago.
    Settle(usize, u64),
    /// See [`Moving::debit`].
    Debit(&'static str, u64),
    /// See [`Moving::refund`].
    Refund(&'static str, u64),
    /// See [`Moving::reset`].
    Reset(&'static str),
    /// See [`Moving::set_override`].
    Override(&'static str, Option<Quota>),
    /// See [`Moving::reload`].
    Reload(Quotas),
    /// See [`Moving::restart`].
    Restart,
}

pub(super) const KEYS: [&str; 2] = ["ann", "bob"];
const TIERS: [&str; 2] = ["gold", "silver"];

impl Change {
    /// Applies the change to both, and compares what is left. Returns whether to continue.
    pub(super) fn make<S: Moving>(
        &self,
        number: usize,
        now: Timestamp,
        subject: &mut S,
        model: &mut dyn Model,
    ) -> Result<bool, String> {
        match self {
            Self::Check(caller, cost) => {
                let before = model.remaining_in(*caller, now);
                let (passes, _) = subject.check(*caller, *cost, now);
                agree(passes, before, *cost)?;
                if passes {
                    model.spend(*caller, *cost, None, now);
                }
            }
            Self::Reserve(caller, cost) => {
                let before = model.remaining_in(*caller, now);
                let passes = subject.reserve(*caller, *cost, number, now);
                agree(passes, before, *cost)?;
                if passes {
                    model.spend(*caller, *cost, Some(number), now);
                }
            }
            Self::Settle(ago, actual) => {
                let number = number.saturating_sub(*ago);
                subject.settle(number, *actual, now);
                model.settle(number, *actual, now);
            }
            Self::Debit(key, amount) => {
                subject.debit(key, *amount, now);
                model.debit(key, *amount, now);
            }
            Self::Refund(key, amount) => {
                subject.refund(key, *amount, now);
                model.refund(key, *amount, now);
            }
            Self::Reset(key) => {
                subject.reset(key, now);
                model.reset(key, now);
            }
            Self::Override(key, quota) => {
                subject.set_override(key, *quota, now);
                model.set_override(key, *quota, now);
            }
            Self::Reload(quotas) => {
                model.reload(quotas, now);
                if !subject.reload(quotas, now) {
                    return Ok(false);
                }
            }
            Self::Restart => {
                subject.restart(now);
                model.restart(now);
            }
        }
        if model.exceeds_count(now) {
            return Ok(false);
        }
        for key in KEYS {
            let (has, should) = (subject.remaining(key, now), model.remaining(key, now));
            if has > should || has + 1 < should {
                return Err(format!("{key} has {has} left, and should have {should}"));
            }
        }
        Ok(true)
    }
}

/// A call passes only if there is enough, and is denied only if there is hardly enough.
fn agree(passes: bool, remaining: u64, cost: u64) -> Result<(), String> {
    match passes {
        true if remaining < cost => Err(format!("{cost} passed of {remaining}")),
        false if remaining > cost => Err(format!("{cost} did not pass of {remaining}")),
        _ => Ok(()),
    }
}

/// Histories under limits of one kind, with quotas that people write.
pub(super) fn histories(kind: AlgorithmKind) -> impl Strategy<Value = MovingHistory> {
    let starts = (1_700_000_000..1_800_000_000_u64).prop_map(Timestamp::from_secs);
    let steps = vec((pauses(), changes(kind)), 1..40);
    (quotas(kind), starts, steps).prop_map(|(quotas, start, steps)| {
        let mut now = start;
        let changes = steps.into_iter().map(|(pause, change)| {
            // Words are rounded up by steps of less than this: nothing falls on a boundary.
            now = now + pause + Duration::from_micros(1_003);
            (now, change)
        });
        MovingHistory { quotas, start, changes: changes.collect() }
    })
}

fn pauses() -> impl Strategy<Value = Duration> {
    prop_oneof![
        4 => Just(Duration::ZERO),
        2 => (0..2_000_000_000_u64).prop_map(Duration::from_nanos),
        2 => (0..120_u64).prop_map(Duration::from_secs),
        1 => (0..100_000_u64).prop_map(Duration::from_secs),
    ]
}

fn changes(kind: AlgorithmKind) -> impl Strategy<Value = Change> {
    let callers = (select(&KEYS[..]), proptest::option::of(select(&TIERS[..])))
        .prop_map(|(key, tier)| Caller { key, tier });
    let keys = select(&KEYS[..]);
    let amounts = || prop_oneof![3 => 1..12_u64, 1 => 1..3_000_u64];
    prop_oneof![
        12 => (callers.clone(), amounts()).prop_map(|(caller, cost)| Change::Check(caller, cost)),
        4 => (callers, amounts()).prop_map(|(caller, cost)| Change::Reserve(caller, cost)),
        4 => (0..8_usize, prop_oneof![2 => 0..12_u64, 1 => 0..3_000_u64])
            .prop_map(|(ago, actual)| Change::Settle(ago, actual)),
        2 => (keys.clone(), amounts()).prop_map(|(key, amount)| Change::Debit(key, amount)),
        1 => (keys.clone(), amounts()).prop_map(|(key, amount)| Change::Refund(key, amount)),
        1 => keys.clone().prop_map(Change::Reset),
        3 => (keys, proptest::option::of(quota(kind)))
            .prop_map(|(key, quota)| Change::Override(key, quota)),
        2 => quotas(kind).prop_map(Change::Reload),
        1 => Just(Change::Restart),
    ]
}

fn quota(kind: AlgorithmKind) -> impl Strategy<Value = Quota> {
    const QUOTAS: [&str; 8] = [
        "5/s",
        "10/min",
        "10/min burst 30",
        "1000/min",
        "1000/h",
        "5/day",
        "7/day",
        "50/day burst 9",
    ];
    select(&QUOTAS[..]).prop_filter_map("countable", move |text| {
        let quota: Quota = text.parse().ok()?;
        // With refills larger than the burst, a word cannot represent the depth of a debt.
        let is_exact = kind != AlgorithmKind::IntervalBucket || quota.burst() >= quota.amount();
        let is_counted = kind.with_quota(&quota, Start::Full, Timestamp::ZERO).is_ok();
        (is_exact && is_counted).then_some(quota)
    })
}

/// Quotas of a limit that may have tiers: of one period, if they must be.
fn quotas(kind: AlgorithmKind) -> impl Strategy<Value = Quotas> {
    let tiers = proptest::option::weighted(0.6, [1..2_000_u64, 1..2_000_u64]);
    (quota(kind), tiers).prop_map(move |(base, amounts)| {
        let tier = |(name, amount): (&'static str, u64)| {
            let period = base.period().unwrap_or(Duration::from_secs(60));
            Quota::per(amount, period).build().ok().map(|quota| (name, quota))
        };
        let tiers = amounts.into_iter().flat_map(|amounts| TIERS.into_iter().zip(amounts));
        Quotas { base, tiers: tiers.filter_map(tier).collect() }
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
