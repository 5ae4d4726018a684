//! Decisions about permits, as headers and metrics read them.

use std::time::Duration;

use proptest::prelude::{any, prop_assert_eq, proptest};
use spillgate::algorithm::{Algorithm, TokenBucket};
use spillgate::{BusyCause, Concurrency, Decision, Quota, Timestamp, Verdict};

const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);
const SECOND: Duration = Duration::from_secs(1);

/// Nothing about permits has a time, so nothing is reset, waited for or settled.
fn expect_timeless(decision: &Decision) {
    assert!(decision.is_hold());
    assert_eq!((decision.window(), decision.reset_after()), (None, None));
    assert_eq!((decision.idle_after(), decision.overdrawn_for()), (None, None));
    assert_eq!((decision.wait(), decision.now()), (Duration::ZERO, NOW));
    assert_eq!(decision.spent(), None, "a permit is released and never refunded");
    assert_eq!(decision.is_denied(), !decision.is_allowed());
}

#[test]
fn a_granted_hold_shows_what_is_left_with_it() {
    let decision = Decision::of_hold(10, 4, 2, NOW);
    expect_timeless(&decision);
    assert_eq!(decision.verdict(), Verdict::Allowed);
    assert_eq!((decision.limit(), decision.remaining(), decision.owed()), (10, 4, 6));
    assert_eq!((decision.cost(), decision.retry_after_secs()), (2, Some(0)));
    assert!(!decision.is_table_full());
}

#[test]
fn a_refused_hold_shows_what_is_there_and_asks_to_retry_in_a_second() {
    let decision = Decision::of_hold(10, 9, 2, NOW);
    expect_timeless(&decision);
    assert_eq!(decision.verdict(), Verdict::Denied { retry_after: SECOND });
    assert_eq!((decision.limit(), decision.remaining(), decision.owed()), (10, 1, 9));
    assert_eq!((decision.cost(), decision.retry_after_secs()), (2, Some(1)));
    // Beyond a limit that was lowered, or in shadow mode.
    let beyond = Decision::of_hold(10, 12, 1, NOW);
    assert_eq!((beyond.remaining(), beyond.owed()), (0, 12));
}

#[test]
fn more_than_the_limit_is_never_held() {
    for limit in [0, 3] {
        let decision = Decision::of_hold(limit, 0, limit + 1, NOW);
        expect_timeless(&decision);
        assert_eq!(decision.verdict(), Verdict::Never);
        assert_eq!((decision.limit(), decision.remaining()), (limit.into(), limit.into()));
        assert_eq!(decision.retry_after_secs(), None);
    }
    assert_eq!(Decision::of_hold(u32::MAX, u32::MAX, u32::MAX, NOW).remaining(), 0);
}

#[test]
fn a_limit_of_zero_is_shown_as_it_is() {
    let none = Decision::of_hold(0, 0, 0, NOW);
    expect_timeless(&none);
    assert_eq!((none.is_allowed(), none.limit(), none.remaining()), (true, 0, 0));
    let (algorithm, word) = none.state();
    assert_eq!((algorithm.exhausted_from(), algorithm.spent(word, NOW)), (0, 0));
    // A quota cannot have it: whoever reads one from a file says so there.
    assert!(Quota::once(0).build().unwrap_err().is_quota());
}

#[test]
fn no_permit_is_always_allowed() {
    let decision = Decision::of_hold(2, 7, 0, NOW);
    expect_timeless(&decision);
    assert_eq!((decision.is_allowed(), decision.remaining(), decision.owed()), (true, 0, 7));
}

#[test]
fn a_peek_shows_what_is_there_now() {
    let decision = Decision::peek_hold(10, 4, 2, NOW);
    expect_timeless(&decision);
    assert_eq!((decision.verdict(), decision.remaining()), (Verdict::Allowed, 6));
    let denied = Decision::peek_hold(10, 9, 2, NOW);
    expect_timeless(&denied);
    assert_eq!(denied.verdict(), Verdict::Denied { retry_after: SECOND });
    assert_eq!(denied, Decision::of_hold(10, 9, 2, NOW));
}

#[test]
fn every_cause_is_a_denial() {
    let calls: Concurrency<str> = Concurrency::builder(2).capacity(1).build();
    let _held = calls.try_acquire("a").unwrap();
    let full = calls.try_acquire("b").unwrap_err();
    let decision = Decision::of_busy(2, &full, 1, NOW);
    expect_timeless(&decision);
    assert_eq!(decision.verdict(), Verdict::Denied { retry_after: SECOND });
    assert_eq!((decision.is_table_full(), decision.remaining()), (true, 2));
    let busy = calls.try_acquire_n("a", 2).unwrap_err();
    assert_eq!(busy.cause, BusyCause::Held);
    assert_eq!(Decision::of_busy(2, &busy, 2, NOW), Decision::of_hold(2, 1, 2, NOW));
    let above = calls.try_acquire_n("a", 3).unwrap_err();
    assert_eq!(Decision::of_busy(2, &above, 3, NOW).verdict(), Verdict::Never);
}

proptest! {
    /// What is shown agrees with a bucket that never refills, which is what it counts with.
    #[test]
    fn it_counts_as_a_quota_that_never_refills(
        limit in 1_u32.., in_flight in any::<u32>(), count in any::<u32>(),
    ) {
        let bucket = TokenBucket::new(&Quota::once(limit.into()).build().unwrap()).unwrap();
        let word = spillgate::algorithm::Word::from_bits(in_flight.into());
        let (rate, _) = Decision::of(bucket, word, NOW, count.into());
        let hold = Decision::of_hold(limit, in_flight, count, NOW);
        prop_assert_eq!(hold.is_allowed(), rate.is_allowed());
        prop_assert_eq!(
            (hold.limit(), hold.remaining(), hold.owed(), hold.cost()),
            (rate.limit(), rate.remaining(), rate.owed(), rate.cost()),
        );
        prop_assert_eq!(hold.state(), rate.state());
    }
}
