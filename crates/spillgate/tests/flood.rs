//! A flood of new callers neither frees a throttled one nor takes memory. These tests run one
//! after the other, since they weigh the memory of their process.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use spillgate::{Limiter, ManualClock, WhenFull};
use spillgate_testing::effort;

static ALONE: Mutex<()> = Mutex::new(());

/// Callers whom a table of no more than 65,536 slots is made for.
const CAPACITY: usize = 40_000;

/// How many callers come: a million, or as many millions as effort is made.
fn flood() -> u64 {
    1_000_000 * u64::from(effort())
}

fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn a_flood_of_exhausted_callers_frees_nobody_who_is_protected() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // One call each, and the whole burst at that: all have spent the same share.
    for (quota, cost) in [("1/h", 1), ("5/h", 5)] {
        let limiter = Limiter::<u64>::builder(quota)
            .when_full(WhenFull::Protect)
            .clock(ManualClock::default())
            .build()
            .unwrap();
        let throttled = u64::MAX;
        assert!(limiter.check_n(&throttled, cost).is_allowed(), "{quota}");
        let before = resident_kib();
        let mut served = 0;
        for key in 0..flood() {
            let decision = limiter.check_n(&key, cost);
            served += u64::from(decision.is_allowed());
            assert!(decision.is_allowed() || decision.is_table_full(), "{quota}: {key}");
            if key % 1_000 == 0 {
                assert!(limiter.check(&throttled).is_denied(), "{quota}: freed after {key}");
            }
        }
        assert!(limiter.check(&throttled).is_denied(), "{quota}");
        assert!(served >= 100_000, "{quota}: as many as the table is made for, not {served}");
        assert_eq!(limiter.evictions(), 0, "{quota}");
        if let (Some(before), Some(after)) = (before, resident_kib()) {
            // The table's own pages are touched as it fills.
            assert!(after <= before + 4_096, "{quota}: {before} KiB grew to {after} KiB");
        }
    }
}

#[test]
fn a_throttled_caller_stays_throttled_through_a_flood_of_fresh_ones() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let clock = ManualClock::default();
    let limiter = Limiter::<u64>::builder("10/h burst 20")
        .capacity(CAPACITY)
        .clock(clock.clone())
        .build()
        .unwrap();
    let slots = limiter.table().slots();
    assert!(slots <= 65_536, "{slots} slots");

    let throttled = u64::MAX;
    for _ in 0..20 {
        assert!(limiter.check(&throttled).is_allowed());
    }
    let before = resident_kib();
    for fresh in 0..flood() {
        assert!(limiter.check(&fresh).is_allowed(), "newcomers are served");
        if fresh % 1_000 == 0 {
            assert!(limiter.check(&throttled).is_denied(), "freed after {fresh}");
            clock.advance(Duration::from_millis(1));
        }
    }
    assert!(limiter.check(&throttled).is_denied());
    assert!(limiter.evictions() > flood() / 2, "the flood was one");
    if let (Some(before), Some(after)) = (before, resident_kib()) {
        assert!(after <= before + 512, "{before} KiB grew to {after} KiB");
    }
}
