//! Limits whose quota comes with each call.

use std::time::Duration;

use spillgate::Verdict;
use tokio::time::advance;

use super::descriptors::{POLICY, by, decide, hits, spend};
use super::fake::{Fake, Node};

const KEY: [(&str, &str); 1] = [("own", "k")];

/// What is left, and how long to wait: `None` if it was allowed.
async fn throttle(node: &Node, quota: &str, cost: u64) -> (u64, Option<Duration>) {
    let outcome = decide(node, &[by(quota, hits(&KEY, cost))]).await;
    let state = outcome.descriptors().flat_map(|state| state.limits()).next().unwrap();
    let waits = match state.decision().verdict() {
        Verdict::Denied { retry_after } => Some(retry_after),
        _ => None,
    };
    (state.decision().remaining(), waits)
}

#[tokio::test(start_paused = true)]
async fn another_quota_finds_the_time_and_not_tokens() {
    let redis = Fake::new();
    let (one, other) = (redis.node(POLICY), redis.node(POLICY));
    assert_eq!(throttle(&one, "10/h", 9).await, (1, None));
    // That is 54 minutes, of which a bucket of five minutes shows no end.
    assert_eq!(throttle(&other, "1/min burst 5", 1).await, (0, Some(Duration::from_secs(50 * 60))));
    advance(Duration::from_secs(50 * 60)).await;
    assert_eq!(throttle(&one, "1/min burst 5", 1).await, (0, None));
    assert_eq!(throttle(&other, "10/h", 0).await, (9, None));
}

#[tokio::test(start_paused = true)]
async fn a_blocked_key_costs_one_command_per_second_and_a_peek_always_asks() {
    let redis = Fake::new();
    let node = redis.node(POLICY);
    assert_eq!(throttle(&node, "1/h", 1).await, (0, None));
    assert!(throttle(&node, "1/h", 1).await.1.is_some());
    let before = redis.runs();
    for _ in 0..100 {
        assert!(throttle(&node, "1/h", 1).await.1.is_some());
        advance(Duration::from_millis(100)).await;
    }
    assert!((9..=10).contains(&(redis.runs() - before)), "{}", redis.runs() - before);
    let before = redis.runs();
    throttle(&node, "1/h", 0).await;
    assert_eq!(redis.runs() - before, 1);
}

#[tokio::test(start_paused = true)]
async fn an_outage_continues_from_the_last_word_by_the_share_of_a_node() {
    let redis = Fake::new();
    let node = redis.node(POLICY);
    assert_eq!(throttle(&node, "10/s burst 20", 8).await, (12, None));
    advance(Duration::from_millis(300)).await;
    redis.set_down(true);
    // Of a share of 5/s burst 10, which is full in 500 ms, 7 are left.
    assert_eq!(throttle(&node, "10/s burst 20", 3).await, (4, None));
    assert_eq!(node.store().stats().outage_local, 1);
    assert!(throttle(&node, "10/s burst 20", 5).await.1.is_some());
    redis.set_down(false);
    // 15 were left, and 3 are debited.
    assert_eq!(throttle(&node, "10/s burst 20", 0).await, (12, None));
}

#[tokio::test(start_paused = true)]
async fn what_several_quotas_admit_in_an_outage_is_debited_by_each_of_them() {
    let redis = Fake::new();
    let node = redis.node(POLICY);
    redis.set_down(true);
    for (quota, cost) in [("10/s burst 20", 4), ("1/min burst 10", 2), ("1/min burst 10", 1)] {
        assert!(throttle(&node, quota, cost).await.1.is_none());
    }
    redis.set_down(false);
    // Three minutes and 400 ms.
    assert_eq!(throttle(&node, "1/min burst 10", 0).await, (6, None));
}

#[tokio::test(start_paused = true)]
async fn an_overload_is_not_an_outage() {
    let redis = Fake::new();
    let node = redis.node(POLICY);
    redis.set_overloaded(true);
    let call = [by("20/h", hits(&KEY, 1))];
    let error = node
        .decide(&spillgate_policy::Descriptors { domain: "edge", descriptors: &call })
        .await
        .unwrap_err();
    assert!(error.is_overloaded(), "{error}");
    assert_eq!(node.store().stats().outage_local, 0);
}

#[tokio::test(start_paused = true)]
async fn three_nodes_admit_the_quota_exactly() {
    let redis = Fake::new();
    let nodes = [(); 3].map(|()| redis.node(POLICY));
    let mut passed = 0;
    for call in 0..60 {
        passed += usize::from(spend(&nodes[call % 3], &[by("20/h", hits(&KEY, 1))]).await.0);
    }
    assert_eq!(passed, 20);
}
