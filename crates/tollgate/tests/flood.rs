//! A flood of fresh clients neither frees a throttled one nor takes memory. The only
//! test of its process, whose memory it weighs.

use std::time::Duration;

use tollgate::{Limiter, ManualClock};

/// Clients whom a table of no more than 65,536 slots is made for.
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
