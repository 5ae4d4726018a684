//! Questions to Redis, and what comes of many of them.

use std::sync::Arc;
use std::time::Duration;

use spillgate::algorithm::Algorithm;
use spillgate::{AlgorithmKind, Quota, Timestamp};
use spillgate_redis::backend::{Backend, BackendError, Entry, Fault, Found, Op};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{Name, Terms};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

use crate::common::Server as Redis;

/// Longer than a test machine ever stands still, so that only what is broken is late.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Options with a time-out that a busy machine keeps.
pub(crate) fn options(url: &str) -> Options {
    Options::new(url)
        .unwrap()
        .connect_time_out(Duration::from_millis(500))
        .command_time_out(Duration::from_millis(100))
}

/// Spends one token of a large bucket.
pub(crate) fn entry(name: u64) -> Entry {
    let quota = Quota::per_second(1_000_000).build().unwrap();
    let terms = Terms::new(AlgorithmKind::TokenBucket, quota);
    let algorithm = terms.algorithm().unwrap();
    let fresh = algorithm.fresh(Timestamp::ZERO);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&name.to_be_bytes());
    let op = Op::Spend { cost: 1, is_shadow: false };
    Entry { name: Name::from_bytes(bytes), terms, algorithm, fresh, op }
}

/// Asks once, about one caller.
pub(crate) async fn ask(client: &Client, name: u64) -> Result<(), BackendError> {
    let reply = client.run(&[entry(name)]).await?;
    assert!(matches!(reply.answers[0], Found::Passed(_)), "{reply:?}");
    Ok(())
}

/// How many scripts a client has run.
pub(crate) fn scripts_run(client: &Redis) -> u64 {
    let stats = client.command("INFO commandstats");
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

/// Waits until it answers again.
pub(crate) async fn until_up(client: &Client) {
    let begin = Instant::now();
    while let Err(error) = ask(client, 0).await {
        assert!(begin.elapsed() < PATIENCE, "still: {error}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until calls fail, of this, and returns how that is told.
pub(crate) async fn until_down(client: &Client, fault: Fault) -> String {
    let begin = Instant::now();
    loop {
        let _ = ask(client, 0).await;
        let outage = client.health().outage;
        match outage {
            Some(error) if error.fault() == fault => return error.to_string(),
            other => assert!(begin.elapsed() < PATIENCE, "still {other:?}"),
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// What came of calls.
#[derive(Debug, Default)]
pub(crate) struct HammerResult {
    pub(crate) answered: usize,
    pub(crate) failed: usize,
    pub(crate) slowest: Duration,
}

/// Asks every millisecond, whether or not earlier calls were answered.
pub(crate) async fn hammer(client: Arc<Client>, duration: Duration) -> HammerResult {
    let begin = Instant::now();
    let mut calls = JoinSet::new();
    let mut ticks = interval(Duration::from_millis(1));
    for name in 0.. {
        if begin.elapsed() >= duration {
            break;
        }
        ticks.tick().await;
        let client = client.clone();
        calls.spawn(async move {
            let sent = Instant::now();
            (ask(&client, name % 100).await.is_ok(), sent.elapsed())
        });
    }
    let mut outcome = HammerResult::default();
    while let Some(call) = calls.join_next().await {
        let (is_answered, after) = call.unwrap();
        outcome.answered += usize::from(is_answered);
        outcome.failed += usize::from(!is_answered);
        outcome.slowest = outcome.slowest.max(after);
    }
    outcome
}
