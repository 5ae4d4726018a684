//! Many nodes, Redis and a network in which everything goes wrong, all of it decided by a
//! seed: whatever the schedule, the fleet never admits more than the quota.
//!
//! `SPILLGATE_SEED=17` begins with that seed, exactly as it was.

mod demand;
mod edits;
mod fleet;
mod link;
mod liveness;
mod oracle;
mod permits;
mod plan;
mod programs;
mod random;
mod returned;
mod strikes;
mod world;

use std::ops::Range;
use std::thread;

use spillgate_testing::seeds;

use self::fleet::simulate;
use self::oracle::judge;
use self::plan::{Flaw, Plan};

/// Runs the plans of many seeds, on all cores. The first that is found wrong is told.
fn judge_all(seeds: Range<u64>, plan: impl Fn(u64) -> Plan + Sync) -> Result<(), String> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let judge_some = |thread: usize| {
        seeds.clone().skip(thread).step_by(threads).try_for_each(|seed| {
            let plan = plan(seed);
            judge(&plan, &simulate(&plan)).map_err(|why| {
                format!("seed {seed}: {why}; set SPILLGATE_SEED={seed} to see it again: {plan:#?}")
            })
        })
    };
    thread::scope(|scope| {
        let running: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || judge_some(thread))).collect();
        running.into_iter().try_for_each(|thread| thread.join().unwrap())
    })
}

#[test]
fn no_schedule_admits_more_than_the_quota() {
    judge_all(seeds(500), Plan::troubled).unwrap();
}

#[test]
fn no_storm_after_a_quiet_time_admits_more_than_the_quota() {
    judge_all(seeds(100), Plan::stormy).unwrap();
}

#[test]
fn a_failover_forgives_no_more_than_was_taken_while_the_replica_was_behind() {
    judge_all(seeds(125), Plan::forgetful).unwrap();
    for seed in seeds(25) {
        let plan = Plan::forgetful(seed);
        let forgiven = simulate(&plan).history.forgiven;
        for limit in &plan.limits {
            // What a bucket gives in that time, to each user, each time.
            let most =
                (limit.span() + plan.lag.as_nanos()) * u128::from(plan.users * plan.failovers);
            let forgiven = forgiven.get(&limit.quota()).copied().unwrap_or(0);
            assert!(u128::from(forgiven) <= most, "seed {seed}: {forgiven} ns of {most}");
        }
    }
}

#[test]
fn a_quota_that_changes_admits_no_more_than_the_old_and_the_new_together() {
    judge_all(seeds(125), Plan::changing).unwrap();
}

#[test]
fn a_node_whose_redis_stalls_admits_no_more_than_the_quota() {
    judge_all(seeds(750), |seed| Plan::stalled(seed, 1)).unwrap();
}

#[test]
fn nodes_whose_redis_stalls_admit_at_most_one_burst_more() {
    judge_all(seeds(250), |seed| Plan::stalled(seed, 2 + (seed % 4) as u32)).unwrap();
}

#[test]
fn a_program_that_forgets_what_callers_had_spent_is_caught() {
    let flawed = |seed| Plan { flaw: Some(Flaw::NoMemory), ..Plan::stalled(seed, 1) };
    assert!(judge_all(0..100, flawed).is_err());
}

#[test]
fn a_program_that_does_not_charge_what_was_admitted_meanwhile_is_caught() {
    let flawed = |seed| Plan { flaw: Some(Flaw::NoCharges), ..Plan::stalled(seed, 1) };
    assert!(judge_all(0..300, flawed).is_err());
}

#[test]
fn a_seed_is_replayed_exactly() {
    for seed in 0..20 {
        let trace = || simulate(&Plan::troubled(seed)).history.trace;
        assert_eq!(trace(), trace(), "seed {seed}");
    }
    let trace = |seed| simulate(&Plan::troubled(seed)).history.trace;
    assert_ne!(trace(1), trace(2));
}

#[test]
fn a_program_that_hands_out_slots_of_others_is_caught() {
    let flawed = |seed| Plan { flaw: Some(Flaw::CarelessExchange), ..Plan::troubled(seed) };
    assert!(judge_all(0..100, flawed).is_err());
}

#[test]
fn a_program_whose_slices_do_not_melt_is_caught() {
    let flawed = |seed| Plan { flaw: Some(Flaw::SlowClocks), ..Plan::stormy(seed) };
    assert!(judge_all(0..100, flawed).is_err());
}
