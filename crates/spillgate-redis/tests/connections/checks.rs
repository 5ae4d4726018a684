//! What is looked at while a server is in use.

use std::time::Duration;

use spillgate::{AlgorithmKind, Quota};
use spillgate_redis::Terms;
use spillgate_redis::backend::{Backend, Entry, Found};
use spillgate_redis::client::{Client, Warnings};
use tokio::time::{Instant, sleep};

use crate::common::{Server, Shifted};
use crate::connections::asking::{PATIENCE, ask, entry, options, until_up};

async fn until(client: &Client, is_so: impl Fn(&Warnings) -> bool) -> Warnings {
    let begin = Instant::now();
    loop {
        let warnings = client.warnings();
        if is_so(&warnings) {
            return warnings;
        }
        assert!(begin.elapsed() < PATIENCE, "still {warnings:?}");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn an_eviction_policy_that_becomes_unsafe_is_told_and_is_no_outage() {
    let server = Server::redis_with(&["--maxmemory", "50mb"]);
    let often = options(&server.url()).check_interval(Duration::from_millis(20));
    let client = Client::connect(often).await.unwrap();
    assert_eq!(client.warnings(), Warnings::default());
    server.command("CONFIG SET maxmemory-policy allkeys-lru");
    let message = until(&client, |warnings| warnings.may_evict.is_some()).await.may_evict.unwrap();
    assert!(
        message.contains("`maxmemory-policy allkeys-lru`") && message.contains("`noeviction`"),
        "{message}"
    );
    ask(&client, 1).await.unwrap();
    // Nor when it is connected to again.
    server.command("CLIENT KILL TYPE normal");
    until_up(&client).await;
    assert!(client.warnings().may_evict.is_some());
    // Without a bound it has no reason to drop anything.
    server.command("CONFIG SET maxmemory 0");
    until(&client, |warnings| warnings.may_evict.is_none()).await;
    assert_eq!(client.warnings().clock_steps_back, 0);
}

/// Waits until a server was asked for its time once more, and that is taken in.
async fn until_looked_at(server: &Server) {
    let asked = || {
        let stats = server.command("INFO commandstats");
        let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_time:calls="));
        line.map_or(0, |line| line.split(',').next().unwrap().parse::<u64>().unwrap())
    };
    let before = asked();
    while asked() < before + 2 {
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_clock_that_goes_back_is_counted_once_and_forgives_nobody() {
    let shifted = Shifted::start();
    shifted.set_ahead(Duration::from_secs(100));
    let often = options(&shifted.server.url()).check_interval(Duration::from_millis(20));
    let client = Client::connect(often).await.unwrap();
    // One in an hour, which is spent.
    let quota = Quota::per_hour(1).build().unwrap();
    let terms = Terms::new(AlgorithmKind::TokenBucket, quota);
    let once = Entry { terms, algorithm: terms.algorithm().unwrap(), ..entry(7) };
    let found = async || client.run(std::slice::from_ref(&once)).await.unwrap().answers.remove(0);
    assert!(matches!(found().await, Found::Passed(_)));
    until_looked_at(&shifted.server).await;
    for (steps, ahead) in [(1, 70), (2, 69), (2, 5000), (3, 0), (3, 0)] {
        shifted.set_ahead(Duration::from_secs(ahead));
        // A step ahead of more than an hour refills what it has spent.
        assert!(matches!(found().await, Found::Denied(_)) || ahead == 5000);
        until_looked_at(&shifted.server).await;
        until(&client, |warnings| warnings.clock_steps_back == steps).await;
    }
    assert_eq!(client.health().outages, 0);
}
