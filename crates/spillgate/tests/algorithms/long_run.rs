//! A caller who takes all it can get gets the stated rate: no more, and no less
//! than the stated rounding.

use proptest::prelude::*;
use spillgate::algorithm::{Algorithm, AnyAlgorithm};
use spillgate::{AlgorithmKind, Quota, Start, Timestamp};
use spillgate_testing::strategy;
use std::time::Duration;

/// How often the caller is let through.
const CALLS: u64 = 100_000;

/// What a greedy caller gets: how much before the first denial, how much after it,
/// and in how many nanoseconds. It takes the `largest` cost at once or, of what
/// comes in whole refills, the rest that is smaller.
fn takings(algorithm: AnyAlgorithm, start: Timestamp, largest: u64) -> (u128, u128, u128) {
    let comes_whole =
        matches!(algorithm, AnyAlgorithm::IntervalBucket(_) | AnyAlgorithm::FixedWindow(_));
    let (mut word, mut now) = (algorithm.fresh(Timestamp::ZERO), start);
    let (mut at_once, mut since) = (0, 0);
    for _ in 0..CALLS {
        let cost = match algorithm.remaining(word, now) {
            rest @ 1.. if comes_whole => rest.min(largest),
            _ => largest,
        };
        now = now + algorithm.retry_after(word, now, cost).unwrap();
        word = algorithm.spend(word, now, cost).unwrap();
        let sum = if now == start { &mut at_once } else { &mut since };
        *sum += u128::from(cost);
    }
    (at_once, since, now.since(start).as_nanos())
}

fn check_rate(kind: AlgorithmKind, quota: &Quota, start: Timestamp) -> Result<(), TestCaseError> {
    let Ok(algorithm) = kind.with_quota(quota, Start::Full, Timestamp::ZERO) else {
        return Ok(());
    };
    let largest = quota.burst().div_ceil(64);
    let (at_once, since, nanos) = takings(algorithm, start, largest);
    let (amount, period) = (u128::from(quota.amount()), quota.period().unwrap().as_nanos());
    // Windows that follow the clock give as much for the part of one that comes first.
    let by_the_clock = matches!(kind, AlgorithmKind::FixedWindow | AlgorithmKind::SlidingWindow);
    let head = if by_the_clock { amount } else { 0 };
    let most = (u128::from(quota.burst()) + head) * period + amount * nanos;
    prop_assert!((at_once + since) * period <= most, "{kind} of {quota} gives too much");
    // What comes before weighs something until a sliding window is over, so that the
    // last call that would fill a window never passes. The first window is paid for
    // by the one after it.
    let (amount, lag) = match kind {
        AlgorithmKind::SlidingWindow => (amount - u128::from(largest), amount),
        _ => (amount, 0),
    };
    let least = (amount * nanos).saturating_sub(lag * period) * 999 / 1000;
    prop_assert!(since * period >= least, "{kind} of {quota} gives {since} in {nanos} ns");
    Ok(())
}

const RATES: [u64; 14] =
    [1, 2, 3, 7, 10, 99, 1_000, 1_023, 16_000, 99_999, 123_457, 500_001, 999_999, 1_000_000];

#[test]
fn rates_of_up_to_a_million_a_second_are_met() {
    for kind in AlgorithmKind::ALL {
        for amount in RATES {
            // A bucket that is smaller than its refill spills the rest of it.
            let spills = kind == AlgorithmKind::IntervalBucket;
            for burst in [1, 5, amount].map(|burst| if spills { burst.max(amount) } else { burst })
            {
                let quota = Quota::per_second(amount).burst(burst).build().unwrap();
                check_rate(kind, &quota, Timestamp::from_secs(1_700_000_000)).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(strategy::cases(300))]

    #[test]
    fn any_rate_of_up_to_a_million_a_second_is_met(
        kind in proptest::sample::select(&AlgorithmKind::ALL[..]),
        amount in strategy::magnitudes(20),
        nanos_each in 1_000..1_000_000_u64,
        off in 0..1_000_u64,
        start in 1_700_000_000_000_000_000..1_800_000_000_000_000_000_u64,
    ) {
        let period = Duration::from_nanos(amount * nanos_each + off);
        let quota = Quota::per(amount, period).build().unwrap();
        check_rate(kind, &quota, Timestamp::from_nanos(start))?;
    }
}
