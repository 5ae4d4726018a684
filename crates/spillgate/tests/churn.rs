//! At the capacity it was made for, a table forgets next to nobody.

use std::time::Duration;

use spillgate::{Limiter, ManualClock};

#[test]
fn at_full_capacity_steady_churn_evicts_less_than_one_in_ten_thousand() {
    const CALLERS: u64 = 100_000;
    let clock = ManualClock::default();
    let limiter = Limiter::<u64>::builder("1/s burst 1")
        .capacity(CALLERS as usize)
        .clock(clock.clone())
        .build()
        .unwrap();
    // Each caller is live for a second, and as many arrive in a second as fit.
    let step = Duration::from_nanos(1_000_000_000 / CALLERS);
    let mut before_the_last = 0;
    for turnover in 0..12 {
        before_the_last = limiter.evictions();
        for arrival in 0..CALLERS {
            assert!(limiter.check(&(turnover * CALLERS + arrival)).is_allowed());
            clock.advance(step);
        }
    }
    assert_eq!(limiter.active_callers() as u64, CALLERS - 1, "the table is as full as promised");
    let evicted = limiter.evictions() - before_the_last;
    assert!(evicted < CALLERS / 10_000, "{evicted} of {CALLERS} first calls evicted a caller");
}
