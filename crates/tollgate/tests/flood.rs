//! A flood of fresh clients neither frees a throttled one nor takes memory.

use std::time::Duration;

use tollgate::{Limiter, ManualClock};

/// Slots asked for; a capacity of 40,000 clients needs 65,536 of them or fewer.
const CAPACITY: usize = 40_000;
const FLOOD: u64 = 10_000_000;

fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn a_throttled_client_stays_throttled_through_ten_million_fresh_ones() {
    let clock = ManualClock::default();
    let limiter = Limiter::<u64>::builder("10/h burst 20")
        .capacity(CAPACITY)
        .clock(clock.clone())
        .build()
        .unwrap();
    let (_, table) = limiter.tables().next().unwrap();
    assert!(table.slots() <= 65_536, "{} slots", table.slots());

    let throttled = u64::MAX;
    for _ in 0..20 {
        assert!(limiter.check(&throttled).is_allowed());
    }
    let before = resident_kib();
    for fresh in 0..FLOOD {
        assert!(limiter.check(&fresh).is_allowed(), "newcomers are served");
        if fresh % 1_000 == 0 {
            assert!(limiter.check(&throttled).is_denied(), "freed after {fresh}");
            clock.advance(Duration::from_millis(1));
        }
    }
    assert!(limiter.check(&throttled).is_denied());
    assert!(limiter.evictions() > FLOOD / 2, "the flood was one");
    if let (Some(before), Some(after)) = (before, resident_kib()) {
        assert!(after <= before + 512, "{before} KiB grew to {after} KiB");
    }
}

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
