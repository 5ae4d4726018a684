//! Waiting times that are told after a quota has moved, against the clock of a real server.

use std::sync::Arc;
use std::time::Duration;

use spillgate::Quota;
use spillgate_policy::Key;
use spillgate_policy::store::{LimitSpec, Outage, Spend, Store};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{RedisLimits, RedisStore, Settings};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::common::Server;
use crate::{TURN, is_quiet};

/// How late or early an answer may be.
const NEAR: Duration = Duration::from_millis(30);

const TRIES: usize = 100;
const AT_ONCE: usize = 10;

/// Quotas before and after a change, in which the caller has to wait for a part of a second.
const CHANGES: [(&str, &str); 5] = [
    ("1/h burst 3", "5/s burst 3"),
    ("1/day burst 10", "4/s burst 2"),
    ("3/s burst 5", "2/s burst 5"),
    ("100/s burst 100", "3/s burst 3"),
    ("2 per 3600 s", "150/min burst 1"),
];

struct Caller {
    key: Key,
    limits: RedisLimits,
}

impl Caller {
    /// Asks for one token: `None` if it is admitted, or how long it is told to wait.
    async fn ask(&self, store: &RedisStore) -> Option<Duration> {
        let mut spends = [Spend::new(0, self.key.clone(), 1)];
        store.decide(&self.limits, &mut spends).await.unwrap();
        let decision = spends[0].decision.unwrap();
        if decision.is_allowed() { None } else { Some(decision.retry_after().unwrap()) }
    }
}

fn limits(store: &RedisStore, place: usize, quota: &str) -> RedisLimits {
    let quota: Quota = quota.parse().unwrap();
    let mut spec = LimitSpec::new(&format!("limit {place}"), quota);
    spec.outage = Outage::Closed;
    store.open(&[spec]).unwrap()
}

/// True if a caller that waits as it is told after a change is admitted then, and not before.
async fn is_true(store: &RedisStore, number: usize, (before, after): (&str, &str)) -> bool {
    let key = Key::from_bytes(format!("caller {number}").as_bytes());
    let mut caller = Caller { key, limits: limits(store, number, before) };
    while caller.ask(store).await.is_none() {}
    caller.limits = limits(store, number, after);
    let asked = Instant::now();
    let Some(told) = caller.ask(store).await else { return false };
    // Nothing that is asked meanwhile may make it longer.
    sleep_until(asked + told.saturating_sub(NEAR)).await;
    let is_early = caller.ask(store).await.is_none();
    sleep_until(asked + told + NEAR).await;
    !is_early && caller.ask(store).await.is_none()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_waits_as_it_is_told_after_a_change_of_quota_is_admitted_then() {
    let _turn = TURN.lock().await;
    for server in [Server::redis(), Server::valkey()] {
        let options = Options::new(&server.url()).unwrap().command_time_out(Duration::from_secs(1));
        let client = Client::connect(options.connect_time_out(Duration::from_secs(5))).await;
        let settings = Settings::default().nodes(1.try_into().unwrap());
        let store = Arc::new(RedisStore::new(client.unwrap(), &settings).unwrap());
        let mut right = 0;
        // A few at a time, so that they are not late for each other.
        for first in (0..TRIES).step_by(AT_ONCE) {
            let mut tries = JoinSet::new();
            for number in first..first + AT_ONCE {
                let (store, change) = (Arc::clone(&store), CHANGES[number % CHANGES.len()]);
                tries.spawn(async move { is_true(&store, number, change).await });
            }
            right += tries.join_all().await.into_iter().filter(|is_true| *is_true).count();
        }
        // On a machine that does other things as well, more are late.
        let least = if is_quiet() { 95 } else { 60 };
        assert!(right >= least, "{right} of {TRIES}");
    }
}
