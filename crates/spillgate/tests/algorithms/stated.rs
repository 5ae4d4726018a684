//! What the documentation states in numbers.

use std::time::Duration;

use proptest::prelude::*;
use spillgate::algorithm::{Algorithm, AnyAlgorithm, TokenBucket};
use spillgate::{AlgorithmKind, Quota, Start, Timestamp};
use spillgate_testing::strategy;

const COUNTABLE: &[(AlgorithmKind, &str)] = &[
    (AlgorithmKind::FixedWindow, "1_000_000_000/s"),
    (AlgorithmKind::FixedWindow, "1_000_000/ms"),
    (AlgorithmKind::FixedWindow, "60_000_000_000/min"),
    (AlgorithmKind::FirstHitWindow, "1_000_000/s"),
    (AlgorithmKind::FirstHitWindow, "60_000_000/min"),
    (AlgorithmKind::FirstHitWindow, "86_400_000_000/day"),
    (AlgorithmKind::IntervalBucket, "1/s burst 1_000_000"),
    (AlgorithmKind::IntervalBucket, "1/min burst 60_000_000"),
    (AlgorithmKind::IntervalBucket, "3_600_000_000/h"),
    (AlgorithmKind::SlidingWindow, "16_000/s"),
    (AlgorithmKind::SlidingWindow, "131_000/min"),
    (AlgorithmKind::SlidingWindow, "1_000_000/h"),
    (AlgorithmKind::SlidingWindow, "8_000_000/day"),
];

#[test]
fn the_stated_maxima_can_be_counted() {
    for (kind, text) in COUNTABLE {
        let quota: Quota = text.parse().unwrap();
        let algorithm = kind.with_quota(&quota, Start::Full, Timestamp::ZERO);
        assert!(algorithm.is_ok(), "{kind} of {text}: {}", algorithm.unwrap_err());
    }
}

#[test]
fn debt_is_as_deep_as_the_limit_again() {
    let now = Timestamp::from_secs(1_700_000_000);
    for (kind, text) in COUNTABLE {
        let quota: Quota = text.parse().unwrap();
        let algorithm = kind.with_quota(&quota, Start::Full, Timestamp::ZERO).unwrap();
        let limit = algorithm.limit();
        let word = algorithm.spend(algorithm.fresh(Timestamp::ZERO), now, limit).unwrap();
        let word = algorithm.debit_up_to(word, now, limit, u64::MAX);
        assert_eq!(algorithm.spent(word, now), 2 * limit, "{kind} of {quota}");
    }
}

#[test]
fn rates_above_what_can_be_counted_are_refused_with_the_maximum() {
    let refused: &[(AlgorithmKind, &str, &str)] = &[
        (AlgorithmKind::SlidingWindow, "16_384/s", "16383"),
        (AlgorithmKind::SlidingWindow, "131_072/min", "131071"),
        (AlgorithmKind::FirstHitWindow, "1_048_576/s", "1048575"),
        (AlgorithmKind::IntervalBucket, "1_048_576/s", "1048575"),
    ];
    for (kind, text, most) in refused {
        let quota: Quota = text.parse().unwrap();
        let error = kind.with_quota(&quota, Start::Full, Timestamp::ZERO).unwrap_err();
        assert!(error.is_algorithm(), "{kind} of {text}");
        assert!(error.to_string().contains(most), "{kind} of {text}: {error}");
    }
}

#[test]
fn kinds_that_cannot_count_a_quota_say_what_they_need() {
    use AlgorithmKind as Kind;
    let refused: &[(Kind, &str, Start, &str)] = &[
        (Kind::LeakyBucket, "burst 5", Start::Full, "has to drain"),
        (Kind::LeakyShaper, "burst 5", Start::Full, "has to drain"),
        (Kind::IntervalBucket, "burst 5", Start::Full, "needs a period"),
        (Kind::FixedWindow, "burst 5", Start::Full, "needs a period"),
        (Kind::FixedWindow, "5/s burst 6", Start::Full, "has no burst"),
        (Kind::FirstHitWindow, "5/s burst 6", Start::Full, "has no burst"),
        (Kind::SlidingWindow, "5/s burst 4", Start::Full, "has no burst"),
        (Kind::SlidingWindow, "burst 5", Start::Full, "needs a period"),
        (Kind::TokenBucket, "burst 5", Start::Empty, "cannot start empty"),
        (Kind::LeakyBucket, "5/s", Start::Empty, "cannot start empty"),
        (Kind::FixedWindow, "5/s", Start::Empty, "cannot start empty"),
    ];
    for (kind, text, start, reason) in refused {
        let error = kind.with_quota(&text.parse().unwrap(), *start, Timestamp::ZERO).unwrap_err();
        assert!(error.to_string().contains(reason), "{kind} of {text}: {error}");
    }
}

/// Steps as coarse as they get: the count takes all the room that there is.
fn coarsest(kind: AlgorithmKind, period: u64) -> Option<AnyAlgorithm> {
    let fits = |burst| {
        let quota = Quota::per(burst, Duration::from_nanos(period)).build().ok()?;
        kind.with_quota(&quota, Start::Full, Timestamp::ZERO).ok()
    };
    (0..62).rev().find_map(|bits| fits((1 << bits) - 1))
}

proptest! {
    #![proptest_config(strategy::cases(2_000))]

    #[test]
    fn a_period_is_kept_to_a_thousandth(period in strategy::magnitudes(62)) {
        let Some(AnyAlgorithm::IntervalBucket(bucket)) =
            coarsest(AlgorithmKind::IntervalBucket, period)
        else { return Ok(()) };
        let step = bucket.resolution().as_nanos();
        prop_assert!(step == 1 || step * 1000 < u128::from(period));
        let kept = bucket.period().as_nanos() as u64;
        prop_assert!(kept >= period);
        prop_assert!((kept - period) * 1000 < period || kept == period);
    }

    #[test]
    fn a_window_ends_late_by_less_than_two_thousandths(
        period in strategy::magnitudes(62),
        now in strategy::moments(),
    ) {
        let Some(window) = coarsest(AlgorithmKind::FirstHitWindow, period) else { return Ok(()) };
        let word = window.spend(window.fresh(Timestamp::ZERO), now, 1).unwrap();
        let length = window.reset_after(word, now).unwrap().as_nanos() as u64;
        if now.as_nanos() + length < Timestamp::MAX.as_nanos() {
            prop_assert!(length >= period);
            let late = length - period;
            prop_assert!(late == 0 || late * 500 < period, "{late} ns late");
        }
    }

    #[test]
    fn a_token_bucket_owes_up_to_two_to_the_62_nanoseconds(
        period in strategy::magnitudes(62),
        now in strategy::moments(),
    ) {
        let quota = Quota::per(1, Duration::from_nanos(period)).burst(1).build().unwrap();
        let bucket = TokenBucket::new(&quota).unwrap();
        let tokens = (1 << 62) / period;
        let word = bucket.debit_up_to(bucket.fresh(Timestamp::ZERO), now, tokens, u64::MAX);
        prop_assert_eq!(bucket.spent(word, now), tokens * period);
    }
}

proptest! {
    #![proptest_config(strategy::cases(10_000))]

    #[test]
    fn an_interval_of_a_microsecond_or_more_is_rounded_by_less_than_a_thousandth(
        amount in strategy::magnitudes(20),
        each in 1_000..1_000_000_000_u64,
        rest in any::<u64>(),
    ) {
        let period = amount * each + rest % amount;
        let quota = Quota::per(amount, Duration::from_nanos(period)).burst(1).build().unwrap();
        let taken = quota.interval().unwrap().as_nanos() * u128::from(amount);
        prop_assert!(taken >= period.into());
        prop_assert!((taken - u128::from(period)) * 1000 < period.into());
    }
}
