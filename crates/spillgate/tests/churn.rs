//! At the capacity it was made for, a table forgets next to nobody.

use std::time::Duration;

use spillgate::{Limiter, ManualClock};

#[test]
fn at_full_capacity_steady_churn_evicts_less_than_one_in_ten_thousand() {
    const CLIENTS: u64 = 100_000;
    let clock = ManualClock::default();
    let limiter = Limiter::<u64>::builder("1/s burst 1")
        .capacity(CLIENTS as usize)
        .clock(clock.clone())
        .build()
        .unwrap();
    // Each client is live for a second, and as many arrive in a second as fit.
    let step = Duration::from_nanos(1_000_000_000 / CLIENTS);
    let mut before_the_last = 0;
    for turnover in 0..12 {
        before_the_last = limiter.evictions();
        for arrival in 0..CLIENTS {
            assert!(limiter.check(&(turnover * CLIENTS + arrival)).is_allowed());
            clock.advance(step);
        }
    }
    assert_eq!(limiter.len() as u64, CLIENTS - 1, "the table is as full as promised");
    let evicted = limiter.evictions() - before_the_last;
    assert!(evicted < CLIENTS / 10_000, "{evicted} of {CLIENTS} first calls evicted a client");
}
