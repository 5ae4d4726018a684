//! Adaptive rates against a slow model, while quotas change all the time.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use spillgate::adaptive::AdaptiveRate;
use spillgate::{Quota, Timestamp};
use spillgate_testing::strategy;

use super::{Script, anyone, at};

#[derive(Clone, Debug)]
enum Act {
    /// After some nanoseconds, a call of a cost.
    Call(u64, u64),
    /// After some nanoseconds, another quota.
    Change(u64, Quota),
}

fn quotas() -> impl Strategy<Value = Quota> {
    let periods =
        prop::sample::select(vec![1_000_000_007, 1_000_000_000, 7_000_000_000, 60_000_000_000]);
    (1_u64..=50, periods, 1_u64..=60).prop_map(|(amount, period, burst)| {
        Quota::per(amount, Duration::from_nanos(period)).burst(burst).build().unwrap()
    })
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let elapsed =
        || prop_oneof![Just(0), 1_u64..1_000, 1_u64..3_000_000_000, 1_u64..90_000_000_000];
    let call = (elapsed(), 1_u64..=12).prop_map(|(elapsed, cost)| Act::Call(elapsed, cost));
    let change = (elapsed(), quotas()).prop_map(|(elapsed, quota)| Act::Change(elapsed, quota));
    vec(prop_oneof![5 => call, 2 => change], 1..120)
}

/// How many units a token has, given the highest quota.
const UNITS: u64 = 4 * 20_000_000;

fn interval(quota: Quota) -> u64 {
    quota.interval().unwrap().as_nanos() as u64
}

/// A caller's tokens, as floating-point numbers that grow until they are used.
struct Model {
    tokens: f64,
    quota: Quota,
    at: Timestamp,
}

impl Model {
    fn move_to(&mut self, now: Timestamp) {
        self.tokens += now.since(self.at).as_nanos() as f64 / interval(self.quota) as f64;
        self.at = now;
    }

    fn left(&self) -> f64 {
        self.tokens.min(self.quota.burst() as f64)
    }
}

fn moving(quota: Quota) -> AdaptiveRate<str> {
    let rate = AdaptiveRate::builder(
        Script::default(),
        "1/min".parse().unwrap()..="50/s".parse().unwrap(),
    );
    let rate = rate.build().unwrap();
    rate.set_range_at(&(quota..=quota), at(0)).unwrap();
    rate
}

proptest! {
    #![proptest_config(strategy::cases(400))]

    /// Every decision is that of the model, but for what is rounded: less than a millionth of a
    /// token per call or change.
    #[test]
    fn decisions_are_those_of_a_bucket_whose_tokens_stay(first in quotas(), acts in acts()) {
        let rate = moving(first);
        let mut model = Model { tokens: f64::INFINITY, quota: first, at: at(0) };
        let mut now = at(0);
        for (done, act) in acts.iter().enumerate() {
            let (Act::Call(elapsed, _) | Act::Change(elapsed, _)) = act;
            now = now + Duration::from_nanos(*elapsed);
            model.move_to(now);
            match *act {
                Act::Change(_, quota) => {
                    rate.set_range_at(&(quota..=quota), now).unwrap();
                    prop_assert_eq!(rate.quota(), quota);
                    model.quota = quota;
                }
                Act::Call(_, cost) => {
                    let decision = rate.check_at("alice", cost, anyone(), now);
                    let (left, rounded) = (model.left(), 1e-6 * (done + 1) as f64);
                    if decision.is_allowed() {
                        prop_assert!(left + 1e-9 >= cost as f64, "{left} left for {cost}, {now}");
                        model.tokens = left - cost as f64;
                        prop_assert!((decision.remaining() as f64) <= model.tokens + 1e-9);
                        prop_assert!((decision.remaining() + 1) as f64 > model.tokens - rounded);
                    } else {
                        prop_assert!(left - rounded < cost as f64, "{left} left for {cost}, {now}");
                        prop_assert_eq!(decision.retry_after().is_none(), cost > model.quota.burst());
                    }
                    prop_assert_eq!(decision.limit(), model.quota.burst());
                    prop_assert_eq!(decision.now(), now);
                }
            }
        }
    }

    /// In no interval does a caller get more than the highest quota that was in force in it allows,
    /// not one more.
    #[test]
    fn no_interval_has_more_than_its_highest_quota_allows(first in quotas(), acts in acts()) {
        let rate = moving(first);
        let (mut now, mut quota) = (at(0), first);
        // Quotas in force, and what was allowed, by time.
        let mut spent: Vec<(Timestamp, Quota, u64)> = Vec::new();
        for act in acts {
            match act {
                Act::Change(elapsed, next) => {
                    now = now + Duration::from_nanos(elapsed);
                    spent.push((now, quota, 0));
                    quota = next;
                    rate.set_range_at(&(quota..=quota), now).unwrap();
                }
                Act::Call(elapsed, cost) => {
                    now = now + Duration::from_nanos(elapsed);
                    let is_allowed = rate.check_at("alice", cost, anyone(), now).is_allowed();
                    spent.push((now, quota, if is_allowed { cost } else { 0 }));
                }
            }
        }
        for (index, (from, ..)) in spent.iter().enumerate() {
            let (mut burst, mut fastest, mut slowest, mut total) = (0, u64::MAX, 0, 0);
            for (until, quota, cost) in &spent[index..] {
                burst = burst.max(quota.burst());
                fastest = fastest.min(interval(*quota));
                total += cost;
                // Below a quarter of the highest rate, time is counted in steps.
                let step = interval(*quota).div_ceil(UNITS);
                slowest = slowest.max(if step > 1 { step } else { 0 });
                let elapsed = until.since(*from).as_nanos() as u64 + slowest;
                let most = burst + elapsed / fastest;
                prop_assert!(total <= most, "{total} from {from} to {until}, not {most}");
            }
        }
    }

    /// Who asks again at the very moment it was told gets no nanosecond as a present: at rates above
    /// a quarter of the highest, all that is allowed is exactly what its quotas allow.
    #[test]
    fn who_never_waits_too_long_gets_what_its_quotas_allow(
        amounts in vec((13_u64..=50, 1_u64..=20, 1_usize..12), 1..8),
        offset in 0_u64..1_000_000,
    ) {
        let quotas = amounts.iter().map(|(amount, burst, calls)| {
            let period = Duration::from_nanos(1_000_000_007);
            (Quota::per(*amount, period).burst(*burst).build().unwrap(), *calls)
        });
        let mut now = at(0) + Duration::from_nanos(offset);
        let rate = moving("50/s burst 20".parse().unwrap());
        // Also those that were denied: their quota was in force.
        let mut calls_made: Vec<(Timestamp, Quota, bool)> = Vec::new();
        for (quota, calls) in quotas {
            rate.set_range_at(&(quota..=quota), now).unwrap();
            for _ in 0..calls {
                let decision = rate.check_at("alice", 1, anyone(), now);
                let retry = decision.retry_after().unwrap();
                calls_made.push((now, quota, decision.is_allowed()));
                if decision.is_denied() {
                    now = now + retry;
                }
            }
        }
        for (index, (from, ..)) in calls_made.iter().enumerate() {
            let (mut burst, mut fastest, mut total) = (0, u64::MAX, 0);
            for (until, quota, is_allowed) in &calls_made[index..] {
                burst = burst.max(quota.burst());
                fastest = fastest.min(interval(*quota));
                total += u64::from(*is_allowed);
                let most = burst + until.since(*from).as_nanos() as u64 / fastest;
                prop_assert!(total <= most, "{total} from {from} to {until}, not {most}");
            }
        }
    }

    /// A change gives nobody a token, and who retries after the time it was told is allowed.
    #[test]
    fn who_is_exhausted_stays_exhausted(first in quotas(), then in quotas(), elapsed in 0_u64..1_000) {
        let rate = moving(first);
        let now = at(5) + Duration::from_nanos(elapsed);
        while rate.check_at("alice", 1, anyone(), now).is_allowed() {}
        rate.set_range_at(&(then..=then), now).unwrap();
        let denied = rate.check_at("alice", 1, anyone(), now);
        prop_assert!(denied.is_denied());
        prop_assert_eq!(denied.remaining(), 0);
        let retry = now + denied.retry_after().unwrap();
        prop_assert!(rate.check_at("alice", 1, anyone(), retry - Duration::from_nanos(1)).is_denied());
        prop_assert!(rate.check_at("alice", 1, anyone(), retry).is_allowed());
        // Its neighbour has the whole new burst, and not one more.
        let burst = then.burst();
        prop_assert!(rate.check_at("bob", burst, anyone(), now).is_allowed());
        prop_assert!(rate.check_at("bob", 1, anyone(), now).is_denied());
        rate.refund_at("bob", burst + 7, now);
        prop_assert_eq!(rate.peek_at("bob", 1, anyone(), now).remaining(), burst);
    }

    /// Between two quotas every rate is met within 0.1 %, the quotas themselves exactly, and a
    /// higher rate is never a lower quota.
    #[test]
    fn quotas_between_two_are_between_them(one in quotas(), two in quotas(), shares in vec(0.0..=1.0_f64, 1..20)) {
        let per_second = |quota: Quota| 1e9 * quota.amount() as f64 / quota.period().unwrap().as_nanos() as f64;
        let (min, max) = if per_second(one) <= per_second(two) { (one, two) } else { (two, one) };
        let build = |start| {
            let builder = AdaptiveRate::<str>::builder(Script::default(), min..=max);
            builder.start(start).build().unwrap()
        };
        let (low, high) = (build(0.0).status().min, build(0.0).status().max);
        let mut rates: Vec<f64> = shares.iter().map(|share| low + share * (high - low)).collect();
        rates.extend([low, high]);
        rates.sort_by(f64::total_cmp);
        let mut last = min;
        for rate in rates {
            let built = build(rate);
            let (quota, limit) = (built.quota(), built.status().limit);
            prop_assert_eq!(limit, rate.clamp(low, high));
            prop_assert!((per_second(quota) / limit - 1.0).abs() < 1e-3, "{quota} for {limit}");
            prop_assert!(interval(quota) <= interval(last) && interval(quota) >= interval(max));
            let bursts = [min.burst(), max.burst()];
            prop_assert!((bursts[0].min(bursts[1])..=bursts[0].max(bursts[1])).contains(&quota.burst()));
            last = quota;
        }
        prop_assert_eq!(last, max);
    }
}
