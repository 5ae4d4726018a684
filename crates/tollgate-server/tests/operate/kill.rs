//! kill -9: what is lost is what was spent since the last snapshot, and no more.

use std::fs::File;
use std::io::BufReader;
use std::thread::spawn;
use std::time::Duration;

use tollgate::{Clock, SystemClock, Timestamp};
use tollgate_server::snapshot::Reader;

use crate::clients::{Tally, http_load, resp_load, spent};
use crate::drain::{POLICY, THROTTLE};
use crate::server::{Home, until};

#[test]
fn kill_9_under_load_forgives_only_what_was_spent_since_the_last_snapshot() {
    let home = Home::new(POLICY);
    let server = home.start(&["--snapshot-every", "100ms"]);
    let (http, resp) = (server.http, server.resp);
    let keyed: Vec<_> = (0..3).map(|_| spawn(move || resp_load(resp, THROTTLE, 8))).collect();
    let checked = vec![spawn(move || http_load(http, "api", "203.0.113.7"))];
    until("some snapshots under load", || {
        let metrics = server.get("/metrics");
        let written = metrics.lines().find_map(|line| {
            line.strip_prefix("tollgate_snapshot_writes_total{outcome=\"written\"} ")
        });
        written.is_some_and(|written| written.parse::<u64>().unwrap() >= 5)
    });
    server.kill();
    let killed = SystemClock.now();
    let join = |tallies: Vec<std::thread::JoinHandle<Tally>>| -> Vec<Tally> {
        tallies.into_iter().map(|tally| tally.join().unwrap()).collect()
    };
    let (keyed, checked) = (join(keyed), join(checked));

    let file = File::open(home.path("state")).unwrap();
    let taken = Reader::new(BufReader::new(file)).unwrap().moment().wall;
    let taken = Timestamp::ZERO + taken;
    // An interval, and the time that writing takes on a machine that does something else.
    let age = killed.since(taken);
    assert!(age < Duration::from_secs(3), "{age:?}");

    let server = home.start(&[]);
    for (tallies, look) in
        [(keyed, format!("{THROTTLE} 0")), (checked, "TG.CHECK api 203.0.113.7 0".to_owned())]
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
