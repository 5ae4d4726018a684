//! What is told of windows and resets is what the quota says, though words keep whole
//! nanoseconds, or steps of several.

use std::time::Duration;

use proptest::prelude::*;
use spillgate::algorithm::{Algorithm, AnyAlgorithm};
use spillgate::{AlgorithmKind, Decision, Limiter, ManualClock, Quota, Start, Timestamp};
use spillgate_testing::{Limit, strategy};

const SECOND: u128 = 1_000_000_000;

fn seconds(time: Duration) -> u64 {
    time.as_nanos().div_ceil(SECOND) as u64
}

fn is_bucket(kind: AlgorithmKind) -> bool {
    use AlgorithmKind as K;
    matches!(kind, K::TokenBucket | K::LeakyBucket | K::LeakyShaper)
}

/// How long so many tokens take by the quota, as a fraction of nanoseconds.
fn refill(kind: AlgorithmKind, quota: &Quota, tokens: u64) -> Option<(u128, u128)> {
    let (period, amount) = (quota.period()?.as_nanos(), u128::from(quota.amount()));
    let tokens = u128::from(tokens);
    Some(match kind {
        kind if is_bucket(kind) => (tokens * period, amount),
        AlgorithmKind::IntervalBucket => (tokens.div_ceil(amount) * period, 1),
        _ => (period, 1),
    })
}

#[test]
fn a_window_of_seconds_is_told_as_such_and_so_is_what_is_left_of_it() {
    use AlgorithmKind as K;
    for (kinds, quota, window) in [
        (&[K::TokenBucket, K::LeakyBucket, K::LeakyShaper][..], "3/s", 1),
        (&[K::TokenBucket, K::LeakyBucket], "7/min", 60),
        (&[K::TokenBucket], "7/min burst 14", 120),
        (&[K::TokenBucket], "13/h", 3600),
        (&[K::TokenBucket, K::LeakyBucket], "7000/min", 60),
        (&[K::TokenBucket], "1 per 333333334 ns burst 3", 2),
        (&[K::IntervalBucket, K::FirstHitWindow], "3000/s", 1),
        (&[K::IntervalBucket, K::FirstHitWindow], "100000/min", 60),
        (&[K::IntervalBucket], "7000/min burst 20000", 180),
        (&[K::FixedWindow, K::FirstHitWindow], "7/min", 60),
    ] {
        for kind in kinds {
            let clock = ManualClock::new(Timestamp::from_secs(1_700_000_040));
            let limiter = Limiter::<str>::builder(quota).algorithm(*kind);
            let limiter = limiter.clock(clock.clone()).build().unwrap();
            let decision = limiter.check_n("a", limiter.peek("a").limit());
            assert!(decision.is_allowed(), "{kind} of {quota}");
            let message = (decision.window().map(seconds), decision.reset_after().map(seconds));
            assert_eq!(message, (Some(window), Some(window)), "{kind} {quota}");
            // Whatever is refilled one by one comes back in the same time.
            for passed in 1..window.min(180) {
                clock.advance(Duration::from_secs(1));
                let left = limiter.peek("a").reset_after().map(seconds);
                assert_eq!(left, Some(window - passed), "{kind} {quota} after {passed} s");
            }
        }
    }
}

/// A limit, and some of what it has, spent at once by a caller who has been idle.
fn spent() -> impl Strategy<Value = (Limit, AnyAlgorithm, Decision)> {
    let kinds = proptest::sample::select(&AlgorithmKind::ALL[..]);
    let spent = (strategy::limits(kinds), strategy::sizes(), strategy::moments());
    spent.prop_filter_map("refilled, and not at the end of time", |(limit, size, now)| {
        let limit = Limit { start: Start::Full, ..limit };
        let now = now.min(Timestamp::from_nanos(Timestamp::MAX.as_nanos() / 2));
        let algorithm = limit.algorithm().ok()?;
        limit.quota.period()?;
        let tokens = size.under(&limit).clamp(1, limit.quota.burst());
        let (decision, _) = Decision::of(algorithm, algorithm.fresh(Timestamp::ZERO), now, tokens);
        decision.is_allowed().then_some((limit, algorithm, decision))
    })
}

proptest! {
    #![proptest_config(strategy::cases(10_000))]

    #[test]
    fn a_window_is_exactly_what_the_quota_says((limit, _, decision) in spent()) {
        let Limit { kind, quota, .. } = limit;
        let (nanos, parts) = refill(kind, &quota, quota.burst()).unwrap();
        let (message, exact) = (decision.window().unwrap().as_nanos(), nanos.div_ceil(parts));
        // Beyond 2⁶¹ a nanosecond may be missing.
        let is_large = u128::from(quota.burst()) * u128::from(quota.amount()) >= 1 << 61;
        prop_assert!(message == exact || is_large && message + 1 == exact, "{message} {exact} {quota}");
    }

    #[test]
    fn a_reset_is_what_the_quota_says_but_for_what_was_rounded((limit, algorithm, decision) in spent()) {
        let Limit { kind, quota, .. } = limit;
        let tokens = decision.cost();
        if matches!(kind, AlgorithmKind::FixedWindow | AlgorithmKind::SlidingWindow) {
            // These begin by the clock, and nothing of them is rounded.
            prop_assert_eq!(decision.reset_after(), decision.idle_after());
            return Ok(());
        }
        let (nanos, parts) = refill(kind, &quota, tokens).unwrap();
        let (message, exact) = (decision.reset_after().unwrap().as_nanos(), nanos.div_ceil(parts));
        // A nanosecond for each unit of the burst, or a step of the word and as much of the time.
        let step = quota.period().unwrap().as_nanos() / 1024 + 1;
        let slack = match is_bucket(kind) {
            true => u128::from(quota.burst()) + 1,
            false => step + exact / 1024,
        };
        prop_assert!(message <= exact + if is_bucket(kind) { 0 } else { step }, "{message} {exact}");
        prop_assert!(message + slack >= exact, "{message} {exact} {quota}");
        prop_assert!(message > 0);
        // Nobody is told more seconds than the quota says, at the beginning or later, when
        // a whole number of them is left.
        let whole = exact / SECOND * SECOND;
        if nanos % parts == 0 && whole > 0 && is_bucket(kind) && tokens == quota.burst() {
            let passed = Duration::from_nanos((exact - whole) as u64);
            let later = algorithm.nominal_reset_after(decision.word(), decision.now() + passed);
            prop_assert_eq!(later.unwrap().as_nanos(), whole, "{} {}", kind, quota);
        }
    }

    #[test]
    fn whoever_comes_back_in_the_second_that_is_told_passes_and_not_in_the_one_before(
        (limit, algorithm, decision) in spent(),
    ) {
        let (word, now) = (decision.word(), decision.now());
        let (again, _) = Decision::of(algorithm, word, now, decision.cost());
        let message = seconds(again.retry_after().unwrap());
        if message == 0 || now + Duration::from_secs(message) >= Timestamp::MAX {
            return Ok(());
        }
        let passes = |after: u64| {
            algorithm.spend(word, now + Duration::from_secs(after), decision.cost()).is_some()
        };
        prop_assert!(passes(message), "{message} s, {}", limit.quota);
        prop_assert!(!passes(message - 1), "{message} s, {}", limit.quota);
    }
}
