//! Buckets whose quota comes with each call.

use std::time::Duration;

use spillgate::algorithm::{Algorithm, TokenBucket};
use spillgate::{Clock, Decision, Quota, Verdict};
use spillgate_redis::Share;
use spillgate_redis::backend::Fault;
use tokio::time::advance;

use super::fake::{Fake, Node};

fn quota(text: &str) -> Quota {
    text.parse().unwrap()
}

/// What is left, and how long to wait: `None` if it was allowed.
async fn spend(node: &Node, by: &str, cost: u64) -> (u64, Option<Duration>) {
    let decision = node.store().throttle(b"k", quota(by), cost).await.unwrap();
    let waits = match decision.verdict() {
        Verdict::Denied { retry_after } => Some(retry_after),
        _ => None,
    };
    (decision.remaining(), waits)
}

#[tokio::test(start_paused = true)]
async fn another_quota_finds_the_time_and_not_tokens() {
    let redis = Fake::new();
    let (one, other) = (redis.node("limit = []"), redis.node("limit = []"));
    assert_eq!(spend(&one, "10/h", 9).await, (1, None));
    // That is 54 minutes, of which a bucket of five minutes shows no end.
    assert_eq!(spend(&other, "1/min burst 5", 1).await, (0, Some(Duration::from_secs(50 * 60))));
    advance(Duration::from_secs(50 * 60)).await;
    assert_eq!(spend(&one, "1/min burst 5", 1).await, (0, None));
    assert_eq!(spend(&other, "10/h", 0).await, (9, None));
}

#[tokio::test(start_paused = true)]
async fn a_blocked_key_costs_one_command_a_second_and_a_look_is_always_asked() {
    let redis = Fake::new();
    let node = redis.node("limit = []");
    assert_eq!(spend(&node, "1/h", 1).await, (0, None));
    assert!(spend(&node, "1/h", 1).await.1.is_some());
    let before = redis.runs();
    for _ in 0..100 {
        assert!(spend(&node, "1/h", 1).await.1.is_some());
        advance(Duration::from_millis(100)).await;
    }
    assert!((9..=10).contains(&(redis.runs() - before)), "{}", redis.runs() - before);
    let before = redis.runs();
    spend(&node, "1/h", 0).await;
    assert_eq!(redis.runs() - before, 1);
}

#[tokio::test(start_paused = true)]
async fn in_an_outage_a_node_goes_by_its_share() {
    let redis = Fake::new();
    let node = redis.node("limit = []");
    let by = quota("10/s burst 20");
    assert_eq!(spend(&node, "10/s burst 20", 8).await, (12, None));
    advance(Duration::from_millis(300)).await;
    redis.set_down(true);
    let failed = node.store().throttle(b"k", by, 1).await.unwrap_err();
    assert_eq!(failed.fault(), Fault::Unreachable);
    let owed = Duration::from_millis(500);
    assert_eq!(node.store().share(b"k", by), Ok(Share { quota: quota("5/s burst 10"), owed }));
    assert_eq!(node.store().stats().outage_local, 1);

    // By that share three are let through, which are charged afterwards.
    let bucket = TokenBucket::new(&quota("5/s burst 10")).unwrap();
    let now = redis.clock().now();
    let decision = Decision::of(bucket, bucket.fresh(now), now, 3).0;
    node.store().throttled_here(b"k", by, &decision);
    redis.set_down(false);
    assert_eq!(spend(&node, "10/s burst 20", 0).await, (12, None));
}

#[tokio::test(start_paused = true)]
async fn what_several_quotas_let_through_is_charged_by_each_of_them() {
    let redis = Fake::new();
    let node = redis.node("limit = []");
    redis.set_down(true);
    let now = redis.clock().now();
    for (by, cost) in [("1/min burst 10", 2), ("10/s burst 20", 4), ("1/min burst 10", 1)] {
        assert!(node.store().throttle(b"k", quota(by), cost).await.is_err());
        let share = node.store().share(b"k", quota(by)).unwrap();
        let bucket = TokenBucket::new(&share.quota).unwrap();
        let decision = Decision::of(bucket, bucket.fresh(now), now, cost).0;
        node.store().throttled_here(b"k", quota(by), &decision);
    }
    redis.set_down(false);
    // Two minutes and at least 400 ms: the last decision of three tells less than all of them.
    let (remaining, _) = spend(&node, "1/min burst 10", 0).await;
    assert_eq!(remaining, 7);
}
