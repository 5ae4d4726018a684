//! What nodes let through when nothing breaks.

use std::time::Duration;

use crate::simulation::fleet::simulate;
use crate::simulation::oracle::judge;
use crate::simulation::plan::{Plan, PlannedLimit};

const NODES: u32 = 8;

/// Ten thousand calls in ten seconds are the quota.
fn limit(is_leased: bool) -> PlannedLimit {
    let interval = Duration::from_millis(1);
    PlannedLimit { interval, burst: 1000, is_leased, algorithm: "token-bucket" }
}

/// Clients that call every so many milliseconds in the middle.
fn plan(seed: u64, is_leased: bool, every: u64) -> Plan {
    Plan { pause: 2 * every - 1, ..Plan::calm(seed, limit(is_leased), NODES) }
}

#[test]
fn demand_of_ten_times_the_quota_gets_nearly_all_of_it() {
    for (is_leased, least) in [(false, 99), (true, 95)] {
        let mut plan = plan(3, is_leased, 2);
        plan.clients = 20;
        let outcome = simulate(&plan);
        assert_eq!(judge(&plan, &outcome), Ok(()));
        let admitted = outcome.admitted.len() as u64;
        // The quota of ten seconds and the burst.
        assert!(admitted >= 11_000 * least / 100, "leased: {is_leased}, {admitted} admitted");
        assert!(outcome.denied > 5 * admitted, "{} denied", outcome.denied);
    }
}

#[test]
fn demand_of_half_the_quota_is_hardly_ever_denied() {
    for seed in 0..5 {
        let mut plan = plan(seed, true, 16);
        plan.clients = 1;
        let outcome = simulate(&plan);
        assert_eq!(judge(&plan, &outcome), Ok(()));
        assert!(outcome.admitted.len() > 4000, "{} admitted", outcome.admitted.len());
        assert_eq!((outcome.denied, outcome.failed), (0, 0));
    }
}
