//! kill -9: what is lost is what was spent since the last snapshot, and no more.

use std::fs::File;
use std::io::BufReader;
use std::thread::spawn;
use std::time::Duration;

use spillgate::{Clock, SystemClock, Timestamp};
use spillgate_server::snapshot::SnapshotReader;
use spillgate_testing::effort;

use crate::common::server::{Home, until};
use crate::operate::clients::{Tally, http_load, resp_load, spent};
use crate::operate::drain::{POLICY, THROTTLE};

#[test]
fn kill_9_under_load_forgives_only_what_was_spent_since_the_last_snapshot() {
    let home = Home::new(POLICY);
    let server = home.start(&["--snapshot-interval", "100ms", "--log-level", "debug"]);
    let (http, resp) = (server.http, server.resp);
    let keyed: Vec<_> = (0..3).map(|_| spawn(move || resp_load(resp, THROTTLE, 8))).collect();
    let checked = vec![spawn(move || http_load(http, "api", "203.0.113.7"))];
    until("some snapshots under load", || {
        let metrics = server.get("/metrics");
        let written = metrics.lines().find_map(|line| {
            line.strip_prefix("spillgate_snapshot_writes_total{outcome=\"written\"} ")
        });
        written.is_some_and(|written| written.parse::<u64>().unwrap() >= 5)
    });
    let log = server.kill();
    let killed = SystemClock.now();
    let join = |tallies: Vec<std::thread::JoinHandle<Tally>>| -> Vec<Tally> {
        tallies.into_iter().map(|tally| tally.join().unwrap()).collect()
    };
    let (keyed, checked) = (join(keyed), join(checked));

    let file = File::open(home.path("state")).unwrap();
    let taken = SnapshotReader::new(BufReader::new(file)).unwrap().moment().wall;
    let taken = Timestamp::ZERO + taken;
    // An interval, and the time that writing takes: once for the last, once for the next.
    let (age, slowest) = (killed.since(taken), slowest_write(&log));
    let bound = Duration::from_millis(100).max(slowest) + slowest;
    assert!(age < bound + slack(), "{age:?}, and writing took {slowest:?}");

    let server = home.start(&[]);
    for (tallies, look) in
        [(keyed, format!("{THROTTLE} 0")), (checked, "SG.CHECK api 203.0.113.7 0".to_owned())]
    {
        let known = spent(server.resp, &look);
        let count = |until: Timestamp| {
            let heard = tallies.iter().flat_map(|tally| &tally.allowed);
            heard.filter(|heard| **heard < until).count() as i64
        };
        // Clocks of two processes differ by less.
        let before = count(taken - Duration::from_millis(5));
        let all = count(Timestamp::MAX);
        let unanswered = tallies.iter().map(|tally| tally.unanswered as i64).sum::<i64>();
        assert!(before > 0 && known >= before, "{known} spent, {before} admitted before");
        assert!(known <= all + unanswered, "{known} spent, {all} admitted in all");
    }
}

/// For a write that is slower than those before, and for threads that wait for their turn
/// while other tests run.
fn slack() -> Duration {
    Duration::from_millis(if effort() > 1 { 500 } else { 10_000 })
}

/// How long it took to write the slowest snapshot of a log.
fn slowest_write(log: &str) -> Duration {
    let times = log.lines().filter(|line| line.contains("wrote snapshot"));
    let times = times.filter_map(|line| line.split("took=").nth(1)?.split(' ').next());
    times.map(duration).max().unwrap_or_else(|| panic!("no snapshot\n{log}"))
}

/// As `Debug` shows it.
fn duration(text: &str) -> Duration {
    let unit = text.trim_start_matches(|character: char| !character.is_alphabetic());
    let number: f64 = text.trim_end_matches(unit).parse().unwrap();
    let scale = match unit {
        "s" => 1.0,
        "ms" => 1e-3,
        "µs" => 1e-6,
        other => panic!("{other}"),
    };
    Duration::from_secs_f64(number * scale)
}
